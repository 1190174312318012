"""The texts in a problem's folder: statement, hints, starter and reference."""

from __future__ import annotations

from pathlib import Path

from practice.grader.contract import Problem


def statement(problem: Problem, language: str) -> str:
    return _read(problem, f"statement.{language}.md").strip()


def hints(problem: Problem, language: str) -> list[str]:
    """The hints in order: in the file each stands under a heading of the second level."""
    parts = ("\n" + _read(problem, f"hints.{language}.md")).split("\n## ")[1:]
    return [part.partition("\n")[2].strip() for part in parts]


def starter(problem: Problem) -> bytes:
    return _file(problem, "starter.py").read_bytes()


def reference(problem: Problem) -> str:
    return _read(problem, "reference.py")


def _read(problem: Problem, name: str) -> str:
    return _file(problem, name).read_text(encoding="utf-8")


def _file(problem: Problem, name: str) -> Path:
    return problem.folder / name
