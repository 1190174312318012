"""Writing down the calls of a case of problem 131."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from practice.grader.contract import MAKE, Case, Result, Step


class Calls:
    """The calls of a case, written down in order."""

    def __init__(self, name: str, num_blocks: int, block_size: int) -> None:
        self.name, self.parameters = name, {"num_blocks": num_blocks, "block_size": block_size}
        self.steps: list[Step] = []
        self.on: int | None = None  # which object is called

    def allocate(self, tokens: Sequence[int], **lora_id: int | None) -> Result:
        return self.call("allocate", list(tokens), **lora_id)

    def free(self, *allocated: Result) -> None:
        for result in allocated:
            self.call("free", Result(result.step, 0))

    def call(self, method: str, *args: Any, **kwargs: Any) -> Result:
        self.steps.append(Step(len(self.steps), method, args, kwargs, self.on))
        return Result(len(self.steps) - 1)

    def other(self) -> Calls:
        """Make another object with the same parameters; what is called on it is written down in the same case."""
        twin = copy(self)
        twin.on = len(self.steps)
        self.steps.append(Step(twin.on, MAKE, kwargs=self.parameters))
        return twin

    def case(self, cpu_seconds: float | None = None) -> Case:
        return Case(self.name, self.parameters, tuple(self.steps), cpu_seconds)
