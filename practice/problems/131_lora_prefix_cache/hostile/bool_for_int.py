# verdict: WA
"""The right answers, but no hit at all is False instead of 0."""

from reference import PrefixCache as Right


class PrefixCache(Right):
    def allocate(self, tokens, lora_id=None):
        answer = super().allocate(tokens, lora_id)
        return answer and (answer[0], answer[1] or False)
