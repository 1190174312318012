"""KV memory in blocks of equal size, handed out one by one: paged attention's idea.

A sequence holds a block table, the list of its blocks in order: its position p lives in slot p % block_size
of block block_table[p // block_size]. Blocks need not lie side by side, so memory has no gaps, a
sequence grows a block at a time, and one block can stand in several tables: that is what prefix caching uses.
`BlockPool` is the bookkeeping, `PagedKVCache` the tensors, `PagedBatch` the attention of one forward pass over them
(for decodes it is that of `handbook.paged_attention`).

Invariants: a block is free, in `free_queue`, exactly when nobody holds it, ref_cnt 0.
Source: vLLM (arXiv 2309.06180); in vLLM 0.33.0 `BlockPool` and `FreeKVCacheBlockQueue`.
"""

# Woven from notebooks/zh/02_paged_engine.ipynb by make build: edit it there.

from __future__ import annotations

from array import array
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from handbook.attention import causal_attention
from handbook.mini_llm import Qwen3Config
from handbook.paged_attention import DecodeAttention


class BlockPool:
    """Who holds which block. It knows block numbers only, no tensors and no tokens."""

    enable_caching = False
    has_engine = False  # set by the engine that uses this pool

    def __init__(self, num_blocks: int, block_size: int = 16) -> None:
        for name, value in (("num_blocks", num_blocks), ("block_size", block_size)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
        self.num_blocks, self.block_size = num_blocks, block_size
        self.ref_cnt = [0] * num_blocks
        self.free_queue: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))

    @property
    def num_free(self) -> int:
        """Blocks that `allocate` can hand out now."""
        return len(self.free_queue)

    def allocate(self, n: int) -> list[int] | None:
        """Take n blocks from the head of the free queue, one reference each; None, and no change, if fewer are free."""
        if not isinstance(n, int) or n < 0:
            raise ValueError(f"cannot allocate {n!r} blocks: give a whole number that is not negative.")
        if n > self.num_free:
            return None
        blocks = [self.free_queue.popitem(last=False)[0] for _ in range(n)]
        for block in blocks:
            self.ref_cnt[block] = 1
        return blocks

    def free(self, blocks: Sequence[int]) -> None:
        """Give back one reference to each block. Freeing what is not held is a ValueError, and nothing changes."""
        self._check_held(blocks)
        for block in blocks:
            self.ref_cnt[block] -= 1
            if self.ref_cnt[block] == 0:
                self.free_queue[block] = None

    def _check_held(self, blocks: Sequence[int]) -> None:
        self._check_exist(blocks)
        if len(set(blocks)) == len(blocks) and 0 not in [self.ref_cnt[block] for block in blocks]:
            return  # as nearly always: there is nothing to count
        for block, times in Counter(blocks).items():
            if times > self.ref_cnt[block]:
                raise ValueError(f"block {block} has {self.ref_cnt[block]} references; cannot free it {times} times.")

    def _check_exist(self, blocks: Sequence[int]) -> None:
        for block in blocks:
            if not isinstance(block, int) or not 0 <= block < self.num_blocks:
                raise ValueError(f"there is no block {block!r}: this pool has blocks 0 to {self.num_blocks - 1}.")

    def check_invariants(self) -> None:
        """AssertionError naming the broken rule, if one is broken. For tests: it looks at every block."""
        assert len(self.ref_cnt) == self.num_blocks, "there is one reference count for each block"
        assert min(self.ref_cnt) >= 0, "a reference count is never negative"
        free = {block for block, count in enumerate(self.ref_cnt) if count == 0}
        assert set(self.free_queue) == free, "the free queue holds exactly the blocks with reference count 0"


class CachingBlockPool(BlockPool):
    """A pool that finds prefixes again, as the engine asks for it. `num_queries` and `num_hits` count tokens."""

    enable_caching = True

    def __init__(self, num_blocks: int, block_size: int = 16) -> None:
        BlockPool.__init__(self, num_blocks, block_size)
        self.num_queries = self.num_hits = 0

    @property
    def num_cached_blocks(self) -> int:
        """Blocks that a look-up can find, whether somebody holds them or not."""
        raise NotImplementedError(f"{type(self).__name__} cannot count the blocks that it has registered yet.")

    def extend_hashes(self, hashes: list[bytes], token_ids: Sequence[int]) -> None:
        """Bring the list of a request's hashes up to its tokens; a pool that needs no hashes leaves it as it is."""

    def lookup(self, token_ids: Sequence[int], hashes: Sequence[bytes] | None = None) -> list[int]:
        """The blocks of the longest cached prefix of token_ids, in order; changes nothing."""
        raise NotImplementedError(f"{type(self).__name__} cannot look a prefix up yet.")

    def touch(self, blocks: Sequence[int]) -> None:
        """Take a reference to each block that `lookup` found."""
        raise NotImplementedError(f"{type(self).__name__} cannot take cached blocks yet.")

    def cache_blocks(
        self, token_ids: Sequence[int], block_ids: list[int], num_computed: int, hashes: Sequence[bytes] | None = None
    ) -> list[int]:
        """Register the full blocks of the first num_computed tokens; returns the block ids to use from now on."""
        raise NotImplementedError(f"{type(self).__name__} cannot register blocks yet.")

    def record(self, num_tokens: int, num_hits: int) -> None:
        """Count one request's look-up: num_tokens looked up, num_hits of them found."""
        if not 0 <= num_hits <= num_tokens:
            raise ValueError(f"{num_hits} hits must lie between 0 and the {num_tokens} tokens looked up.")
        self.num_queries += num_tokens
        self.num_hits += num_hits


