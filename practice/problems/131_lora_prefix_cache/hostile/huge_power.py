# verdict: TLE
"""A single operation that Python cannot interrupt."""


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.number = pow(7, 10**9)
