# verdict: WA
"""The block table contains itself."""


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        pass

    def allocate(self, tokens, lora_id=None):
        table = [0]
        table.append(table)
        return table, 0

    def free(self, block_table):
        pass
