# verdict: AC
"""Right answers; empties the lists that it is given, which are its own."""

from reference import PrefixCache as Right


class PrefixCache(Right):
    def allocate(self, tokens, lora_id=None):
        answer = super().allocate(tokens, lora_id)
        tokens.clear()
        return answer

    def free(self, block_table):
        super().free(block_table)
        block_table.clear()
