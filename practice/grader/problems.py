"""Finding the problems: a folder `practice/problems/NNN_name` with a `problem.py` in it is one."""

from __future__ import annotations

import importlib
from pathlib import Path

from practice.grader.contract import Problem

ROOT = Path(__file__).parents[1] / "problems"


def folders() -> dict[int, Path]:
    """The problems' folders by number, in order. Nothing is loaded."""
    found = ((path.parent.name.partition("_")[0], path.parent) for path in ROOT.glob("*/problem.py"))
    return dict(sorted((int(number), folder) for number, folder in found if number.isdecimal()))


def load(number: int) -> Problem:
    """The problem of that number; ValueError, naming those there are, if there is none."""
    known = folders()
    if number not in known:
        raise ValueError(f"there is no problem {number}; there are {', '.join(map(str, known))}.")
    problem: Problem = importlib.import_module(f"practice.problems.{known[number].name}.problem").PROBLEM
    return problem
