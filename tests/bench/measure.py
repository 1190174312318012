"""Timing in turns, what a benchmark reports, and the facts about the machine that belong beside it."""

from __future__ import annotations

import gc
import os
import platform
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch


@dataclass(frozen=True)
class Row:
    """One piece of work: how long each contestant took for one unit of it, and what the course has set out to reach."""

    subject: str
    name: str
    unit: str  # of which `microseconds` are the time
    microseconds: Mapping[str, float]  # medians, by contestant; without "plain" there is nothing to compare with
    to_reach: str
    facts: Mapping[str, float]  # counts that say what the work was, equal for all contestants

    @property
    def times_faster(self) -> float | None:
        """Throughput of the handbook's version against the plain one, where there is one."""
        return self.microseconds["plain"] / self.microseconds["handbook"] if "plain" in self.microseconds else None


Clock = Callable[[], float]


def seconds(run: Callable[[], object], clock: Clock) -> float:
    """Time of one call, garbage collection left out."""
    gc.collect()
    gc.disable()
    start = clock()
    run()
    elapsed = clock() - start
    gc.enable()
    return elapsed


def in_turns(
    prepare: Mapping[str, Callable[[], Callable[[], object]]], rounds: int, clock: Clock = time.process_time
) -> dict[str, float]:
    """Median seconds of each contestant over `rounds` in which they take turns.

    They are seconds of CPU time, unless another clock is given: what a neighbour takes from us does not count.
    prepare[contestant]() is not timed; what it returns is called once and timed.
    """
    times: dict[str, list[float]] = {name: [] for name in prepare}
    for _ in range(rounds):
        for name, make in prepare.items():
            times[name].append(seconds(make(), clock))
    return {name: median(values) for name, values in times.items()}


def machine() -> dict[str, object]:
    """What the numbers depend on."""
    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text(encoding="utf-8").splitlines() if cpu_info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "load": [round(load, 1) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "openssl": ssl.OPENSSL_VERSION,
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
    }
