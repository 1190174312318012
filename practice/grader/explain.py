"""What a report needs for a learner: the smallest story of the first failure, and the misconception behind it."""

from __future__ import annotations

from dataclasses import dataclass

from practice.grader.contract import Case, CaseResult, Diagnosis, Problem, Report
from practice.grader.diagnose import Diagnostician
from practice.grader.runner import Runner
from practice.grader.shrink import SHRINKABLE, kind, shrink
from practice.grader.story import Story, tell

FRESH_TRIALS = 30  # each starts a child


@dataclass(frozen=True)
class Explained:
    """A report, and for a failing one what explains it."""

    report: Report
    story: Story | None = None
    diagnosis: Diagnosis | None = None
    alone: bool = True  # whether the story's case fails in a fresh child; else only after the cases before it


def explain(report: Report, source: bytes, diagnostician: Diagnostician, as_it_is: bool = False) -> Explained:
    """`as_it_is`: the case is the learner's own choice, and is told without being shrunk."""
    result = report.first_failure
    if result is None or result.failure is None or report.verdict == "UNATTEMPTED":
        return Explained(report)
    small, alone = (result, True) if as_it_is else smallest(result, report.problem, source)
    story = tell(small, report.problem, result)
    return Explained(report, story, diagnostician.diagnose(report), alone)


def smallest(result: CaseResult, problem: Problem, source: bytes) -> tuple[CaseResult, bool]:
    """The failure shrunk, and whether it was seen in a fresh child, where the replay will run it.

    A solution that keeps state in its class or module may fail in a used child alone; then each trial gets a child of
    its own, and there are few.
    """
    if result.failure is None or result.failure.verdict not in SHRINKABLE:
        return result, True
    with Runner(problem, source) as runner:

        def fresh(case: Case) -> CaseResult:
            runner.restart()
            return runner.run(case)

        small = shrink(result, problem, runner.run)
        if kind(fresh(small.case)) == kind(small):
            return small, True
        small = shrink(result, problem, fresh, FRESH_TRIALS)
        return small, kind(fresh(small.case)) == kind(small)
