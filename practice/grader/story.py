"""What happened in the case that failed, as data: the calls, the rules' state around the last one, and what came back.

Nothing in it depends on the language of the report, or on a clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from practice.grader.case_text import calls, shown
from practice.grader.contract import CaseResult, Foreign, Problem, Table
from practice.grader.play import Objects
from practice.grader.shrink import SHRINKABLE

LONGEST_REPLAY = 1500  # characters; a longer line is no command that one copies
UNSAFE = set('"$`\\!%\n')  # between double quotes some shell would change these


@dataclass(frozen=True)
class Story:
    """A failing case: its last call is the one that went wrong."""

    case_name: str
    calls: tuple[str, ...]  # the constructor, then one for each step that was made; long lists are cut
    shrunk: bool  # whether it is a smaller one than the case that was graded
    num_left_out: int  # calls of that case that are not in it
    before: tuple[Table, ...]  # the rules' state before the last call
    after: tuple[Table, ...]  # and after it; both are empty where the state is too large to help
    expected: str | None  # None: no call was made, or a limit was reached
    got: str | None  # None: nothing came back
    types: tuple[str, str] | None  # of expected and got, where these differ and neither is None
    detail: str  # the learner's traceback, or the limit that was reached
    replay: str | None  # what follows --case on the command line; None: the case has no short form


def tell(result: CaseResult, problem: Problem, original: CaseResult) -> Story:
    """The story of a failed case, which is the `original` one or was shrunk from it."""
    failure = result.failure
    assert failure is not None and original.failure is not None, "a case that passed has no story"
    steps, first_steps = ([move.step for move in each.moves] for each in (failure, original.failure))
    before, after = _state(result, problem) if failure.verdict in SHRINKABLE else ((), ())
    returned = failure.verdict == "WA"
    differ = returned and None not in (failure.expected, failure.got) and _type(failure.got) != _type(failure.expected)
    answered = failure.verdict in SHRINKABLE and bool(steps)
    whole = "; ".join(calls(problem, result.case.parameters, steps))
    return Story(
        result.case.name,
        tuple(calls(problem, result.case.parameters, steps, widest=24)),
        (result.case.parameters, steps) != (original.case.parameters, first_steps),
        len(first_steps) - len(steps),
        before,
        after,
        shown(failure.expected) if answered else None,
        _got(failure.got) if returned else None,
        (_type(failure.expected), _type(failure.got)) if differ else None,
        failure.detail,
        whole if steps and len(whole) <= LONGEST_REPLAY and not UNSAFE & set(whole) else None,
    )


def _state(result: CaseResult, problem: Problem) -> tuple[tuple[Table, ...], tuple[Table, ...]]:
    assert result.failure is not None
    if not result.failure.moves:
        return (), ()
    *earlier, last = result.failure.moves
    rules = Objects(problem.rules, result.case.parameters)
    for move in earlier:
        rules.perform(move.step, move.args, move.kwargs)
    before = tuple(rules.made[last.step.on].tables())
    rules.perform(last.step, last.args, last.kwargs)
    return before, tuple(rules.made[last.step.on].tables())


def _got(value: Any) -> str:
    return f"{value.type_name}: {value.text}" if isinstance(value, Foreign) else shown(value)


def _type(value: Any) -> str:
    return value.type_name if isinstance(value, Foreign) else type(value).__name__
