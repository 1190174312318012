"""Playing cases on a solution in child processes, within limits; each answer is verified against the rules here."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any

from practice.grader.affinity import one_processor
from practice.grader.budget import Budget, Time
from practice.grader.contract import MAKE, Case, CaseResult, Failure, Foreign, Move, Problem
from practice.grader.play import CHANGED, Latest, Pair, parts, same, script
from practice.grader.process import Child, Stopped
from practice.grader.protocol import Raised
from practice.grader.words import said

MAX_KEPT = 100_000  # characters of a wrong answer
LOST_SECONDS = 60.0  # of CPU, after which the system ends a child itself; the limits are kept here
TOO_SLOW = said(
    "more time than this case may take; the statement says what time may grow with",
    "超过了这个用例允许的时间；时间可以随什么增长，题目里写着",
)
NO_REPLY = said("what came through the judge's private pipe is no reply", "判题器专用的管道里来的不是回答")
NOT_RUN = said("not run, after what earlier cases have used up", "没有运行：前面的用例已经用完了限额")


class Changed(Exception):
    """A call changed what an earlier one had returned, into `value`."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class TooSlow(Stopped):
    """The time of one case is up, which had a limit of its own."""


class Runner:
    """Plays cases on one solution. Without a budget for all of them each case has the whole of the problem's limits.
    A case with a limit of its own takes its time from that alone.

    The solution's module is loaded once in each child, and a child serves until it dies: a solution that keeps state
    in its class or its module may answer otherwise in a used child than alone. `restart()` makes the next case the
    first of a fresh child.
    """

    def __init__(self, problem: Problem, source: bytes, budget: Budget | None = None) -> None:
        self.problem, self.source = problem, source.decode("utf-8-sig")
        self._shared = budget
        self._budget = budget or Budget.of(problem.limits)
        self._time = self._budget.time  # what the current case uses: this, or its own
        self._used = 0.0  # seconds of CPU that the child had used by now
        self.cpu_seconds = 0.0  # that the latest case took
        self._child: Child | None = None
        self._broken: Stopped | None = None  # why the module cannot be loaded, in any child
        self._printed = b""

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.restart()

    def restart(self) -> None:
        """End the child; the next case gets a fresh one."""
        if self._child is not None:
            child, self._child = self._child, None
            child.end()
            self._printed += child.printed

    @property
    def printed(self) -> bytes:
        """What the solution has printed, in all cases or (without a shared budget) in the last one."""
        return self._printed + (self._child.printed if self._child is not None else b"")

    def load(self) -> Stopped | None:
        """Load the module; returns why that cannot be done."""
        try:
            self._start()
        except Stopped as stopped:
            return stopped
        return None

    def run(self, case: Case) -> CaseResult:
        """Play the case on a fresh object."""
        if self._shared is None:
            self._renew()
        self._time = self._budget.time if case.cpu_seconds is None else Time.of(case.cpu_seconds)
        before = self._time.cpu
        result = self._play(case)
        self.cpu_seconds = before - self._time.cpu
        return result

    def answers(self, case: Case) -> tuple[Any, ...] | None:
        """What the solution returns in a case that is not graded; None when it does not come to its end."""
        answers = []
        self._time = self._budget.time
        try:
            self._start()
            self._ask("new", dict(case.parameters))
            for move, _ in script(case, self.problem.rules):
                answers.append(self._ask("call", move.step.method, move.args, dict(move.kwargs), True))
        except Stopped:
            return None
        return tuple(answers)

    def _renew(self) -> None:
        self._budget = Budget.of(self.problem.limits)
        self._printed = b""
        if self._child is not None:
            self._child.forget_output()

    def _play(self, case: Case) -> CaseResult:
        asked: list[Pair] = []
        verified, failure, latest = 0, None, Latest()
        pairs = list(script(case, self.problem.rules))
        large = case.cpu_seconds is not None
        try:
            child = self._start()
            with one_processor(child.pid):
                self._ask("new", dict(case.parameters))
                for got in self._in_parts(pairs, asked) if large else self._one_by_one(pairs, asked, latest):
                    if not same(asked[-1][1], got):
                        failure = Failure("WA", moves(asked), asked[-1][1], kept(got))
                        break
                    verified += 1
                else:
                    self._ask("drop")
        except Changed as changed:
            failure = Failure("WA", moves(asked), latest.expected, kept(changed.value), CHANGED)
        except TooSlow:  # the same report, wherever in the case its time was up
            verified, failure = 0, Failure("TLE", moves(pairs), None, detail=TOO_SLOW)
        except Stopped as stopped:
            failure = Failure(stopped.verdict, moves(asked), asked[-1][1] if asked else None, detail=stopped.detail)
        if failure is not None and self._child is not None:
            with contextlib.suppress(Stopped):
                self._ask("drop")  # now, so that its end does not fall into the next case
        return CaseResult(case, verified, len(pairs), failure)

    def _one_by_one(self, pairs: list[Pair], asked: list[Pair], latest: Latest) -> Iterator[Any]:
        """The answers; the last of `asked` is the move that each belongs to."""
        for move, expected in pairs:
            asked.append((move, expected))
            if move.step.method == MAKE:
                yield self._ask("new", dict(move.kwargs), move.step.id)
                continue
            given_back = latest.given_back(move)
            yield self._ask("call", move.step.method, move.args, dict(move.kwargs), given_back, move.step.on)
            latest.note(move, expected)

    def _in_parts(self, pairs: list[Pair], asked: list[Pair]) -> Iterator[Any]:
        """The same for a large case, where a message for each call would take more time than the calls."""
        for part in parts(pairs):
            asked += part  # an exception does not tell which of the calls raised it
            answers = self._ask("call_all", [(move.step.method, move.args, dict(move.kwargs)) for move, _ in part])
            if type(answers) is not list or len(answers) != len(part):
                raise Stopped("RTE", NO_REPLY)
            del asked[-len(part) :]
            for pair, answer in zip(part, answers, strict=True):
                asked.append(pair)
                yield answer

    def _died(self, verdict: str) -> None:
        self.restart()
        self._budget.restarts -= 1
        if verdict in ("TLE", "OLE") or self._budget.restarts == 0:
            self._budget.exhausted = verdict

    def _start(self) -> Child:
        if self._broken is not None:
            raise Stopped(self._broken.verdict, self._broken.detail)
        if self._child is None:
            budget = self._budget
            if budget.exhausted:
                raise Stopped(budget.exhausted, NOT_RUN)
            self._child = Child(replace(self.problem.limits, cpu_seconds=LOST_SECONDS))
            self._used = self._child.used()
            try:
                self._ask("load", self.source, self.problem.class_name)
            except Stopped as stopped:
                self._broken = stopped
                raise
        return self._child

    def _ask(self, *message: Any) -> Any:
        """The plain value that comes back; whatever else comes is raised as Stopped, or Changed."""
        child, budget, left = self._child, self._budget, self._time
        assert child is not None
        child.room = budget.output
        started = time.monotonic()
        try:
            reply = child.ask(left.waiting, *message, cpu_seconds=left.cpu)
        except Stopped as stopped:
            if stopped.verdict == "TLE" and left is not budget.time:  # what is left for the other cases remains
                self.restart()
                raise TooSlow("TLE", TOO_SLOW) from None
            self._died(stopped.verdict)
            raise
        finally:
            before, self._used = self._used, child.used()
            left.spend(self._used - before, time.monotonic() - started)
            budget.output = child.room
        if isinstance(reply, Raised):
            if reply.kind == "memory":
                self._died("MLE")  # what filled the memory may still be there
            raise Stopped(*explain(reply, self.source))
        if reply.changed:
            raise Changed(reply.value)
        return reply.value


