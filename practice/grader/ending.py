"""How the judge's own processes end when they are told to: never without their children and temporary folders."""

from __future__ import annotations

import signal
import sys
from types import FrameType

SET_DEATH_SIGNAL = 1  # prctl(2)


def as_exceptions() -> None:
    """Let SIGTERM and SIGHUP end this process as an exception does; one that is ignored stays so."""
    for number in _signals():
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def with_parent() -> None:
    """Get SIGTERM when the thread that started this process ends (Linux); elsewhere it comes to its own end."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)


def _signals() -> list[int]:
    return [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _end(number: int, frame: FrameType | None) -> None:
    for each in _signals():
        signal.signal(each, signal.SIG_IGN)  # a second one would interrupt the tidying
    sys.exit(128 + number)
