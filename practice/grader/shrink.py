"""The smallest story: a failing case made smaller for as long as it still fails in the same way.

Candidates leave out steps, shorten lists, lower numbers. The rules are the oracle of each, so a candidate that they do
not accept is none. Work is bounded by counting trials and the values sent, never by a clock: the same submission
gives the same story.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from practice.grader.contract import MAKE, Case, CaseResult, Problem, Step
from practice.grader.play import script

TRIALS = 400
VALUES = 200_000  # in all trials together; keeps a large case from taking seconds
SHRINKABLE = ("WA", "RTE")  # the others reach a limit, and each trial would take as long as that takes

Run = Callable[[Case], CaseResult]


def shrink(result: CaseResult, problem: Problem, run: Run, trials: int = TRIALS) -> CaseResult:
    """The smallest case that was found to fail with the same verdict, in the same method; at worst the given one."""
    if result.failure is None or result.failure.verdict not in SHRINKABLE or not result.failure.moves:
        return result
    search = _Search(_cut(result), problem, run, trials)
    while search.improve():
        pass
    return search.best


def kind(result: CaseResult) -> tuple[Any, ...] | None:
    """What stays the same while a failure shrinks; None is no failure.

    Beside the verdict: the method, the type of the exception, and whether None was due and whether None came, since a
    story of a wrong hit must not turn into one of a pool that is too small.
    """
    failure = result.failure
    if failure is None:
        return None
    method = failure.moves[-1].step.method if failure.moves else ""
    exception = failure.detail.strip().rpartition("\n")[2].partition(":")[0] if failure.verdict == "RTE" else ""
    return failure.verdict, method, exception, failure.expected is None, failure.got is None


def _cut(result: CaseResult) -> CaseResult:
    """Without the steps that were not made: those after the failure, and those whose table was never returned."""
    assert result.failure is not None
    steps = tuple(move.step for move in result.failure.moves)
    return replace(result, case=replace(result.case, steps=steps))


class _Search:
    def __init__(self, best: CaseResult, problem: Problem, run: Run, trials: int) -> None:
        self.best, self.problem, self.run = best, problem, run
        self.trials, self.values, self.kind = trials, VALUES, kind(best)
        self.seen = {repr(best.case)}

    def improve(self) -> bool:
        """Go through all ways of making the case smaller once; whether one did."""
        before = self.best
        for way in WAYS:
            self._follow(way)
        return self.best is not before

    def _follow(self, way: Callable[[Case], Iterator[Case]]) -> None:
        """Take the first candidate that still fails, then look for candidates of that one, until none does."""
        position = 0
        while self.trials > 0:
            for index, candidate in enumerate(way(self.best.case)):
                # What failed before the last success is not tried again at once: `improve` comes back to it.
                if index >= position and self._still_fails(candidate):
                    position = index
                    break
            else:
                return

    def _still_fails(self, case: Case) -> bool:
        key = repr(case)
        if key in self.seen or self.trials <= 0:
            return False
        self.seen.add(key)
        try:
            moves = [move for move, _ in script(case, self.problem.rules)]
        except Exception:
            return False  # no case of this problem
        self.values -= sum(1 + _size(move.args) + _size(tuple(move.kwargs.values())) for move in moves)
        self.trials = self.trials - 1 if self.values > 0 else 0
        if not moves or self.values <= 0:
            return False
        result = self.run(case)
        if result.failure is not None and result.failure.verdict not in SHRINKABLE:
            self.trials = 0  # it costs a limit's time, and others like it would, too
        if result.failure is None or kind(result) != self.kind:
            return False
        self.best = _cut(result)
        return True


def _size(value: Any) -> int:
    return sum(map(_size, value)) if isinstance(value, (list, tuple)) else 1


def _chunks(length: int) -> Iterator[slice]:
    """Parts of a sequence from its end on: halves, quarters, ..., single items."""
    size = max(length // 2, min(length, 1))
    while size > 0:
        for stop in range(length, 0, -size):
            yield slice(max(0, stop - size), stop)
        size //= 2


def _fewer_steps(case: Case) -> Iterator[Case]:
    """The last step stays: it went wrong. Playing leaves out what takes the result of one that is gone."""
    for part in _chunks(len(case.steps) - 1):
        yield replace(case, steps=case.steps[: part.start] + case.steps[part.stop :])


def _lower(number: int) -> Iterator[int]:
    """Smaller positive numbers, the smallest first; a large one is not counted down."""
    if number > 1:
        yield from sorted({1, number // 2, number - 1 if number <= 16 else 1})


def _smaller_parameters(case: Case) -> Iterator[Case]:
    for name, value in case.parameters.items():
        rest = {key: other for key, other in case.parameters.items() if key != name}
        yield _with_parameters(case, rest)  # the default; refused by the rules where there is none
        if type(value) is int:
            for lower in _lower(value):
                yield _with_parameters(case, {**case.parameters, name: lower})


def _smaller_scale(case: Case) -> Iterator[Case]:
    """A block of half the size, and every second token: what was a common prefix remains one."""
    for name, value in case.parameters.items():
        if type(value) is int and value > 1:
            smaller = _each_list(case, lambda items: items[::2])
            yield _with_parameters(smaller, {**case.parameters, name: value // 2})


def _with_parameters(case: Case, parameters: Mapping[str, Any]) -> Case:
    """The same for all objects of the case."""
    steps = (replace(step, kwargs=parameters) if step.method == MAKE else step for step in case.steps)
    return replace(case, parameters=parameters, steps=tuple(steps))


def _shorter_lists(case: Case) -> Iterator[Case]:
    for number in _numbers(case):  # one token gone everywhere keeps common prefixes common
        yield _each_list(case, partial(_without, number))
    for index, step in enumerate(case.steps):
        for place, value in _arguments(step):
            if isinstance(value, list) and len(value) > 1:
                for part in _chunks(len(value)):
                    if shorter := value[: part.start] + value[part.stop :]:
                        yield _with(case, index, place, shorter)


def _plain_arguments(case: Case) -> Iterator[Case]:
    for index, step in enumerate(case.steps):
        for place, value in _arguments(step) if step.method != MAKE else ():
            if isinstance(place, str):
                kwargs = {name: other for name, other in step.kwargs.items() if name != place}
                yield _with_step(case, index, replace(step, kwargs=kwargs))
            if type(value) is int:
                for lower in (0, *_lower(value)):
                    yield _with(case, index, place, lower)


def _small_numbers(case: Case) -> Iterator[Case]:
    """Tokens 1, 2, 3, ... in order of appearance: all at once, else one by one."""
    numbers = _numbers(case)
    new = dict(zip(numbers, count(1)))
    yield _each_list(case, partial(_renamed, new))
    free = (number for number in count(1) if number not in numbers)
    for number in numbers:
        if number > len(numbers):
            small = next(free)
            yield _each_list(case, partial(_renamed, {number: small}))


def _without(number: int, items: list[Any]) -> list[Any]:
    return [item for item in items if item != number] or items


def _renamed(new: Mapping[int, int], items: list[Any]) -> list[Any]:
    return [new.get(item, item) if type(item) is int else item for item in items]


def _numbers(case: Case) -> list[int]:
    """The different ints in the case's lists, in order of appearance."""
    lists = (value for step in case.steps for _, value in _arguments(step) if isinstance(value, list))
    return list(dict.fromkeys(item for items in lists for item in items if type(item) is int))


def _arguments(step: Step) -> Iterator[tuple[int | str, Any]]:
    yield from enumerate(step.args)
    yield from step.kwargs.items()


def _each_list(case: Case, change: Callable[[list[Any]], list[Any]]) -> Case:
    for index, step in enumerate(case.steps):
        for place, value in _arguments(step):
            if isinstance(value, list):
                case = _with(case, index, place, change(value))
    return case


def _with(case: Case, index: int, place: int | str, value: Any) -> Case:
    step = case.steps[index]
    if isinstance(place, str):
        return _with_step(case, index, replace(step, kwargs={**step.kwargs, place: value}))
    args = tuple(value if position == place else old for position, old in enumerate(step.args))
    return _with_step(case, index, replace(step, args=args))


def _with_step(case: Case, index: int, step: Step) -> Case:
    return replace(case, steps=tuple(step if position == index else old for position, old in enumerate(case.steps)))


WAYS = (_fewer_steps, _smaller_parameters, _smaller_scale, _shorter_lists, _plain_arguments, _small_numbers)
