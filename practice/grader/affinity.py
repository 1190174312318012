"""Two processes that take turns belong on one processor (Linux): waking the other on another takes ten times longer."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def one_processor(pid: int) -> Iterator[None]:
    """Keep the calling thread, and process `pid` from now on, where the thread runs; the thread is free again after."""
    if sys.platform == "linux":
        before = os.sched_getaffinity(0)
        try:
            processor = int(Path("/proc/thread-self/stat").read_text(errors="replace").rpartition(")")[2].split()[36])
            os.sched_setaffinity(pid, {processor})
            os.sched_setaffinity(0, {processor})
        except OSError:  # a matter of speed alone
            pass
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)
    else:
        yield
