"""Prefix caching with hash blocks: a full block is found again by a hash of everything up to its end.

The idea: K and V of a token depend on all tokens before it, so a block may be reused only after the same whole
prefix. A chained hash says that in 32 bytes: sha256 over the parent's digest and the block's own tokens.
The free queue is the cache: a freed block keeps content and hash until it is handed out again, and since it
enters at the tail and leaves at the head, the least recently used block is the first to be forgotten.

Invariants, besides those of `BlockPool`: `hash_to_block` and `block_hash` are inverse to each other; a free block
may have a hash, and can be hit; `allocate` is the only place where a hash is lost.
Source: vLLM 0.33.0, `BlockPool` (block_pool.py) and `hash_block_tokens` (kv_cache_utils.py) in vllm/v1/core.
"""

# Woven from notebooks/zh/03_hash_blocks.ipynb by make build: edit it there.

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import chain

from handbook.paged import BlockPool, CachingBlockPool

ROOT = b"\x00" * 32  # the parent of a first block, in every process and on every machine


def token_bytes(token_ids: Sequence[int]) -> bytes:
    """Token ids as bytes, 64-bit little-endian each."""
    try:
        return struct.pack(f"<{len(token_ids)}q", *token_ids)
    except struct.error:
        raise ValueError(f"token ids must be whole numbers below 2**63; got {list(token_ids)}.") from None


def hash_block(parent: bytes, tokens: bytes) -> bytes:
    """The 32-byte digest of a block: sha256 over its parent's digest and its tokens' bytes."""
    return sha256(parent + tokens).digest()


class PrefixCachingBlockPool(CachingBlockPool):
    """A `BlockPool` that finds full blocks again by their whole prefix."""

    def __init__(self, num_blocks: int, block_size: int = 16) -> None:
        CachingBlockPool.__init__(self, num_blocks, block_size)
        self.block_hash: list[bytes | None] = [None] * num_blocks
        self.hash_to_block: dict[bytes, int] = {}
        self.copies: dict[int, bytes] = {}  # the hash of each block computed though another one has that hash

    @property
    def num_cached_blocks(self) -> int:
        """Blocks that a look-up can find, whether somebody holds them or not."""
        return len(self.hash_to_block)

    def block_hashes(self, token_ids: Sequence[int]) -> list[bytes]:
        """One hash for each full block of token_ids; equal hash means equal whole prefix."""
        return list(self._hashes_after([], token_ids))

    def extend_hashes(self, hashes: list[bytes], token_ids: Sequence[int]) -> None:
        """Append the hashes of the full blocks that `hashes`, a request's list so far, does not cover yet."""
        if len(token_ids) // self.block_size > len(hashes):
            hashes += self._hashes_after(hashes, token_ids)

    def _hashes_after(self, known: Sequence[bytes], token_ids: Sequence[int]) -> Iterator[bytes]:
        parent = known[-1] if known else ROOT
        first, last = len(known) * self.block_size, len(token_ids) // self.block_size * self.block_size
        tokens, width = token_bytes(token_ids[first:last]), 8 * self.block_size
        for start in range(0, len(tokens), width):
            parent = hash_block(parent, tokens[start : start + width])
            yield parent

    def cache_blocks(
        self, token_ids: Sequence[int], block_ids: list[int], num_computed: int, hashes: Sequence[bytes] | None = None
    ) -> list[int]:
        """Register the full blocks among the first num_computed tokens; returns the block ids to use from now on.

        A hash that is registered keeps its block; the block computed beside it stays an anonymous copy. Work is done
        for blocks that were not seen here before, so registering after each token costs the same at any length.
        """
        num_full = num_computed // self.block_size
        if not 0 <= num_computed <= len(token_ids) or len(block_ids) < num_full:
            raise ValueError(f"{num_computed} computed of {len(token_ids)} tokens do not fit {len(block_ids)} blocks.")
        if hashes is None:
            hashes = self.block_hashes(token_ids[:num_computed])
        if len(hashes) < num_full:
            raise ValueError(f"{len(hashes)} hashes given for {num_full} full blocks; call extend_hashes first.")
        first_new, known = num_full, None
        while first_new > 0 and (known := self._known_hash(block_ids[first_new - 1])) is None:
            first_new -= 1
        if first_new > 0 and known != hashes[first_new - 1]:
            raise ValueError(f"block {block_ids[first_new - 1]} is registered for another prefix than these tokens.")
        if first_new == num_full:  # as for most tokens of a decoding request
            return block_ids
        new_blocks = block_ids[first_new:num_full]
        if len(set(new_blocks)) < len(new_blocks):
            raise ValueError(f"a block can hold one part of a sequence only; {new_blocks} has one twice.")
        for block, block_hash in zip(new_blocks, hashes[first_new:num_full], strict=True):
            if block_hash in self.hash_to_block:
                self.copies[block] = block_hash
            else:
                self.hash_to_block[block_hash] = block
                self.block_hash[block] = block_hash
        return block_ids

    def _known_hash(self, block: int) -> bytes | None:
        if not isinstance(block, int) or not 0 <= block < self.num_blocks or self.ref_cnt[block] == 0:
            self._check_exist([block])
            raise ValueError(f"block {block} is held by nobody; only a block that a request holds can be registered.")
        return self.block_hash[block] or self.copies.get(block)

    def free(self, blocks: Sequence[int]) -> None:
        """Give back one reference to each block, the last first, so that a child is forgotten before its parent."""
        BlockPool.free(self, blocks[::-1])

    def lookup(self, token_ids: Sequence[int], hashes: Sequence[bytes] | None = None) -> list[int]:
        """The blocks of the longest cached prefix of token_ids, in order. Changes nothing, not even the queue."""
        num_full = len(token_ids) // self.block_size
        known = (hashes or [])[:num_full]
        more = self._hashes_after(known, token_ids) if len(known) < num_full else []
        blocks: list[int] = []
        for block_hash in chain(known, more):
            block = self.hash_to_block.get(block_hash)
            if block is None:
                break
            blocks.append(block)
        return blocks

    def touch(self, blocks: Sequence[int]) -> None:
        """Take a reference to each block; one that nobody held leaves the free queue."""
        self._check_exist(blocks)
        for block in blocks:
            if self.ref_cnt[block] == 0:
                del self.free_queue[block]
            self.ref_cnt[block] += 1

    def allocate(self, n: int) -> list[int] | None:
        """Take n blocks from the head of the queue, least recently used first; content, and so the hash, is lost."""
        blocks = BlockPool.allocate(self, n)
        for block in blocks or []:
            block_hash = self.block_hash[block]
            if block_hash is None:
                self.copies.pop(block, None)
            else:
                del self.hash_to_block[block_hash]
                self.block_hash[block] = None
        return blocks

    def check_invariants(self) -> None:
        """AssertionError naming the broken rule, if one is broken. For tests: it looks at every block."""
        BlockPool.check_invariants(self)
        registered = {block: h for block, h in enumerate(self.block_hash) if h is not None}
        assert {h: block for block, h in registered.items()} == self.hash_to_block, "the two maps are inverse"
        assert len(registered) == len(self.hash_to_block), "no two blocks are registered for one hash"
        assert not self.copies.keys() & registered.keys(), "a copy has no hash of its own"
        assert 0 <= self.num_hits <= self.num_queries, "hits are a part of the tokens looked up"
