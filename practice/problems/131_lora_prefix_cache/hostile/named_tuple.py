# verdict: WA
"""The right answers, but the pair is a named tuple."""

from collections import namedtuple

from reference import PrefixCache as Right

Answer = namedtuple("Answer", "table cached")


class PrefixCache(Right):
    def allocate(self, tokens, lora_id=None):
        answer = super().allocate(tokens, lora_id)
        return answer and Answer(*answer)
