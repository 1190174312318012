"""Playing a case: what is called, with which values, and whether what came back is what the rules return."""

from __future__ import annotations

import marshal
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from practice.grader.contract import Case, CaseResult, Failure, Move, Result

PLAIN = (type(None), bool, int, float, str, list, tuple)


def script(case: Case, rules: Callable[..., Any]) -> Iterator[tuple[Move, Any]]:
    """The moves of a case, each with what the rules return. The rules make a move when the next one is asked for."""
    judge, results = rules(**copied(dict(case.parameters))), dict[int, Any]()
    for step in case.steps:
        if any(results.get(used) is None for used in step.uses()):
            continue
        args = tuple(_value(argument, results) for argument in step.args)
        kwargs = {name: _value(argument, results) for name, argument in step.kwargs.items()}
        results[step.id] = getattr(judge, step.method)(*copied(args), **copied(kwargs))
        yield Move(step, args, kwargs), results[step.id]


def copied(value: Any) -> Any:
    """A deep copy of plain data, many times as fast as that of `copy`."""
    return marshal.loads(marshal.dumps(value))


def _value(argument: Any, results: Mapping[int, Any]) -> Any:
    if not isinstance(argument, Result):
        return argument
    return results[argument.step] if argument.item is None else results[argument.step][argument.item]


def same(expected: Any, got: Any) -> bool:
    """Equal as plain data, type by type: True is not 1, a list is no tuple, a subclass of int is no int."""
    assert isinstance(expected, PLAIN), f"the rules returned a {type(expected).__name__}, which is no plain data"
    if type(expected) is not type(got):
        return False
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(map(same, expected, got))
    return bool(expected == got)


def play(case: Case, rules: Callable[..., Any], make: Callable[..., Any]) -> CaseResult:
    """Play a case on an object of TRUSTED code, in this process: our reference, a catalogued solution."""
    moves: list[Move] = []
    pairs = list(script(case, rules))
    expected: Any = None
    try:
        solution = make(**copied(dict(case.parameters)))
        for move, expected in pairs:
            moves.append(move)
            got = getattr(solution, move.step.method)(*copied(move.args), **copied(dict(move.kwargs)))
            if not same(expected, got):
                return CaseResult(case, len(moves) - 1, len(pairs), Failure("WA", tuple(moves), expected, got))
    except Exception:
        failure = Failure("RTE", tuple(moves), expected, detail=traceback.format_exc())
        return CaseResult(case, max(0, len(moves) - 1), len(pairs), failure)
    return CaseResult(case, len(pairs), len(pairs), None)
