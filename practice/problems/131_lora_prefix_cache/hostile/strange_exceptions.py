# verdict: RTE
"""Raises what is no Exception, and cannot be shown either."""


class Strange(BaseException):
    def __str__(self):
        raise self

    __repr__ = __str__

    def __getattribute__(self, name):
        raise SystemExit(0)


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        raise Strange
