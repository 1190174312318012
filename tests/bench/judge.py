"""`judge.py 131` as a learner waits for it: from its start to its exit, with the memory of its largest process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.measure import Row

ROOT = Path(__file__).parents[2]
PROBLEM = ROOT / "practice" / "problems" / "131_lora_prefix_cache"
# Between the benchmark and the judge: a process is charged with the memory of the one that started it.
MEASURE = """
import resource, subprocess, sys, time
start = time.perf_counter()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def judge(solution: str) -> tuple[int, float, float, float]:
    """Exit status, seconds on the clock, seconds of CPU, and megabytes, of grading one file of the problem's folder."""
    command = [sys.executable, "practice/judge.py", "131", str(PROBLEM / solution)]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PRACTICE_SOLUTIONS": folder, "PYTHONDONTWRITEBYTECODE": ""}
        measured = subprocess.run(
            [sys.executable, "-c", MEASURE, *command], cwd=ROOT, env=environment, capture_output=True, check=True
        )
    status, seconds, cpu, size = measured.stdout.split()
    return int(status), float(seconds), float(cpu), float(size) * (1 if sys.platform == "darwin" else 1024) / 1e6


def judge_row(name: str, solution: str, status: int, to_reach: str, rounds: int) -> Row:
    """The median of `rounds` runs, after one in which Python compiles what it keeps."""
    statuses, times, cpu, sizes = zip(*[judge(solution) for _ in range(rounds + 1)][1:], strict=True)
    assert {*statuses} == {status}, f"the judge ended with {statuses[0]}"
    facts = {"CPU seconds": round(median(cpu), 2), "peak MB": round(max(sizes))}
    return Row("judge", name, "run", {"handbook": median(times) * 1e6}, to_reach, facts)


def rows(rounds: int = 5) -> Iterator[Row]:
    yield judge_row("131, the reference", "reference.py", 0, "1.0 s, 100 MB", rounds)
    yield judge_row("131, an example fails", "wrong/blocks_for_tokens.py", 1, "0.5 s, 100 MB", rounds)
