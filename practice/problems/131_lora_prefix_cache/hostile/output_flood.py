# verdict: OLE
"""Prints without an end."""


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        while True:
            print("so much to say")
