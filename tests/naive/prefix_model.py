"""What a prefix-caching block pool promises, said without hashes and without speed: the oracle of its tests.

A registered block is known by its WHOLE prefix, as a tuple of tokens, and found by comparing tuples. The free queue
is a list. Nothing is checked: the tests call it with what is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence


class NaivePrefixCache:
    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.holders = [0] * num_blocks
        self.queue = list(range(num_blocks))
        self.prefix_of: dict[int, tuple[int, ...]] = {}  # registered blocks alone
        self.copies: set[int] = set()

    def find(self, prefix: Sequence[int]) -> int | None:
        """The block registered for exactly this prefix."""
        for block, known in self.prefix_of.items():
            if known == tuple(prefix):
                return block
        return None

    def lookup(self, token_ids: Sequence[int]) -> list[int]:
        blocks: list[int] = []
        for end in range(self.block_size, len(token_ids) + 1, self.block_size):
            block = self.find(token_ids[:end])
            if block is None:
                return blocks
            blocks.append(block)
        return blocks

    def touch(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            self.holders[block] += 1
            if block in self.queue:
                self.queue.remove(block)

    def allocate(self, n: int) -> list[int] | None:
        if n > len(self.queue):
            return None
        blocks, self.queue = self.queue[:n], self.queue[n:]
        for block in blocks:
            self.holders[block] = 1
            self.prefix_of.pop(block, None)
            self.copies.discard(block)
        return blocks

    def free(self, blocks: Sequence[int]) -> None:
        for block in reversed(blocks):
            self.holders[block] -= 1
            if self.holders[block] == 0:
                self.queue.append(block)

    def cache_blocks(self, token_ids: Sequence[int], block_ids: Sequence[int], num_computed: int) -> None:
        for index in range(num_computed // self.block_size):
            block, prefix = block_ids[index], tuple(token_ids[: (index + 1) * self.block_size])
            if block in self.prefix_of or block in self.copies:
                continue
            if self.find(prefix) is None:
                self.prefix_of[block] = prefix
            else:
                self.copies.add(block)
