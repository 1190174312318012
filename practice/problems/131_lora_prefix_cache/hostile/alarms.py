# verdict: AC
"""Right answers, while an alarm rings every few milliseconds."""

import signal

from reference import PrefixCache  # noqa: F401

signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
