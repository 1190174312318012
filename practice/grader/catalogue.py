"""The catalogue of a problem: solutions whose verdict is known, each a file whose first line says what it is about.

    # verdict: WA | group: chain | diagnosis: no_parent

`right/` holds solutions that must pass, `wrong/` those that must fail, in the group and with the diagnosis named.
Both are trusted code (`hostile` knows those that are not).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from practice.grader.contract import VERDICTS, Problem

KINDS = ("right", "wrong")
SLOW = ("TLE", "MLE", "OLE")  # verdicts of what must not be played without limits


@dataclass(frozen=True)
class Solution:
    """A solution in the catalogue: trusted code. `diagnosis` is a key of the problem's diagnoses."""

    path: Path
    class_name: str
    verdict: str
    group: str | None = None
    diagnosis: str | None = None

    @property
    def name(self) -> str:
        return self.path.stem

    def source(self) -> bytes:
        return self.path.read_bytes()

    def make(self) -> Callable[..., Any]:
        """The class, loaded in this process."""
        namespace: dict[str, Any] = {"__name__": self.name}
        code = SourceFileLoader(self.name, str(self.path)).get_code(self.name)  # compiled once, and kept by Python
        assert code is not None
        exec(code, namespace)
        made: Callable[..., Any] = namespace[self.class_name]
        return made


def solutions(problem: Problem, kind: str) -> list[Solution]:
    """The solutions of one kind, by name. ValueError, naming file and word, if a first line is wrong."""
    return [_solution(problem, path) for path in sorted((problem.folder / kind).glob("*.py"))]


def catalogued(problem: Problem) -> list[Solution]:
    """The wrong solutions."""
    return solutions(problem, "wrong")


def _solution(problem: Problem, path: Path) -> Solution:
    said = metadata(path)
    diagnosis = said.get("diagnosis")
    if diagnosis is not None and diagnosis not in problem.diagnoses:
        raise ValueError(f"{path}: the problem has no diagnosis {diagnosis!r}; add it, or name one that it has.")
    return Solution(path, problem.class_name, said["verdict"], said.get("group"), diagnosis)


def metadata(path: Path) -> Mapping[str, str]:
    """What the first line says, by its words, among which is always the verdict."""
    with path.open(encoding="utf-8") as file:
        line = file.readline().strip()
    if not line.startswith("# "):
        raise ValueError(f"{path}: the first line must be like '# verdict: WA | group: chain'; it is {line!r}.")
    said = {key: value for key, _, value in (part.strip().partition(": ") for part in line[2:].split("|"))}
    if unknown := said.keys() - {"verdict", "group", "diagnosis"}:
        names = ", ".join(sorted(unknown))
        raise ValueError(f"{path}: the first line names {names}; it may name verdict, group and diagnosis.")
    if (verdict := said.get("verdict", "")) not in VERDICTS:
        raise ValueError(f"{path}: the verdict is {verdict!r}; it must be one of {', '.join(VERDICTS)}.")
    return said
