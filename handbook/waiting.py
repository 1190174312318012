"""What a scheduling policy is asked, and what it may know: the waiting requests, and in which order to admit them.

The idea: a policy sees neither engine nor pool, only these views. So one policy orders the queue of the real engine
and that of a simulation. It decides who is computed when, never what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol


@dataclass(eq=False)
class Waiting:
    """A waiting request as a policy sees it. Counts are in tokens."""

    request: Any  # the caller's own object
    key: Sequence[Hashable]  # the prompt: equal beginnings of two keys are a prefix that they share
    num_tokens: int
    max_tokens: int  # of the answer, at most
    waited: int  # what was computed since it came: a clock that does not depend on the machine
    look_up: Callable[[Any], int]  # from the request to its cached tokens
    block_size: int = 1  # tokens that each item of the key stands for

    @cached_property
    def num_cached(self) -> int:
        """How many of its tokens are cached now. The cache is asked when a policy wants to know, and once."""
        return self.look_up(self.request)

    @property
    def num_uncached(self) -> int:
        return self.num_tokens - self.num_cached


class Policy(Protocol):
    """Who is admitted next."""

    def order(self, queue: Sequence[Waiting]) -> list[Waiting]:
        """Called once a step, with the waiting requests in order of arrival: the same in order of admission."""


def ordered(queue: list[Waiting], policy: Policy) -> list[Any]:
    """The requests of queue as policy wants them. One that is lost or doubled is a ValueError."""
    order = policy.order(queue)
    if len(order) != len(queue) or set(order) != set(queue):
        raise ValueError(
            f"{type(policy).__name__}.order must return each waiting request exactly once: given {len(queue)}, it "
            f"returned a list of {len(order)} with {len(set(order) & set(queue))} of them."
        )
    return [waiting.request for waiting in order]
