"""How wide the margins of the time limits are: `python -m practice.grader.margins 131`, on a machine that is idle.

For each large case: its limit, and which part of it the reference, the slowest right solution and the fastest of the
solutions that must be too slow there take. A limit holds on other machines, too, when these are at most 0.1, at most
0.2 and at least 2.5.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from practice.grader.catalogue import catalogued, solutions
from practice.grader.contract import DEFAULT_SEED, Case, Problem
from practice.grader.problems import load
from practice.grader.runner import Runner

TRIES = 3  # of which the fastest counts: a busy machine makes CPU time longer, never shorter
LONGEST = 5  # limits, after which a solution is stopped


def part(problem: Problem, source: bytes, case: Case, tries: int = TRIES) -> float:
    """The CPU time that a solution takes in the case, in limits."""
    assert case.cpu_seconds is not None
    longer, seconds = replace(case, cpu_seconds=LONGEST * case.cpu_seconds), []
    for _ in range(tries):
        with Runner(problem, source) as runner:
            runner.load()
            runner.run(longer)
            seconds.append(runner.cpu_seconds)
    return min(seconds) / case.cpu_seconds


def row(problem: Problem, group: str, case: Case) -> str:
    """A line about one large case."""

    reference = part(problem, problem.reference().encode(), case)
    right = [(part(problem, one.source(), case), one.name) for one in solutions(problem, "right")]
    meant = [one for one in catalogued(problem) if one.verdict == "TLE" and one.group == group]
    slow = [(part(problem, one.source(), case, tries=1), one.name) for one in meant]
    most, slowest = max(right)
    least, fastest = min(slow)
    return (
        f"{group:14} {case.cpu_seconds:4} s   reference {reference:.2f}   right {most:.2f} ({slowest})   "
        f"too slow {least:.1f} ({fastest})"
    )


def main(numbers: list[str]) -> None:
    for number in numbers:
        problem = load(int(number))
        for group in problem.groups(DEFAULT_SEED):
            for case in group.cases if group.speed else ():
                print(number, row(problem, group.name, case), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
