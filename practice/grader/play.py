"""Playing a case: what is called, with which values, and whether what came back is what the rules return."""

from __future__ import annotations

import marshal
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from practice.grader.contract import MAKE, Case, CaseResult, Failure, Move, Result, Step
from practice.grader.words import said

CHANGED = said(
    "This call changed the list that an earlier call returned: above are what it was and what it has become. "
    "A list that was returned is the caller's; return another one each time.",
    "这次调用改动了前面某次调用返回的列表：上面是它原来的样子和现在的样子。列表一经返回就归调用者所有，每次都应返回新的。",
)
Pair = tuple[Move, Any]  # a move, and what it must return
MOST_AT_ONCE = 250  # moves in one part
PLAIN = (type(None), bool, int, float, str, list, tuple)


class Objects:
    """The objects of a case, by the ids of the steps that made them; None is the one that it starts with."""

    def __init__(self, make: Callable[..., Any], parameters: Mapping[str, Any]) -> None:
        self.make = make
        self.made: dict[int | None, Any] = {None: make(**copied(dict(parameters)))}

    def perform(self, step: Step, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Make the step's call with these arguments, which it may change, and return what it returns."""
        if step.method == MAKE:
            self.made[step.id] = self.make(*copied(args), **copied(dict(kwargs)))
            return None
        return getattr(self.made[step.on], step.method)(*copied(args), **copied(dict(kwargs)))


def script(case: Case, rules: Callable[..., Any]) -> Iterator[Pair]:
    """The moves of a case, each with what the rules return. The rules make a move when the next one is asked for."""
    judge, results = Objects(rules, case.parameters), dict[int, Any]()
    for step in case.steps:
        if step.on not in judge.made or any(results.get(used) is None for used in step.uses()):
            continue
        args = tuple(_value(argument, results) for argument in step.args)
        kwargs = {name: _value(argument, results) for name, argument in step.kwargs.items()}
        results[step.id] = judge.perform(step, args, kwargs)
        yield Move(step, args, kwargs), results[step.id]


def parts(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """The moves in parts, none of which takes what another one in its part returns, so that no answer is given away."""
    part, ids = list[Pair](), set[int]()
    for move, expected in pairs:
        if len(part) == MOST_AT_ONCE or not ids.isdisjoint(move.step.uses()):
            yield part
            part, ids = [], set()
        part.append((move, expected))
        ids.add(move.step.id)
    if part:
        yield part


def copied(value: Any) -> Any:
    """A deep copy of plain data, many times as fast as that of `copy`."""
    return marshal.loads(marshal.dumps(value))


def _value(argument: Any, results: Mapping[int, Any]) -> Any:
    if not isinstance(argument, Result):
        return argument
    return results[argument.step] if argument.item is None else results[argument.step][argument.item]


def same(expected: Any, got: Any) -> bool:
    """Equal as plain data, type by type: True is not 1, a list is no tuple, a subclass of int is no int."""
    kind = type(expected)
    assert kind in PLAIN, f"the rules returned a {kind.__name__}, which is no plain data"
    if type(got) is not kind:
        return False
    if kind is list or kind is tuple:
        if {*map(type, expected), *map(type, got)} == {int}:  # most of them, at the speed of C
            return bool(expected == got)
        return len(expected) == len(got) and all(map(same, expected, got))
    return bool(expected == got)


class Latest:
    """The list or tuple that was returned last: the caller's, so no later call changes it, unless it is given back."""

    step: int | None = None
    expected: Any = None
    got: Any = None

    def given_back(self, move: Move) -> bool:
        """Whether the move takes it as an argument; from then on it may be anything."""
        if self.step is None or self.step not in move.step.uses():
            return False
        self.step = self.expected = self.got = None
        return True

    def note(self, move: Move, expected: Any, got: Any = None) -> None:
        if isinstance(expected, list | tuple):
            self.step, self.expected, self.got = move.step.id, expected, got


def play(case: Case, rules: Callable[..., Any], make: Callable[..., Any]) -> CaseResult:
    """Play a case on an object of TRUSTED code, in this process: our reference, a catalogued solution."""
    return compare(case, list(script(case, rules)), make)


def compare(case: Case, pairs: Sequence[Pair], make: Callable[..., Any]) -> CaseResult:
    """The same where the case's script is there already."""
    moves: list[Move] = []
    expected: Any = None
    latest = Latest()
    try:
        solution = Objects(make, case.parameters)
        for move, expected in pairs:
            moves.append(move)
            latest.given_back(move)
            got = solution.perform(move.step, move.args, move.kwargs)
            if not same(latest.expected, latest.got):
                failure = Failure("WA", tuple(moves), latest.expected, copied(latest.got), CHANGED)
                return CaseResult(case, len(moves) - 1, len(pairs), failure)
            if not same(expected, got):
                return CaseResult(case, len(moves) - 1, len(pairs), Failure("WA", tuple(moves), expected, got))
            latest.note(move, expected, got)
    except Exception:
        failure = Failure("RTE", tuple(moves), expected, detail=traceback.format_exc())
        return CaseResult(case, max(0, len(moves) - 1), len(pairs), failure)
    return CaseResult(case, len(pairs), len(pairs), None)
