# verdict: TLE
# ruff: noqa: SIM105
"""Tries to lift the limits that it runs under, ignores the signal that would tell of them, and computes for ever."""

import resource
import signal

for limit in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
    try:
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        pass
signal.signal(signal.SIGXCPU, signal.SIG_IGN)


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        while True:
            pass
