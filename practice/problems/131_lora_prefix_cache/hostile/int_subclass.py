# verdict: WA
"""The right answers, but the count is a subclass of int."""

from reference import PrefixCache as Right


class Count(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


class PrefixCache(Right):
    def allocate(self, tokens, lora_id=None):
        answer = super().allocate(tokens, lora_id)
        return answer and (answer[0], Count(answer[1]))
