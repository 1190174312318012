# verdict: WA
"""The answer says that its class is tuple, behaves like the right one, and has a name that cannot be asked for."""

from reference import PrefixCache as Right


class Meta(type):
    def __getattribute__(cls, name):
        raise RuntimeError(name)


class Pair(metaclass=Meta):
    def __init__(self, answer):
        self.answer = answer

    @property
    def __class__(self):
        return tuple

    def __len__(self):
        return 2

    def __getitem__(self, at):
        return self.answer[at]

    def __eq__(self, other):
        return self.answer == other

    def __hash__(self):
        return 0

    def __repr__(self):
        raise SystemExit(0)


class PrefixCache(Right):
    def allocate(self, tokens, lora_id=None):
        answer = super().allocate(tokens, lora_id)
        return answer and Pair(answer)
