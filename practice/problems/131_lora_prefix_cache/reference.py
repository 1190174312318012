from __future__ import annotations

import struct
from collections import OrderedDict
from hashlib import sha256


class PrefixCache:
    """Blocks of KV that are found again by their whole prefix; the free queue is an LRU cache."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.as_bytes = struct.Struct(f"<{block_size}q").pack
        self.num_references = [0] * num_blocks
        self.free_queue = OrderedDict.fromkeys(range(num_blocks))  # the head is reused first
        self.block_key: list[bytes | None] = [None] * num_blocks
        self.key_to_block: dict[bytes, int] = {}

    def keys(self, tokens: list[int], lora_id: int | None) -> list[bytes]:
        """One key for each full block: equal exactly when the adapter and all tokens up to its end are."""
        keys: list[bytes] = []
        key = sha256(repr(lora_id).encode()).digest()  # b"None" and b"0" differ, and every later key hangs on this
        for start in range(0, len(tokens) - self.block_size + 1, self.block_size):
            key = sha256(key + self.as_bytes(*tokens[start : start + self.block_size])).digest()
            keys.append(key)
        return keys

    def hits(self, tokens: list[int], keys: list[bytes]) -> list[int]:
        """The longest run of cached blocks from the first, with at least the last token left to compute."""
        blocks: list[int] = []
        for key in keys[: (len(tokens) - 1) // self.block_size]:
            if key not in self.key_to_block:
                break
            blocks.append(self.key_to_block[key])
        return blocks

    def take(self) -> int:
        """The block at the head of the free queue, which loses its key."""
        block, _ = self.free_queue.popitem(last=False)
        key, self.block_key[block] = self.block_key[block], None
        if key is not None:
            del self.key_to_block[key]
        return block

    def allocate(self, tokens: list[int], lora_id: int | None = None) -> tuple[list[int], int] | None:
        """A block table for the tokens, and how many of them are cached; None if the free blocks do not suffice."""
        keys = self.keys(tokens, lora_id)
        hits = self.hits(tokens, keys)
        num_new = -(-len(tokens) // self.block_size) - len(hits)
        num_available = len(self.free_queue) - sum(self.num_references[block] == 0 for block in hits)
        if num_new > num_available:
            return None  # nothing has been changed so far

        for block in hits:
            self.free_queue.pop(block, None)
        table = hits + [self.take() for _ in range(num_new)]
        for block in table:
            self.num_references[block] += 1
        for key, block in zip(keys, table, strict=False):
            if key not in self.key_to_block:  # the first block that has a key keeps it; a copy stays without
                self.key_to_block[key] = block
                self.block_key[block] = key
        return table, len(hits) * self.block_size

    def free(self, block_table: list[int]) -> None:
        """Give back a table. The last block goes first, so that a child is forgotten before its parent."""
        for block in reversed(block_table):
            self.num_references[block] -= 1
            if self.num_references[block] == 0:
                self.free_queue[block] = None  # its key stays: it can still be hit
