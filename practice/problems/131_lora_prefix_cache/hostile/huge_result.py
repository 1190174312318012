# verdict: WA
"""A block table of millions, a text of millions, an int of a million digits: one after the other."""


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.calls = 0

    def allocate(self, tokens, lora_id=None):
        self.calls += 1
        return [range(0), [0] * 1_000_000, "0" * 10_000_000, 1 << 4_000_000][self.calls % 4], 0

    def free(self, block_table):
        return 1 << 4_000_000
