"""Grading: every case of a problem is played on the learner's class, and what they yield becomes a verdict.

A pass is N verified answers out of N. What the child says can only make the verdict worse, or its reason clearer.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable

from practice.grader.budget import Budget
from practice.grader.contract import Case, CaseResult, GroupResult, Limits, Problem, Report
from practice.grader.runner import Runner
from practice.grader.words import said

OnProgress = Callable[[int, int], None]  # cases done, cases in all


def grade(
    problem: Problem, source: bytes, seed: int, starter: bytes | None = None, on_progress: OnProgress | None = None
) -> Report:
    """The verdict on a solution, without story and diagnosis. Only `source` is untrusted."""
    report = Report(problem, "IE", seed)
    try:
        if refusal := refuse(source, problem.limits):
            report.verdict, report.message = "CE", refusal
        else:
            _play_all(report, source, on_progress)
            if report.verdict == "RTE" and unattempted(report, starter):
                report.verdict, report.message = "UNATTEMPTED", last_line(report.first_failure)
            if report.verdict == "AC" and problem.showcase:
                with Runner(problem, source) as runner:
                    report.showcase = runner.answers(problem.showcase(seed))
    except Exception:  # in the rules, the cases, the machine: never the learner's fault
        report.verdict, report.message = "IE", traceback.format_exc()
    return report


def run_case(problem: Problem, source: bytes, case: Case) -> CaseResult:
    """What one case yields in a child of its own; use `Runner` for many."""
    with Runner(problem, source) as runner:
        return runner.run(case)


def refuse(source: bytes, limits: Limits) -> str:
    """Why a source is not even looked at; empty when it is."""
    if len(source) > limits.source:
        return said(
            f"the solution has more than {limits.source} bytes, the most that are accepted",
            f"答案超过了 {limits.source} 字节；最多只接受这么多",
        )
    try:
        source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return said(
            f"the solution is no UTF-8 text (byte {error.start}): save it with the encoding UTF-8",
            f"答案不是 UTF-8 文本（第 {error.start} 字节）：请用 UTF-8 编码保存",
        )
    return ""


def _play_all(report: Report, source: bytes, on_progress: OnProgress | None) -> None:
    groups = report.problem.groups(report.seed)
    done, total = 0, sum(len(group.cases) for group in groups)
    with Runner(report.problem, source, Budget.of(report.problem.limits)) as runner:
        broken = runner.load()
        if broken and broken.verdict == "CE":
            report.verdict, report.message = "CE", broken.detail
            return
        for group in groups:
            results = []
            too_early = (group.speed or group.late) and any(result.failed for result in report.groups[:1])
            to_run = () if too_early else group.cases
            for case in to_run:  # all of them, also after a failure: points by group, and a pattern to diagnose
                results.append(runner.run(case))
                done += 1
                if on_progress:
                    on_progress(done, total)
            report.groups += (GroupResult(group, tuple(results)),)
        report.printed = runner.printed.decode("utf-8", "replace")
    first = report.first_failure
    report.verdict = first.failure.verdict if first and first.failure else "AC"


def unattempted(report: Report, starter: bytes | None) -> bool:
    """Nothing was answered, and the first case ends where it does with the starter, by the same NotImplementedError."""
    first = report.first_failure
    answered = any(case.num_verified for group in report.groups for case in group.cases)
    if first is None or answered or not last_line(first).startswith("NotImplementedError"):
        return False
    untouched = first if starter is None else run_case(report.problem, starter, first.case)
    return last_line(untouched) == last_line(first) and _num_moves(untouched) == _num_moves(first)


def last_line(result: CaseResult | None) -> str:
    """The exception itself, without its traceback."""
    return result.failure.detail.rpartition("\n")[2] if result and result.failure else ""


def _num_moves(result: CaseResult) -> int:
    return len(result.failure.moves) if result.failure else 0
