"""Work counted rather than timed: the same on every machine, for any version of a structure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class CountingToken(int):
    """A token that counts how often it is compared. Make new ones for each key: Python takes one object for equal."""

    num_compared = 0

    def __eq__(self, other: object) -> bool:
        CountingToken.num_compared += 1
        return int.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


def comparisons(call: Callable[..., object], *arguments: Any) -> int:
    """Comparisons of `CountingToken`s in a call."""
    before = CountingToken.num_compared
    call(*arguments)
    return CountingToken.num_compared - before


@contextmanager
def counted_visits(node_class: Any) -> Iterator[list[int]]:
    """Counts, in the one item of the list it gives, how often the `children` of any node are read: a visit."""
    children, count = node_class.children, [0]

    def visit(node: Any) -> Any:
        count[0] += 1
        return children.__get__(node)

    node_class.children = property(visit, children.__set__)
    try:
        yield count
    finally:
        node_class.children = children


def visits(node_class: Any, call: Callable[..., object], *arguments: Any) -> int:
    """Visits of nodes in a call."""
    with counted_visits(node_class) as count:
        call(*arguments)
    return count[0]


def lines(call: Callable[..., object], *arguments: Any) -> int:
    """Lines of the handbook that a call executes: a loop over tokens shows, comparing lists does not."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace if frame.f_globals["__name__"].startswith("handbook.") else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(*arguments)
    finally:
        sys.settrace(before)
    return count


class Copied(list[Any]):
    """A list that counts the tokens which are copied out of it, and the slices that were taken."""

    num_tokens = num_slices = 0

    def __getitem__(self, index: Any) -> Any:
        part = list.__getitem__(self, index)
        if isinstance(index, slice):
            Copied.num_tokens += len(part)
            Copied.num_slices += 1
            part = Copied(part)
        return part
