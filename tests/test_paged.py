"""The pool against a list of free blocks, attention over scattered blocks against contiguous K and V."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from handbook.attention import ContiguousKVCache
from handbook.mini_llm import Qwen3Config, Transformer
from handbook.paged import BlockPool, PagedBatch, PagedKVCache, Span

# ---- the pool


@given(st.integers(1, 6), st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=30))
def test_a_pool_hands_out_what_was_freed_longest_ago(num_blocks, operations):
    pool, free = BlockPool(num_blocks), list(range(num_blocks))
    held: list[int] = []
    for is_allocation, n in operations:
        if is_allocation:
            expected = free[:n] if n <= len(free) else None
            assert pool.allocate(n) == expected
            if expected is not None:
                held, free = held + expected, free[n:]
        else:
            back, held = held[:n], held[n:]
            pool.free(back)
            free += back
        pool.check_invariants()
        assert pool.num_free == len(free)
        assert [pool.ref_cnt[block] for block in range(num_blocks)] == [block in held for block in range(num_blocks)]


def test_more_than_is_free_cannot_be_allocated_and_nothing_changes():
    pool = BlockPool(3)
    pool.allocate(1)
    before = copy.deepcopy(vars(pool))
    assert pool.allocate(3) is None
    assert vars(pool) == before


def test_a_pool_without_caching_says_so():
    assert BlockPool.enable_caching is False
    assert (BlockPool(3).num_blocks, BlockPool(3).block_size) == (3, 16)


@pytest.mark.parametrize("sizes", [(0, 4), (-1, 4), (4, 0), (4, -16), (2.0, 4), (4, None), ("8", 4)])
def test_a_pool_without_blocks_or_slots_is_refused(sizes):
    wrong = next(size for size in sizes if size != 4)
    with pytest.raises(ValueError, match=rf"must be a whole number of at least 1; got {wrong!r}"):
        BlockPool(*sizes)


WRONG_CALLS = {
    "free what nobody holds": (lambda p: p.free([0, 2]), "block 2 has 0 references"),
    "free a block twice": (lambda p: p.free([0, 1, 0]), "block 0 has 1 references"),
    "free a block that does not exist": (lambda p: p.free([0, 4]), "no block 4.*0 to 3"),
    "free a negative block": (lambda p: p.free([0, -4]), "no block -4"),
    "free what is no block": (lambda p: p.free([0, None]), "no block None"),
    "allocate a negative number": (lambda p: p.allocate(-1), "-1"),
    "allocate half a block": (lambda p: p.allocate(0.5), "0.5"),
}


@pytest.mark.parametrize("what", WRONG_CALLS)
def test_a_wrong_call_names_what_is_wrong_and_changes_nothing(what):
    call, message = WRONG_CALLS[what]
    pool = BlockPool(4, 2)
    pool.allocate(2)
    before = copy.deepcopy(vars(pool))
    with pytest.raises(ValueError, match=message):
        call(pool)
    assert vars(pool) == before


BREAKS = {
    "one reference count for each block": lambda p: p.ref_cnt.append(0),
    "never negative": lambda p: p.ref_cnt.__setitem__(3, -1),
    "exactly the blocks with reference count 0": lambda p: p.free_queue.pop(3),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_check_invariants_names_the_broken_rule(broken):
    pool = BlockPool(4, 2)
    pool.allocate(2)
    pool.check_invariants()
    BREAKS[broken](pool)
    with pytest.raises(AssertionError, match=broken):
        pool.check_invariants()


# ---- attention over blocks

CONFIG = Qwen3Config(61, 24, 40, 2, 4, 2, 10)
MODEL = Transformer.random(CONFIG, seed=1)
SEQUENCES = [list(range(1, 14)), [40, 3, 3], list(range(20, 36)), [5]]


@torch.inference_mode()
def contiguous_logits(tokens: list[int]) -> torch.Tensor:
    return MODEL(torch.tensor([tokens]), kv_cache=ContiguousKVCache())[0]


EXPECTED = [contiguous_logits(tokens) for tokens in SEQUENCES]


def run(kv_cache: PagedKVCache, tables: list[list[int]], pieces: list[tuple[int, int, int]]) -> list[torch.Tensor]:
    """One forward pass over pieces (sequence, start, stop); logits of each."""
    batch = PagedBatch(kv_cache, [Span(tables[i], start, stop) for i, start, stop in pieces])
    input_ids = [token for i, start, stop in pieces for token in SEQUENCES[i][start:stop]]
    with torch.inference_mode():
        logits = MODEL(torch.tensor([input_ids]), batch.positions, batch)[0]
    return list(logits.split([stop - start for _, start, stop in pieces]))


def scattered_tables(block_size: int, num_blocks: int, seed: int) -> list[list[int]]:
    """A block table for each of SEQUENCES, from blocks in random order, so that none lies beside its neighbour."""
    order = iter(torch.randperm(num_blocks, generator=torch.Generator().manual_seed(seed)).tolist())
    return [[next(order) for _ in range(-(-len(tokens) // block_size))] for tokens in SEQUENCES]


@given(st.sampled_from([1, 3, 4, 16]), st.integers(0, 9), st.lists(st.tuples(*[st.integers(0, 6)] * 4), max_size=6))
def test_packed_pieces_over_scattered_blocks_give_the_logits_of_each_sequence_alone(block_size, seed, passes):
    kv_cache = PagedKVCache(CONFIG, 64, block_size)
    tables = scattered_tables(block_size, 64, seed)
    done = [0] * len(SEQUENCES)
    for lengths in [*passes, (16, 16, 16, 16)]:
        stops = [min(done[i] + n, len(SEQUENCES[i])) for i, n in enumerate(lengths)]
        pieces = [(i, done[i], stop) for i, stop in enumerate(stops) if done[i] < stop]
        for (i, start, stop), logits in zip(pieces, run(kv_cache, tables, pieces) if pieces else [], strict=True):
            assert (logits - EXPECTED[i][start:stop]).abs().max() < 1e-5
            done[i] = stop
    assert done == [len(tokens) for tokens in SEQUENCES]


@pytest.mark.parametrize(("num_heads", "kv_heads"), [(6, 2), (5, 1), (2, 2)])
def test_every_query_head_reads_the_kv_head_of_its_group(num_heads, kv_heads):
    config = Qwen3Config(61, 24, 40, 2, num_heads, kv_heads, 10)
    model, kv_cache = Transformer.random(config, seed=1), PagedKVCache(config, 8, 4)
    tokens = torch.tensor(SEQUENCES[:1])
    for start, stop in ((0, 12), (12, 13)):  # a prefill, a decode
        batch = PagedBatch(kv_cache, [Span([5, 0, 7, 2], start, stop)])
        with torch.inference_mode():
            logits = model(tokens[:, start:stop], batch.positions, batch)
            expected = model(tokens, kv_cache=ContiguousKVCache())[:, start:stop]
        assert (logits - expected).abs().max() < 1e-5


def test_k_and_v_that_another_sequence_wrote_for_the_same_prefix_serve_as_well():
    kv_cache = PagedKVCache(CONFIG, 64, 4)
    tables = scattered_tables(4, 64, 0)
    run(kv_cache, tables, [(0, 0, 13)])
    shared = [*tables[0][:3], 63]  # three full blocks of the first sequence, and an own one
    (logits,) = run(kv_cache, [shared], [(0, 12, 13)])
    assert (logits - EXPECTED[0][12:]).abs().max() < 1e-5


@pytest.mark.parametrize("name", ["keys", "values"])
@pytest.mark.parametrize("index", [0, 2])
def test_the_k_and_v_of_every_block_in_the_table_count(name, index):
    """The negative control: with one block damaged, the logits are far off."""
    kv_cache = PagedKVCache(CONFIG, 64, 4)
    tables = scattered_tables(4, 64, 0)
    run(kv_cache, tables, [(0, 0, 12)])
    getattr(kv_cache, name)[:, :, tables[0][index]] = 0
    (logits,) = run(kv_cache, tables, [(0, 12, 13)])
    assert (logits - EXPECTED[0][12:]).abs().max() > 1e-2


def test_a_pass_writes_its_own_slots_and_no_others():
    kv_cache = PagedKVCache(CONFIG, 64, 4)
    kv_cache.keys.fill_(7.0)
    kv_cache.values.fill_(7.0)
    tables = scattered_tables(4, 64, 0)
    run(kv_cache, tables, [(0, 0, 6), (2, 0, 4)])
    written = {(tables[i][p // 4], p % 4) for i, stop in ((0, 6), (2, 4)) for p in range(stop)}
    for tensor in (kv_cache.keys, kv_cache.values):
        changed = (tensor != 7.0).any(-1)  # [layers, KV, blocks, slots]
        for each in changed.flatten(0, 1):
            assert {tuple(slot) for slot in each.nonzero().tolist()} == written


def test_what_lies_in_slots_not_yet_computed_is_never_seen():
    kv_cache = PagedKVCache(CONFIG, 64, 4)
    kv_cache.keys.fill_(torch.nan)
    kv_cache.values.fill_(torch.nan)
    tables = scattered_tables(4, 64, 0)
    (logits,) = run(kv_cache, tables, [(0, 0, 6)])
    assert (logits - EXPECTED[0][:6]).abs().max() < 1e-5


def test_a_cache_has_the_shape_and_dtype_it_promises():
    kv_cache = PagedKVCache(CONFIG, 8, 4, torch.bfloat16)
    for tensor in (kv_cache.keys, kv_cache.values):
        assert (tuple(tensor.shape), tensor.dtype) == ((2, 2, 8, 4, 10), torch.bfloat16)
