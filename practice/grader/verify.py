"""The author's check of a problem: every solution whose verdict is known is graded, and must get what it should.

The starter is UNATTEMPTED; the reference passes within a tenth of the limits; right solutions pass; wrong ones fail in
the group, and with the diagnosis, that their first lines name, each on a sequence of calls that can be shown; hostile
ones get their verdict. All are graded as a learner's file is, in a child process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain

from practice.grader.catalogue import KINDS, SLOW, Solution, catalogued, solutions
from practice.grader.contract import Case, CaseResult, Group, Problem, Report
from practice.grader.diagnose import Diagnostician
from practice.grader.grade import grade
from practice.grader.hostile import Hostile, hostile
from practice.grader.runner import Runner

OnProgress = Callable[[int, int], None]  # solutions graded, solutions in all
HOSTILE_SECONDS = 1.0  # of CPU time: what they try shows at once, and many try to waste it
PART = 10  # the reference may use one part in so many of the limits
TRIES = 12  # to measure that: a busy machine makes CPU time longer, never shorter


@dataclass(frozen=True)
class Checked:
    """What one solution got, and what of that is not as it should be: nothing, when `fault` is empty."""

    name: str
    verdict: str
    failed: tuple[str, ...] = ()  # groups
    diagnosis: str | None = None
    fault: str = ""
    differs: CaseResult | None = None  # the failing case with the fewest calls


@dataclass(frozen=True)
class Verification:
    problem: Problem
    seed: int
    checked: tuple[Checked, ...]

    @property
    def faults(self) -> list[str]:
        return [f"{self.problem.number} {each.name}: {each.fault}" for each in self.checked if each.fault]

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Header and rows of solution x group, with an x where a solution failed."""
        groups = [group.name for group in self.problem.groups(self.seed)]
        return ("solution", "verdict", *groups, "diagnosis"), [
            (each.name, each.verdict, *("x" if group in each.failed else "" for group in groups), each.diagnosis or "")
            for each in self.checked
        ]


def verify(problem: Problem, seed: int, on_progress: OnProgress | None = None) -> Verification:
    """Check the reference alone, since its time counts; then the rest, as many at a time as there are processors."""
    author = _Author(problem, seed)
    reference = author.reference()
    jobs: list[Callable[[], Checked]] = [author.starter]
    for kind in KINDS:
        for solution in solutions(problem, kind):
            jobs.append(partial(author.solution, kind, solution))
    jobs += [partial(author.hostile, submission) for submission in hostile(problem)]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        futures = [pool.submit(job) for job in jobs]
        for done, _ in enumerate(chain([reference], as_completed(futures)), 1):
            if on_progress:
                on_progress(done, len(futures) + 1)
        starter, *others = [future.result() for future in futures]
        return Verification(problem, seed, (starter, reference, *others))


class _Author:
    """Grades the solutions of one problem with one seed."""

    def __init__(self, problem: Problem, seed: int) -> None:
        problem = replace(problem, groups=cache(problem.groups))  # large cases take time to draw
        self.problem, self.seed = problem, seed
        self.diagnostician = Diagnostician(problem, catalogued(problem))

        def quick_groups(seed: int) -> list[Group]:
            return [group for group in problem.groups(seed) if not group.speed]

        self.quick = replace(problem, groups=quick_groups)  # without the cases that only a slow solution fails

    def starter(self) -> Checked:
        return self._checked("starter", "UNATTEMPTED", self._grade(self.problem, self.problem.starter()))

    def reference(self) -> Checked:
        source = self.problem.reference().encode()
        checked = self._checked("reference", "AC", self._grade(self.problem, source))
        return checked if checked.fault else replace(checked, fault=self._waste(source))

    def solution(self, kind: str, solution: Solution) -> Checked:
        fails_soon = kind == "wrong" and solution.verdict not in SLOW
        report = self._grade(self.quick if fails_soon else self.problem, solution.source())
        checked = self._checked(f"{kind}/{solution.name}", solution.verdict, report)
        if checked.fault or kind != "wrong":
            return checked
        found = self.diagnostician.diagnose(report)
        key = next((key for key, each in self.problem.diagnoses.items() if each is found), None)
        fault = ""
        if solution.group not in checked.failed:
            fault = f"it passes the group {solution.group}, which is meant for it"
        elif key != solution.diagnosis:
            fault = f"the diagnosis is {key}; it should be {solution.diagnosis}"
        return replace(checked, diagnosis=key, fault=fault)

    def hostile(self, submission: Hostile) -> Checked:
        limits = replace(self.problem.limits, cpu_seconds=HOSTILE_SECONDS)
        report = self._grade(replace(self.quick, limits=limits), submission.source)
        return self._checked(f"hostile/{submission.name}", submission.verdict, report)

    def _grade(self, problem: Problem, source: bytes) -> Report:
        return grade(problem, source, self.seed, self.problem.starter())

    def _checked(self, name: str, expected: str, report: Report) -> Checked:
        failed = [result for result in report.groups if result.failed]
        cases = [case for result in failed for case in result.cases if case.failure]
        differs = min(cases, key=lambda case: len(case.failure.moves if case.failure else ()), default=None)
        fault = ""
        if report.verdict != expected:
            reason = report.message or (differs.failure.detail if differs and differs.failure else "")
            fault = f"the verdict is {report.verdict}; it should be {expected}. {reason}".strip()
        return Checked(name, report.verdict, tuple(result.group.name for result in failed), None, fault, differs)

    def _waste(self, source: bytes) -> str:
        """What the reference uses too much of; empty when it stays within its part of the limits."""
        limits = self.problem.limits
        part = replace(limits, memory=limits.memory // PART, output=limits.output // PART, source=limits.source // PART)
        problem = replace(self.problem, limits=part)
        if (verdict := self._grade(problem, source).verdict) != "AC":
            return f"within one part in {PART} of memory, output and length of source the verdict is {verdict}"
        cases = [case for group in self.problem.groups(self.seed) for case in group.cases]
        limit = limits.cpu_seconds + sum(case.cpu_seconds or 0.0 for case in cases)
        used = limit
        for _ in range(TRIES):
            used = min(used, self._seconds(source, cases))
            if used * PART <= limit:
                return ""
        return f"it takes {used:.2f} s of CPU time; the limits add up to {limit:.1f} s, and one part in {PART} is due"

    def _seconds(self, source: bytes, cases: list[Case]) -> float:
        """The seconds of CPU that the cases take together."""
        seconds = 0.0
        with Runner(self.problem, source) as runner:
            runner.load()
            for case in cases:
                runner.run(case)
                seconds += runner.cpu_seconds
        return seconds
