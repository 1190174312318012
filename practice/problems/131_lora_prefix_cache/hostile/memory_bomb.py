# verdict: MLE
"""Asks for all memory at once."""


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.memory = bytearray(1 << 40)
