# verdict: RTE
"""Recursion in C, beyond the limit that protects the stack."""

import sys

sys.setrecursionlimit(1 << 30)


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        nested = []
        for _ in range(300_000):
            nested = [nested]
        repr(nested)
