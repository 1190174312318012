"""Playing cases on a solution in child processes, within limits; each answer is verified against the rules here."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from practice.grader.affinity import one_processor
from practice.grader.contract import Case, CaseResult, Failure, Foreign, Limits, Move, Problem
from practice.grader.play import CHANGED, Latest, same, script
from practice.grader.process import Child, Stopped
from practice.grader.protocol import Raised
from practice.grader.words import said

MAX_KEPT = 100_000  # characters of a wrong answer
NOT_RUN = said("not run, after what earlier cases have used up", "没有运行：前面的用例已经用完了限额")


@dataclass
class Budget:
    """What is left of a problem's limits, and how many times a child may still be replaced."""

    cpu_seconds: float
    wall_seconds: float
    output: int
    restarts: int = 5
    exhausted: str = ""  # the verdict, once a limit was reached

    @classmethod
    def of(cls, limits: Limits) -> Budget:
        return cls(limits.cpu_seconds, 3 * limits.cpu_seconds, limits.output)


class Changed(Exception):
    """A call changed what an earlier one had returned, into `value`."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class Runner:
    """Plays cases on one solution. Without a budget for all of them each case has the whole of the problem's limits.

    The solution's module is loaded once in each child, and a child serves until it dies: a solution that keeps state
    in its class or its module may answer otherwise in a used child than alone. `restart()` makes the next case the
    first of a fresh child.
    """

    def __init__(self, problem: Problem, source: bytes, budget: Budget | None = None) -> None:
        self.problem, self.source = problem, source.decode("utf-8-sig")
        self._shared = budget
        self._budget = budget or Budget.of(problem.limits)
        self._child: Child | None = None
        self._broken: Stopped | None = None  # why the module cannot be loaded, in any child
        self._cases_in_child = 0
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
            self._budget.cpu_seconds -= child.cpu_seconds

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
        used = self._cases_in_child > 0
        result = self._play(case)
        if self._shared is None and used and result.failure and result.failure.verdict == "TLE":
            self._renew()  # earlier cases may have used up the child's CPU time
            result = self._play(case)
        return result

    def answers(self, case: Case) -> tuple[Any, ...] | None:
        """What the solution returns in a case that is not graded; None when it does not come to its end."""
        answers = []
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
        moves: list[Move] = []
        verified, expected, failure, latest = 0, None, None, Latest()
        pairs = script(case, self.problem.rules)
        try:
            child = self._start()
            self._cases_in_child += 1
            with one_processor(child.pid):
                self._ask("new", dict(case.parameters))
                for move, expected in pairs:
                    moves.append(move)
                    given_back = latest.given_back(move)
                    got = self._ask("call", move.step.method, move.args, dict(move.kwargs), given_back)
                    if not same(expected, got):
                        failure = Failure("WA", tuple(moves), expected, kept(got))
                        break
                    latest.note(move, expected)
                    verified += 1
                if failure is None:
                    self._ask("drop")
        except Changed as changed:
            failure = Failure("WA", tuple(moves), latest.expected, kept(changed.value), CHANGED)
        except Stopped as stopped:
            failure = Failure(stopped.verdict, tuple(moves), expected, detail=stopped.detail)
        if failure is not None and self._child is not None:
            with contextlib.suppress(Stopped):
                self._ask("drop")  # now, so that its end does not fall into the next case
        return CaseResult(case, verified, len(moves) + sum(1 for _ in pairs), failure)

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
            self._child = Child(replace(self.problem.limits, cpu_seconds=budget.cpu_seconds))
            self._cases_in_child = 0
            try:
                self._ask("load", self.source, self.problem.class_name)
            except Stopped as stopped:
                self._broken = stopped
                raise
        return self._child

    def _ask(self, *message: Any) -> Any:
        """The plain value that comes back; whatever else comes is raised as Stopped, or Changed."""
        child, budget = self._child, self._budget
        assert child is not None
        child.room = budget.output
        started = time.monotonic()
        try:
            reply = child.ask(budget.wall_seconds, *message)
        except Stopped as stopped:
            self._died(stopped.verdict)
            raise
        finally:
            budget.wall_seconds -= time.monotonic() - started
            budget.output = child.room
        if isinstance(reply, Raised):
            if reply.kind == "memory":
                self._died("MLE")  # what filled the memory may still be there
            raise Stopped(*explain(reply, self.source))
        if reply.changed:
            raise Changed(reply.value)
        return reply.value


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
