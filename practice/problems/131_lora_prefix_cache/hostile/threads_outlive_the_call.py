# verdict: AC
"""Right answers; leaves threads behind that never end."""

import threading
import time

from reference import PrefixCache as Right


def linger():
    while True:
        time.sleep(0.05)


class PrefixCache(Right):
    def __init__(self, num_blocks, block_size):
        super().__init__(num_blocks, block_size)
        if threading.active_count() < 5:
            threading.Thread(target=linger).start()
