"""The textbook prefix-caching block pool: baseline of the benchmark, and what people write first.

It hashes the whole sequence anew at every look-up and every registration, with Python's `hash`, which is fast and
unsafe: `hash(1) == hash(1 + 2**61 - 1)`, so a prompt can be made that hits another one's blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


class PlainBlockPool:
    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.ref_cnt = [0] * num_blocks
        self.free_queue: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))
        self.block_hash: list[int | None] = [None] * num_blocks
        self.hash_to_block: dict[int, int] = {}

    def block_hashes(self, token_ids: Sequence[int]) -> list[int]:
        hashes: list[int] = []
        parent = 0
        for start in range(0, len(token_ids) - self.block_size + 1, self.block_size):
            parent = hash((parent, tuple(token_ids[start : start + self.block_size])))
            hashes.append(parent)
        return hashes

    def lookup(self, token_ids: Sequence[int]) -> list[int]:
        blocks: list[int] = []
        for block_hash in self.block_hashes(token_ids):
            if block_hash not in self.hash_to_block:
                break
            blocks.append(self.hash_to_block[block_hash])
        return blocks

    def touch(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            if self.ref_cnt[block] == 0:
                del self.free_queue[block]
            self.ref_cnt[block] += 1

    def allocate(self, n: int) -> list[int] | None:
        if n > len(self.free_queue):
            return None
        blocks = []
        for _ in range(n):
            block, _ = self.free_queue.popitem(last=False)
            block_hash = self.block_hash[block]
            if block_hash is not None:
                del self.hash_to_block[block_hash]
                self.block_hash[block] = None
            self.ref_cnt[block] = 1
            blocks.append(block)
        return blocks

    def free(self, blocks: Sequence[int]) -> None:
        for block in reversed(blocks):
            self.ref_cnt[block] -= 1
            if self.ref_cnt[block] == 0:
                self.free_queue[block] = None

    def cache_blocks(self, token_ids: Sequence[int], block_ids: list[int], num_computed: int) -> list[int]:
        for block, block_hash in zip(block_ids, self.block_hashes(token_ids[:num_computed]), strict=False):
            if self.block_hash[block] is None and block_hash not in self.hash_to_block:
                self.hash_to_block[block_hash] = block
                self.block_hash[block] = block_hash
        return block_ids
