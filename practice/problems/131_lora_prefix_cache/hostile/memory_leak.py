# verdict: MLE
"""Fills the memory piece by piece, and keeps it."""

kept = []


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        while True:
            kept.append(bytes(1 << 20))
