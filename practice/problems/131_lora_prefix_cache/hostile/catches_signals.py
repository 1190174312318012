# verdict: TLE
# ruff: noqa: SIM105
"""Catches or blocks every signal that can be caught, and waits for ever."""

import signal

for number in signal.valid_signals():
    try:
        signal.signal(number, lambda *_: None)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        while True:
            pass