def moves(pairs: Iterable[Pair]) -> tuple[Move, ...]:
    return tuple(move for move, _ in pairs)


def kept(got: Any) -> Any:
    """A wrong answer as a report keeps it, which may have one for every case."""
    text = repr(got)
    return got if len(text) <= MAX_KEPT else Foreign(type(got).__name__, text[:300] + " ...")


def explain(raised: Raised, source: str) -> tuple[str, str]:
    """Verdict and detail for an exception, with the learner's own lines."""
    lines = source.splitlines()
    code = {number: lines[number - 1].strip()[:120] for number, _ in raised.frames if 0 < number <= len(lines)}
    if raised.kind == "missing":
        return "CE", said(
            f"there is no class {raised.text} in the solution: keep the name that the starter gives it",
            f"答案里没有类 {raised.text}：请保留起始代码里的名字",
        )
    if raised.kind == "syntax":
        where = "".join(f"\n  line {number}\n    {code[number]}" for number, _ in raised.frames if number in code)
        return "CE", f"{raised.type_name}: {raised.text}{where}"
    trace = [f"  line {number}, in {name}\n    {code.get(number, '')}\n" for number, name in raised.frames]
    error = f"{raised.type_name}: {raised.text}" if raised.text else raised.type_name
    if raised.type_name == "SystemExit":
        error += " (the code called sys.exit or exit)"
    stable = re.sub(r"0x[0-9a-fA-F]{6,}", "0x...", error)  # addresses differ from run to run
    told = "".join(trace) + stable
    if raised.type_name == "ModuleNotFoundError":
        told = said(f"{told} (only the standard library is there)", f"{told}（这里只有标准库）")
    return "MLE" if raised.kind == "memory" else "RTE", told
