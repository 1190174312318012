"""Writing down the calls of a case of problem 130."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from practice.grader.contract import MAKE, Case, Result, Step


class Calls:
    """The calls of a case, written down in order."""

    def __init__(self, name: str, num_workers: int, **parameters: float) -> None:
        self.name, self.parameters = name, {"num_workers": num_workers, **parameters}
        self.steps: list[Step] = []
        self.on: int | None = None  # which object is called

    def route(self, *prompts: Sequence[int]) -> Result:
        """Route the prompts one after another; the result of the last."""
        for tokens in prompts:
            self._call("route", list(tokens))
        return Result(len(self.steps) - 1)

    def finish(self, *routed: Result) -> None:
        for result in routed:
            self._call("finish", result)

    def serve(self, *prompts: Sequence[int]) -> None:
        """Route each prompt and finish it at once."""
        for tokens in prompts:
            self.finish(self.route(tokens))

    def _call(self, method: str, *args: Any) -> None:
        self.steps.append(Step(len(self.steps), method, args, on=self.on))

    def other(self) -> Calls:
        """Make another object with the same parameters; what is called on it is written down in the same case."""
        twin = copy(self)
        twin.on = len(self.steps)
        self.steps.append(Step(twin.on, MAKE, kwargs=self.parameters))
        return twin

    def case(self, cpu_seconds: float | None = None) -> Case:
        return Case(self.name, self.parameters, tuple(self.steps), cpu_seconds)
