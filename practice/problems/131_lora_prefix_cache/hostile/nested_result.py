# verdict: WA
"""The block table is a list in a list in a list, a hundred thousand times."""


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        pass

    def allocate(self, tokens, lora_id=None):
        table = []
        for _ in range(100_000):
            table = [table]
        return table, 0

    def free(self, block_table):
        pass
