"""What a solution may still use."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from practice.grader.contract import Limits

# Waiting, in seconds of CPU that are allowed. Where these can be measured, it stops what sleeps and need not be near.
WAITING = 6 if sys.platform == "linux" else 3
PROMPT = 0.02  # seconds within which a reply costs no waiting: on a busy machine each one comes a little late


@dataclass
class Time:
    """Seconds that are left: of CPU, and of waiting for replies."""

    cpu: float
    waiting: float

    @classmethod
    def of(cls, cpu_seconds: float) -> Time:
        return cls(cpu_seconds, WAITING * cpu_seconds)

    def spend(self, cpu: float, waiting: float) -> None:
        self.cpu -= cpu
        self.waiting -= max(0.0, waiting - PROMPT)


@dataclass
class Budget:
    """What is left of a problem's limits, and how many times a child may still be replaced."""

    time: Time
    output: int
    restarts: int = 5
    exhausted: str = ""  # the verdict, once a limit was reached

    @classmethod
    def of(cls, limits: Limits) -> Budget:
        return cls(Time.of(limits.cpu_seconds), limits.output)
