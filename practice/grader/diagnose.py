"""Naming the misconception: which catalogued wrong solution behaves like the learner's, on the cases it was graded on.

A solution's behaviour in a case is whether it fails, at which call, with which value or exception. It is compared
twice. First all cases must agree. Where no catalogued solution does, one may be a part of what is wrong: it fails the
learner's first failing case in the same way, and none of the cases that the learner passes. What fits must carry one
diagnosis and no other, or none is given: no sentence is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from practice.grader.contract import CaseResult, Diagnosis, Problem, Report
from practice.grader.play import play

LARGE = 5_000  # calls and values of a case: from here on it tests speed, and no wrong value is first seen there
Behaviour = tuple[str, int, str]  # verdict, calls made, what came back


class Wrong(Protocol):
    """A catalogued wrong solution: trusted code."""

    @property
    def name(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def group(self) -> str | None: ...
    @property
    def diagnosis(self) -> str | None: ...
    def make(self) -> Callable[..., Any]: ...


class Diagnostician:
    """Knows the wrong solutions of one problem, and remembers what each did in a case, for a class of learners."""

    def __init__(self, problem: Problem, wrong: Sequence[Wrong]) -> None:
        self.problem, self.wrong = problem, wrong
        self.made: dict[str, Callable[..., Any]] = {}
        self.known: dict[tuple[int, str, str, str], Behaviour | None] = {}

    def diagnose(self, report: Report) -> Diagnosis | None:
        failures = [case.failure.verdict for group in report.groups for case in group.cases if case.failure]
        if failures and set(failures) == {"TLE"}:  # of the groups after the first one nothing is known: time was up
            too_slow = next(result.group.name for result in report.groups if not result.passed)
            return self._only([wrong for wrong in self.wrong if wrong.verdict == "TLE" and wrong.group == too_slow])
        if not failures or set(failures) - {"WA", "RTE"}:
            return None
        cases = [(group.group.name, case) for group in report.groups for case in group.cases if size(case) < LARGE]
        if not any(case.failure for _, case in cases):
            return None
        cases.sort(key=lambda named: named[1].failure is None)  # failures first: there most of the catalogue differs
        fitting, partly = [], []
        for wrong in self.wrong:
            if wrong.verdict in ("WA", "RTE"):
                same_first, same_all = self._agreement(wrong, cases, report.seed)
                fitting += [wrong] if same_all else []
                partly += [wrong] if same_first else []
        return self._only(fitting or partly)

    def _agreement(self, wrong: Wrong, cases: Sequence[tuple[str, CaseResult]], seed: int) -> tuple[bool, bool]:
        """Whether it explains the first failure and contradicts no pass, and whether it agrees everywhere."""
        same_all = True
        for index, (group, case) in enumerate(cases):
            same = behaviour(case) == self._behaviour(wrong, (seed, group, case.case.name), case)
            if not same and (index == 0 or case.failure is None):
                return False, False
            same_all = same_all and same
        return True, same_all

    def _behaviour(self, wrong: Wrong, place: tuple[int, str, str], case: CaseResult) -> Behaviour | None:
        seed, group, name = place
        key = seed, group, name, wrong.name
        if key not in self.known:
            if wrong.name not in self.made:
                self.made[wrong.name] = wrong.make()
            self.known[key] = behaviour(play(case.case, self.problem.rules, self.made[wrong.name]))
        return self.known[key]

    def _only(self, fitting: Sequence[Wrong]) -> Diagnosis | None:
        keys = {wrong.diagnosis for wrong in fitting}
        key = keys.pop() if len(keys) == 1 else None
        return None if key is None else self.problem.diagnoses[key]


def behaviour(result: CaseResult) -> Behaviour | None:
    """What is compared of a case; None when it passed."""
    failure = result.failure
    if failure is None:
        return None
    what = repr(failure.got) if failure.verdict == "WA" else exception_type(failure.detail)
    return failure.verdict, len(failure.moves), what


def exception_type(detail: str) -> str:
    """The type that the last line of a traceback names, without its module."""
    return detail.strip().rpartition("\n")[2].partition(":")[0].rpartition(".")[2]


def size(result: CaseResult) -> int:
    """The calls of a case and the items of the lists that they are given."""
    arguments = (value for step in result.case.steps for value in (*step.args, *step.kwargs.values()))
    return len(result.case.steps) + sum(len(value) for value in arguments if isinstance(value, (list, tuple)))
