# verdict: TLE
"""A regular expression that tries two to the power of forty ways."""

import re


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        re.match(r"(a+)+$", "a" * 40 + "b")
