"""Naming the misconception: which catalogued wrong solution behaves like the learner's, on the cases it was graded on.

A solution's behaviour in a case is whether it fails, at which call, with which value or exception. A catalogued
solution fits when it fails in the learner's way in the first failing case, in the story told of it, and in more than
half of all failing cases, and fails none that the learner passes; of two that fit, one that explains all failures
that the other does, and more, is the better. What fits best must carry one diagnosis and no other, or none is given:
no sentence is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from practice.grader.contract import Case, CaseResult, Diagnosis, Problem, Report
from practice.grader.play import Pair, compare, script

ANSWERED = ("WA", "RTE")  # verdicts of a wrong answer, rather than of a limit
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
        self.scripts: dict[tuple[int, str, str], list[Pair]] = {}
        self.known: dict[tuple[int, str, str, str], Behaviour | None] = {}

    def diagnose(self, report: Report, story: CaseResult | None = None) -> Diagnosis | None:
        """`story` is the first failure, shrunk."""
        failures = [case.failure.verdict for group in report.groups for case in group.cases if case.failure]
        if failures and set(failures) == {"TLE"}:
            too_slow = next(result.group.name for result in report.groups if result.failed)
            return self._only([wrong for wrong in self.wrong if wrong.verdict == "TLE" and wrong.group == too_slow])
        answered = [result for result in report.groups if not result.group.speed]  # no wrong value is first seen there
        cases = [(result.group.name, case) for result in answered for case in result.cases if compared(case)]
        if not any(case.failure for _, case in cases):
            return None
        told = [] if story is None else list(script(story.case, self.problem.rules))
        cases.sort(key=lambda named: named[1].failure is None)  # failures first: there most of the catalogue differs
        most = sum(case.failure is not None for _, case in cases) / 2
        explained = [
            (wrong, places)
            for wrong in self.wrong
            if wrong.verdict in ANSWERED
            and len(places := self._explained(wrong, cases, report.seed)) > most
            and (story is None or behaviour(story) == self._played(wrong, story.case, told))
        ]
        return self._only([wrong for wrong, places in explained if not any(places < more for _, more in explained)])

    def _explained(self, wrong: Wrong, cases: Sequence[tuple[str, CaseResult]], seed: int) -> set[int]:
        """The failing cases that it fails in the same way; none if it misses the first, or fails what was passed."""
        places: set[int] = set()
        for place, (group, case) in enumerate(cases):
            if behaviour(case) == self._behaviour(wrong, (seed, group, case.case.name), case):
                places |= {place} if case.failure else set()
            elif place == 0 or case.failure is None:
                return set()
        return places

    def _behaviour(self, wrong: Wrong, place: tuple[int, str, str], case: CaseResult) -> Behaviour | None:
        key = *place, wrong.name
        if key not in self.known:
            if place not in self.scripts:
                self.scripts[place] = list(script(case.case, self.problem.rules))
            self.known[key] = self._played(wrong, case.case, self.scripts[place])
        return self.known[key]

    def _played(self, wrong: Wrong, case: Case, pairs: list[Pair]) -> Behaviour | None:
        if wrong.name not in self.made:
            self.made[wrong.name] = wrong.make()
        return behaviour(compare(case, pairs, self.made[wrong.name]))

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


def compared(result: CaseResult) -> bool:
    """Whether a case was played to an answer or an exception: it reached no limit."""
    return result.failure is None or result.failure.verdict in ANSWERED
