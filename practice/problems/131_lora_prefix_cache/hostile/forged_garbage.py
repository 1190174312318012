# verdict: RTE
"""Writes what is no reply at all: a length beyond all bounds, lists without end, an int of a million digits."""

import os


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        pass

    def allocate(self, tokens, lora_id=None):
        for text in (b"[" * 60_000, b"9" * 60_000, b'{"t":' * 10_000, b"\xff\xfe"):
            for file in range(3, 64):
                try:
                    os.write(file, len(text).to_bytes(4, "big") + text)
                    os.write(file, b"\xff" * 4)
                except OSError:
                    pass
        return [], 0

    def free(self, block_table):
        pass
