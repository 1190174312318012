"""What a report needs for a learner: the smallest story of the first failure, and the misconception behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic

from practice.grader.contract import Case, CaseResult, Diagnosis, Problem, Report
from practice.grader.diagnose import Diagnostician
from practice.grader.runner import Runner
from practice.grader.shrink import SHRINKABLE, kind, shrink
from practice.grader.story import Story, tell

FRESH_TRIALS = 30  # each starts a child
TRIAL_SECONDS = 0.4  # of CPU time, and several times that of waiting, for one trial, which takes some 0.002
SEARCH_SECONDS = 8.0  # for all trials together, which take 2 at most unless the solution dies or waits in each


class OutOfTime(Exception):
    """The search has taken too long."""


@dataclass(frozen=True)
class Explained:
    """A report, and for a failing one what explains it."""

    report: Report
    story: Story | None = None
    diagnosis: Diagnosis | None = None
    alone: bool = True  # whether the story's case fails in a fresh child; else only after the cases before it


def explain(report: Report, source: bytes, diagnostician: Diagnostician, as_it_is: bool = False) -> Explained:
    """`as_it_is`: the case is the learner's own choice, and is told without being shrunk."""
    result = to_explain(report)
    if result is None:
        return Explained(report)
    small, alone = (result, True) if as_it_is else smallest(result, report.problem, source)
    story = tell(small, report.problem, result)
    return Explained(report, story, diagnostician.diagnose(report, small), alone)


def to_explain(report: Report) -> CaseResult | None:
    """The first failure, if it is one to learn from."""
    return None if report.verdict == "UNATTEMPTED" else report.first_failure


def smallest(result: CaseResult, problem: Problem, source: bytes) -> tuple[CaseResult, bool]:
    """The failure shrunk, and whether it was seen in a fresh child, where the replay will run it.

    A solution that keeps state in its class or module may fail in a used child alone; then each trial gets a child of
    its own, and there are few. A search that runs out of time is given up: how far it came would hang on the clock, and
    the report must not.
    """
    if result.failure is None or result.failure.verdict not in SHRINKABLE:
        return result, True
    quick = replace(problem, limits=replace(problem.limits, cpu_seconds=TRIAL_SECONDS))
    until = monotonic() + SEARCH_SECONDS
    with Runner(quick, source) as runner:

        def used(case: Case) -> CaseResult:
            if monotonic() > until:
                raise OutOfTime
            return runner.run(case)

        def fresh(case: Case) -> CaseResult:
            runner.restart()
            return used(case)

        try:
            small = shrink(result, problem, used)
            if fails_alone(small, problem, source):
                return small, True
            small = shrink(result, problem, fresh, FRESH_TRIALS)
        except OutOfTime:
            small = result
    return small, fails_alone(small, problem, source)


def fails_alone(result: CaseResult, problem: Problem, source: bytes) -> bool:
    """Whether the case fails in the same way as the first of a child, with all of the problem's limits: as a replay."""
    with Runner(problem, source) as runner:
        return kind(runner.run(result.case)) == kind(result)
