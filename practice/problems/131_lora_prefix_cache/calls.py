"""Writing down the calls of a case of problem 131."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from practice.grader.contract import Case, Result, Step


class Calls:
    """The calls of a case, written down in order."""

    def __init__(self, name: str, num_blocks: int, block_size: int) -> None:
        self.name, self.parameters = name, {"num_blocks": num_blocks, "block_size": block_size}
        self.steps: list[Step] = []

    def allocate(self, tokens: Sequence[int], **lora_id: int | None) -> Result:
        return self.call("allocate", list(tokens), **lora_id)

    def free(self, *allocated: Result) -> None:
        for result in allocated:
            self.call("free", Result(result.step, 0))

    def call(self, method: str, *args: Any, **kwargs: Any) -> Result:
        self.steps.append(Step(len(self.steps), method, args, kwargs))
        return Result(len(self.steps) - 1)

    def case(self) -> Case:
        return Case(self.name, self.parameters, tuple(self.steps))
