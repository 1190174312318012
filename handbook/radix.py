"""The radix tree behind the engine's pool interface: the same engine, with hits to the token.

The tree (`handbook.radix_tree`) knows which prefixes are cached and which slots of KV memory they lie in. The pool
knows who holds which block, and turns what the engine asks of any caching pool into calls of the tree: a look-up
into a walk, a touch into a lock, an allocation into an eviction, a registration into an insertion.

Invariants: a block is free, in the tree, or held by the table of a request that has not registered it yet; each table
has one lock, on the node where its registered beginning ends, so `ref_cnt` of a block in the tree is its node's
`lock_ref`.
Source: SGLang 0.5.23, `checkpoint_kv_cache` and `release_kv_cache` (srt/mem_cache/common.py).
"""

# Woven from notebooks/zh/04_radix_tree.ipynb by make build: edit it there.

from __future__ import annotations

from collections.abc import Hashable, Sequence

from handbook.paged import BlockPool, CachingBlockPool
from handbook.radix_tree import Node, RadixCache


class RadixBlockPool(CachingBlockPool):
    """A `BlockPool` that finds prefixes again in a radix tree.

    page_size is the pool's block_size, since to the engine a page is a block; by default it is one slot, one token.
    To the tree a page is ONE token, the tuple of its tokens: so keys are cut to whole pages, hits are rounded down, and
    no edge is cut inside a page, without a line about pages in the tree (whose sizes are in pages, then).
    """

    def __init__(self, num_slots: int, page_size: int = 1) -> None:
        if not all(isinstance(n, int) and n > 0 for n in (num_slots, page_size)) or num_slots % page_size:
            raise ValueError(
                f"num_slots must be a multiple of page_size, both whole; got {num_slots!r}, {page_size!r}."
            )
        CachingBlockPool.__init__(self, num_slots // page_size, page_size)
        self.tree = RadixCache()
        self.node_of: list[Node | None] = [None] * self.num_blocks  # the node that a block lies in

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` can hand out now: free ones, and those that it can evict."""
        return len(self.free_queue) + self.tree.evictable_size

    @property
    def num_cached_blocks(self) -> int:
        """Blocks that a look-up can find, whether somebody holds them or not."""
        return self.tree.total_size()

    def lookup(self, token_ids: Sequence[int], hashes: Sequence[bytes] | None = None) -> list[int]:
        """The blocks of the longest cached prefix of token_ids, in order. Changes nothing: no split, no use."""
        node, _, num_hits = self.tree.find(self._pages(token_ids, 0, len(token_ids) // self.block_size))
        return self.tree.slots(node)[:num_hits]

    def _pages(self, token_ids: Sequence[int], first: int, last: int) -> list[Hashable]:
        """Pages first to last - 1 as keys of the tree."""
        if self.block_size == 1:
            return list(token_ids[first:last])
        starts = range(first * self.block_size, last * self.block_size, self.block_size)
        return [tuple(token_ids[start : start + self.block_size]) for start in starts]

    def touch(self, blocks: Sequence[int]) -> None:
        """Lock a cached prefix, the blocks that `lookup` found; ValueError if these blocks are no longer one."""
        self._check_exist(blocks)
        if not blocks:
            return
        node = self.node_of[blocks[-1]]
        slots = self.tree.slots(node) if node else []
        if node is None or slots[: len(blocks)] != list(blocks):
            raise ValueError(f"{list(blocks)} are not the blocks of a cached prefix (any more); look it up again.")
        node = self._split(node, len(node.key) - len(slots) + len(blocks))
        self.tree.inc_lock_ref(node)
        for block in blocks:
            self.ref_cnt[block] += 1

    def _split(self, node: Node, length: int) -> Node:
        upper = self.tree.split(node, length)
        if upper is not node:
            self._lie_in(upper, upper.value)
        return upper

    def _lie_in(self, node: Node | None, blocks: Sequence[int]) -> None:
        for block in blocks:
            self.node_of[block] = node

    def allocate(self, n: int) -> list[int] | None:
        """Take n blocks, one reference each, evicting what is missing; None, and no change, if that is not enough."""
        missing = n - len(self.free_queue)
        if 0 < missing <= self.tree.evictable_size:
            evicted = self.tree.evict(missing)
            self._lie_in(None, evicted)
            self.free_queue.update(dict.fromkeys(evicted))
        return BlockPool.allocate(self, n)

    def free(self, blocks: Sequence[int]) -> None:
        """Give back a table, whole: its registered beginning is unlocked and stays until it is evicted."""
        self._check_held(blocks)
        num_cached = self._num_cached(blocks, len(blocks))
        if num_cached:
            node = self.node_of[blocks[num_cached - 1]]
            if node is None or self.tree.slots(node) != list(blocks[:num_cached]):
                raise ValueError(
                    f"{list(blocks)} are not the blocks of one table: free each table whole, and by itself."
                )
            self.tree.dec_lock_ref(node)
            for block in blocks[:num_cached]:
                self.ref_cnt[block] -= 1
        BlockPool.free(self, blocks[num_cached:])

    def _num_cached(self, blocks: Sequence[int], most: int) -> int:
        """How many of the first `most` blocks of a table are registered: all up to the last that lies in the tree."""
        while most > 0:
            self._check_exist(blocks[most - 1 : most])
            if self.node_of[blocks[most - 1]] is not None:
                break
            most -= 1
        return most

    def cache_blocks(
        self, token_ids: Sequence[int], block_ids: list[int], num_computed: int, hashes: Sequence[bytes] | None = None
    ) -> list[int]:
        """Register the full blocks among the first num_computed tokens; returns the block ids to use from now on.

        Where the tree has a prefix already, the returned table has the tree's blocks, and its own are free from now on.
        Only blocks that were not registered yet are looked at: one more token costs the same at any length (but for the
        copy of the table where blocks are exchanged).
        """
        num_full = num_computed // self.block_size
        if not 0 <= num_computed <= len(token_ids) or len(block_ids) < num_full:
            raise ValueError(f"{num_computed} computed of {len(token_ids)} tokens do not fit {len(block_ids)} blocks.")
        num_cached = self._num_cached(block_ids, num_full)
        if num_cached == num_full:
            return block_ids
        blocks = block_ids[num_cached:num_full]
        if any(self.ref_cnt[block] == 0 for block in blocks) or len(set(blocks)) < len(blocks):
            raise ValueError(f"blocks {blocks} must be different ones that the request holds; allocate them first.")
        held = self._end(token_ids, block_ids, num_cached) if num_cached else None
        # 1. From where the table's lock is, follow what the tree has already.
        key = self._pages(token_ids, num_cached, num_full)
        node, length, num_present = self.tree.find(key, held)
        node = self._split(node, length)
        present = self.tree.slots(node, held)
        # 2. Grow a leaf for the rest.
        if num_present < len(key):
            node = self.tree.add(node, key[num_present:], blocks[num_present:])
            self._lie_in(node, node.value)
        # 3. Move the lock to the new end.
        self.tree.inc_lock_ref(node)
        if held:
            self.tree.dec_lock_ref(held)
            self._lie_in(held, self.tree.join(held))  # requests side by side would leave a chain of short edges
        # 4. Where the tree had blocks, a new table has them, and those computed beside them are free.
        if present:
            block_ids = [*block_ids[:num_cached], *present, *block_ids[num_cached + num_present :]]
        for block in present:
            self.ref_cnt[block] += 1
        BlockPool.free(self, blocks[:num_present])
        return block_ids

    def _end(self, token_ids: Sequence[int], block_ids: Sequence[int], num_cached: int) -> Node:
        """The node where the registered beginning of a table ends."""
        block, page = block_ids[num_cached - 1], self._pages(token_ids, num_cached - 1, num_cached)
        node = self.node_of[block]
        if node is None or node.value[-1] != block or node.key[-1:] != page or not node.num_locks:
            raise ValueError(f"block {block} is not the end of a prefix that a table holds, with the tokens {page}.")
        return node

    def check_invariants(self) -> None:
        """AssertionError naming the broken rule, if one is broken. For tests: it looks at every block."""
        self.tree.check_invariants()
        assert min(self.ref_cnt) >= 0, "a reference count is never negative"
        cached = {block for block, node in enumerate(self.node_of) if node is not None}
        for block in cached:
            node = self.node_of[block]
            assert node and block in node.value and self.tree.slots(node), "node_of is the node that a block lies in"
            assert self.ref_cnt[block] == node.lock_ref, "each table that holds a cached block has one lock on it"
        assert self.tree.total_size() == len(cached), "no block lies in the tree twice"
        idle = {block for block, count in enumerate(self.ref_cnt) if count == 0}
        assert set(self.free_queue) == idle - cached, "the free queue holds the blocks that are neither held nor cached"
        assert 0 <= self.num_hits <= self.num_queries, "hits are a part of the tokens looked up"
