"""The hostile submissions of a problem: files `hostile/*.py` whose first line says the verdict that they must get.

A line `from reference import NAME` in one is replaced by the reference itself: what follows attacks beside right
answers. What cannot be kept as a file of Python is made here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from practice.grader.catalogue import metadata
from practice.grader.contract import Problem


@dataclass(frozen=True)
class Hostile:
    name: str
    verdict: str
    source: bytes


def hostile(problem: Problem) -> list[Hostile]:
    """All of them, by name."""
    reference = problem.reference().replace("from __future__ import annotations\n", "")  # it would stand too late
    found = made(problem)
    for path in (problem.folder / "hostile").glob("*.py"):
        text = re.sub(IMPORT, lambda line: copy(reference, line), path.read_text(encoding="utf-8"))
        found.append(Hostile(path.stem, metadata(path)["verdict"], text.encode()))
    return sorted(found, key=lambda one: one.name)


IMPORT = re.compile(r"^from reference import (\w+)(?: as (\w+))?.*\n", re.MULTILINE)


def copy(reference: str, line: re.Match[str]) -> str:
    """The reference, with its class under another name where the import asks for that."""
    return reference + (f"\n\n{line[2]} = {line[1]}\n" if line[2] else "\n")


def made(problem: Problem) -> list[Hostile]:
    """The ones that are no files."""
    name = problem.class_name.encode()
    return [
        Hostile("made: no UTF-8", "CE", b"# caf\xe9\nclass " + name + b":\n    pass\n"),
        Hostile("made: UTF-16", "CE", b"\xff\xfe" + f"class {problem.class_name}: pass\n".encode("utf-16-le")),
        Hostile("made: NUL", "CE", b"class " + name + b":\n    '\0'\n"),
        Hostile("made: a hundred megabytes", "CE", b"#" * (100 << 20)),
        Hostile("made: a syntax error", "CE", b"class " + name + b"(:\n    pass\n"),
        Hostile("made: parentheses too deep", "CE", b"x = " + b"(" * 50_000 + b")" * 50_000),
        Hostile("made: no class", "CE", b"import os\n"),
        Hostile("made: the class is a function", "CE", b"def " + name + b"(**_):\n    pass\n"),
        Hostile("made: empty", "CE", b""),
    ]
