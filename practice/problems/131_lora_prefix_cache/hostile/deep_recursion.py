# verdict: RTE
"""Recursion without an end."""


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        pass

    def allocate(self, tokens, lora_id=None):
        return self.allocate(tokens, lora_id)

    def free(self, block_table):
        pass
