# verdict: WA
"""The right answers, but the block table is a subclass of list."""

from reference import PrefixCache as Right


class Table(list):
    pass


class PrefixCache(Right):
    def allocate(self, tokens, lora_id=None):
        answer = super().allocate(tokens, lora_id)
        return answer and (Table(answer[0]), answer[1])
