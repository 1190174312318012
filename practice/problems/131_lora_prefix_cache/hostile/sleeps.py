# verdict: TLE
"""Uses no time of the processor, and never answers."""

import time


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        time.sleep(3600)
