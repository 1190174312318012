# verdict: RTE
"""Recursion in C, beyond the limit that protects the stack."""

import sys

sys.setrecursionlimit(1 << 30)


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        one, other = [], []
        for _ in range(200_000):
            one, other = [one], [other]
        self.same = one == other
