"""Grading: every case of a problem is played on the learner's class in a child, and each answer is verified here."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from practice.grader.contract import Case, CaseResult, Problem, Report

OnProgress = Callable[[int, int], None]  # cases done, cases in all


def grade(
    problem: Problem, source: bytes, seed: int, starter: bytes | None = None, on_progress: OnProgress | None = None
) -> Report:
    """The verdict on a solution, without story and diagnosis. Only `source` is untrusted."""
    raise NotImplementedError


def run_case(problem: Problem, source: bytes, case: Case) -> CaseResult:
    """What one case yields in a child of its own; use `Runner` for many."""
    with Runner(problem, source) as runner:
        return runner.run(case)


class Runner:
    """Plays many cases on one solution; each has the whole of the problem's limits, and a dead child is replaced.

    The solution's module is loaded once in each child: a solution that keeps state in its class or its module may
    answer otherwise in a used child than in a fresh one. `restart()` makes the next case the first of a fresh child.
    """

    def __init__(self, problem: Problem, source: bytes) -> None:
        self.problem, self.source = problem, source

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.restart()

    def restart(self) -> None:
        raise NotImplementedError

    def run(self, case: Case) -> CaseResult:
        raise NotImplementedError
