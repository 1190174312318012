"""Grading a submission in a process of the judge's own, beside others: what one of them costs this side of the pipes,
reading its replies and playing its cases by the rules, then holds up no other's clock.

The process gets problem, source and seed on standard input, and writes the report and the first failure, as small as
the learner is told it; both ends are trusted.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from practice.grader import ending
from practice.grader.contract import CaseResult, Problem, Report
from practice.grader.explain import smallest, to_explain
from practice.grader.grade import grade as grade_here
from practice.grader.problems import load

ROOT = Path(__file__).parents[2]
RUN = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from practice.grader.apart import serve; serve()"


class Failed(Exception):
    """The process ended without a report."""


def grade(problem: Problem, source: bytes, seed: int, starter: bytes | None = None) -> tuple[Report, CaseResult | None]:
    """What `grade.grade` returns, and its story; the problem is one that `problems.load` knows by its number."""
    question = pickle.dumps((problem.number, source, seed, starter))
    done = subprocess.run([sys.executable, "-I", "-S", "-c", RUN], input=question, capture_output=True, check=False)
    if done.returncode:
        raise Failed(done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"status {done.returncode}")
    report, small = pickle.loads(done.stdout)
    report.problem = problem
    return report, small


def serve() -> None:
    """Grade what standard input asks for."""
    ending.as_exceptions()
    ending.with_parent()
    number, source, seed, starter = pickle.loads(sys.stdin.buffer.read())
    problem = load(number)
    report: Any = grade_here(problem, source, seed, starter)
    first = to_explain(report)
    small = None if first is None else smallest(first, problem, source)[0]
    report.problem = None  # it holds code, which the asker has
    sys.stdout.buffer.write(pickle.dumps((report, small)))
