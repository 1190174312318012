"""Processes that a child has started and that left its process group, where no filter forbids starting them (Linux).

While such a child runs, its orphans become children of the judge (a subreaper), which knows them by a token in the
environment that they inherited, and kills them. Source: prctl(2), PR_SET_CHILD_SUBREAPER.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

SET_SUBREAPER, GET_SUBREAPER = 36, 37


def new_token() -> str:
    return os.urandom(8).hex()


def adopt_orphans(adopt: bool) -> bool:
    """Whether orphans of this process' children become its own children, from now on; returns what it was before."""
    import ctypes

    libc, before = ctypes.CDLL(None), ctypes.c_int()
    libc.prctl(GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(SET_SUBREAPER, int(adopt), 0, 0, 0)
    return bool(before.value)


def end_orphans(token: str, group: int) -> int:
    """Kill and reap all children of this process that carry the token, and then theirs; returns how many.

    One that was killed with its process group has no environment any more: it is known by the group.
    """
    ended = 0
    while found := [pid for pid in children() if _carries(pid, token) or _stat(Path(f"/proc/{pid}"), 2) == group]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                ended += 1
    return ended


def children() -> list[int]:
    """The processes that this one has started or adopted, also those that have ended and are not yet reaped."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _stat(path, 1) == os.getpid()]


def _stat(process: Path, field: int) -> int | None:
    """A field of /proc/PID/stat, counted behind the name: 1 is the parent, 2 the process group."""
    with contextlib.suppress(OSError):
        return int((process / "stat").read_text(errors="replace").rpartition(")")[2].split()[field])
    return None


def _carries(pid: int, token: str) -> bool:
    with contextlib.suppress(OSError):
        return token.encode() in Path(f"/proc/{pid}/environ").read_bytes()
    return False