class PagedKVCache:
    """K and V of every layer, each `[layers, kv_heads, num_blocks, block_size, head_dim]`."""

    def __init__(
        self, config: Qwen3Config, num_blocks: int, block_size: int, dtype: torch.dtype = torch.float32
    ) -> None:
        shape = (config.num_hidden_layers, config.num_key_value_heads, num_blocks, block_size, config.head_dim)
        self.num_query_heads = config.num_attention_heads
        self.keys = torch.zeros(shape, dtype=dtype)
        self.values = torch.zeros(shape, dtype=dtype)
        self._gathered = torch.empty((2, *shape[1:]), dtype=dtype)  # new memory for each copy costs more than the copy

    def gather(self, layer: int, table: Tensor, num_tokens: int) -> tuple[Tensor, Tensor]:
        """K and V of the first num_tokens in these blocks, each `[1, KV, S, D]`; the next call overwrites them."""
        kv_heads, num_blocks, _, head_dim = self.keys.shape[1:]
        rows = (torch.arange(kv_heads)[:, None] * num_blocks + table).flatten()  # the table's blocks, head by head
        k, v = self._gathered.flatten(1, 2)[:, : len(rows)]
        torch.index_select(self.keys[layer].flatten(0, 1), 0, rows, out=k)
        torch.index_select(self.values[layer].flatten(0, 1), 0, rows, out=v)
        k, v = (each.view(1, kv_heads, -1, head_dim)[:, :, :num_tokens] for each in (k, v))
        return k, v


@dataclass(frozen=True)
class Span:
    """Positions start to stop - 1 of one sequence, computed in this forward pass; those before start are stored."""

    block_table: Sequence[int]
    start: int
    stop: int


class PagedBatch:
    """The `KVCache` of one forward pass: the spans of several sequences packed behind each other in one row.

    Batch is 1, T the sum of the spans' lengths: prefills and decodes of any length share a pass without padding.
    """

    def __init__(self, kv_cache: PagedKVCache, spans: Sequence[Span]) -> None:
        self._kv_cache, self._spans = kv_cache, spans
        block_size = kv_cache.keys.shape[3]
        new = [(span.block_table, position) for span in spans for position in range(span.start, span.stop)]
        self.positions = torch.tensor([[position for _, position in new]])  # [1, T]
        slots = [table[position // block_size] * block_size + position % block_size for table, position in new]
        self._new_slots = torch.tensor(slots)  # [T]

    @cached_property
    def _parts(self) -> tuple[list[tuple[slice, Tensor, int]], ...]:
        """Spans to copy and spans to read in place, each its tokens in the row, block table and length of context."""
        copied: list[tuple[slice, Tensor, int]] = []
        in_place: list[tuple[slice, Tensor, int]] = []
        first = 0
        for span in self._spans:
            last = first + span.stop - span.start
            # Several times as fast as torch.tensor, which asks each entry for its type.
            table = torch.frombuffer(array("q", span.block_table), dtype=torch.int64)
            alone = last - first == 1 and self._kv_cache.keys.dtype == torch.float32
            (in_place if alone else copied).append((slice(first, last), table, span.stop))
            first = last
        return copied, in_place

    @cached_property
    def _decodes(self) -> tuple[Tensor, DecodeAttention]:
        """Where in the row the spans stand that read in place, and their attention."""
        tokens, tables, lengths = zip(*self._parts[1], strict=True)
        kv_shape, num_heads = self._kv_cache.keys.shape[1:], self._kv_cache.num_query_heads
        return torch.tensor([each.start for each in tokens]), DecodeAttention(tables, lengths, kv_shape, num_heads)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Write k, v `[1, KV, T, D]` into their slots; each span's q attends to its own sequence, `[1, H, T, D]`."""
        keys, values = self._kv_cache.keys[layer], self._kv_cache.values[layer]  # [KV, blocks, block_size, D]
        keys.flatten(1, 2).index_copy_(1, self._new_slots, k[0])
        values.flatten(1, 2).index_copy_(1, self._new_slots, v[0])
        copied, in_place = self._parts
        outputs = torch.empty_like(q)
        for tokens, table, length in copied:
            outputs[:, :, tokens] = causal_attention(q[:, :, tokens], *self._kv_cache.gather(layer, table, length))
        if in_place:
            decodes, attention = self._decodes
            attended = attention(q[0].transpose(0, 1)[decodes], keys, values)  # [decodes, H, D]
            outputs[0].transpose(0, 1)[decodes] = attended
        return outputs
