"""A command that was understood, and what answers it: a page to read, the same as data, an exit status."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from practice.grader.contract import Problem
from practice.grader.layout import Block
from practice.grader.learner import Learner
from practice.grader.problems import folders, load
from practice.grader.report import Asked
from practice.grader.submissions import INTERVAL
from practice.grader.words import Words

PASSED, FAILED, USAGE, FAULT = range(4)  # exit statuses


class UsageError(Exception):
    """A command that cannot be followed, as a sentence."""


@dataclass
class Answer:
    page: list[Block]
    data: dict[str, Any]
    status: int = PASSED


@dataclass
class Request:
    """The command line, understood."""

    words: Words
    asked: Asked
    learner: Learner
    seed: int
    case: str | None = None
    spoil: bool = False
    show: Callable[[Answer], None] = lambda answer: None  # for a verb that answers again and again
    wait: Callable[[], object] = lambda: time.sleep(INTERVAL)
    stdin: Any = field(default_factory=lambda: sys.stdin)

    def problem(self, given: str) -> Problem:
        known = ", ".join(map(str, folders()))
        if not given.isascii() or not given.isdecimal():
            raise UsageError(self.words("no_number", given=given, known=known))
        if int(given) not in folders():
            raise UsageError(self.words("no_problem", given=given, known=known))
        return load(int(given))


def as_typed(path: Path) -> str:
    """The path as it can be typed from here: relative where it lies below the working folder."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or here is no folder any more
        return str(path)


def quoted(argument: str) -> str:
    """As one argument of a shell."""
    if sys.platform == "win32":
        return f'"{argument}"' if " " in argument else argument
    return shlex.quote(argument)
