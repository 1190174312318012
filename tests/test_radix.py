"""The tree behind the pool's interface: against a naive model, abused, counted, and side by side in the engine."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from handbook.lab.counting import lines, visits
from handbook.mini_llm import generate
from handbook.nano_engine import LLMEngine
from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.radix import RadixBlockPool, RadixCache
from handbook.request import SamplingParams
from tests.engines import MODEL
from tests.naive.radix_model import NaiveRadixPool, contents

few_tokens = st.lists(st.integers(0, 1), max_size=10)  # two different tokens, so that prefixes are often shared
BASES = [0, 1, 1, 0, 1, 0, 0, 0, 1, 1], [0, 1, 1, 0, 0, 1, 1, 1, 0, 1]
# Beginnings of two sequences, that long edges come about and are left at every place.
keys = few_tokens | st.builds(
    lambda base, length, tail: base[:length] + tail, st.sampled_from(BASES), st.integers(1, 10), few_tokens
)


def state(pool: RadixBlockPool) -> bytes:
    """All that a pool knows, the order of its queues included."""
    return pickle.dumps(pool)


def cached(pool: RadixBlockPool, token_ids: list[int]) -> list[int]:
    """Blocks newly allocated and registered for token_ids, and still held."""
    blocks = pool.allocate(-(-len(token_ids) // pool.block_size))
    assert blocks is not None
    return pool.cache_blocks(token_ids, blocks, len(token_ids))


# ---- the whole contract, against the naive model


class PoolAgainstModel(RuleBasedStateMachine):
    """Requests come, compute in pieces, grow and go, on the pool and on the model; after each operation both agree."""

    @initialize(num_blocks=st.sampled_from([2, 7, 12, 20, 30]), page_size=st.sampled_from([1, 1, 2, 3]))
    def start(self, num_blocks, page_size):
        self.pool = RadixBlockPool(num_blocks * page_size, page_size)
        self.model = NaiveRadixPool(num_blocks, page_size)
        self.requests: list[dict[str, Any]] = []
        self.holders: list[list[int]] = []

    def allocate(self, n: int) -> list[int] | None:
        blocks = self.pool.allocate(n)
        assert blocks == self.model.allocate(n)
        return blocks

    def free(self, table: list[int]) -> None:
        self.pool.free(table)
        self.model.free(table)

    @rule(
        token_ids=keys.filter(len),
        computes=st.sampled_from([True, True, False]),
        finishes=st.sampled_from([False, False, True]),
    )
    def admit(self, token_ids, computes, finishes):
        hits = self.pool.lookup(token_ids[:-1])
        assert hits == self.model.lookup(token_ids[:-1])
        self.pool.touch(hits)
        self.model.touch(hits)
        blocks = self.allocate(-(-len(token_ids) // self.pool.block_size) - len(hits))
        if blocks is None:
            self.free(hits)
            return
        num_computed = len(hits) * self.pool.block_size
        self.requests.append({"tokens": token_ids, "table": hits + blocks, "computed": num_computed})
        if computes:
            self.compute(-1, len(token_ids))
        if finishes:
            self.finish(-1)

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0, 99), computes=st.booleans())
    def admit_the_same_again(self, number, computes):
        self.admit(list(self.requests[number % len(self.requests)]["tokens"]), computes, False)

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0, 99), num_tokens=st.integers(0, 5))
    def compute(self, number, num_tokens):
        request = self.requests[number % len(self.requests)]
        request["computed"] = min(request["computed"] + num_tokens, len(request["tokens"]))
        table = list(request["table"])
        request["table"] = self.pool.cache_blocks(request["tokens"], list(table), request["computed"])
        assert request["table"] == self.model.cache_blocks(request["tokens"], table, request["computed"])

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0, 99), token=st.integers(0, 1), computes=st.booleans())
    def grow(self, number, token, computes):
        request = self.requests[number % len(self.requests)]
        if len(request["tokens"]) == len(request["table"]) * self.pool.block_size:
            blocks = self.allocate(1)
            if blocks is None:
                return
            request["table"] += blocks
        request["tokens"].append(token)
        if computes:
            self.compute(number, 1)

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0, 99))
    def finish(self, number):
        self.free(self.requests.pop(number % len(self.requests))["table"])

    @rule(token_ids=keys)
    def hold(self, token_ids):
        hits = self.pool.lookup(token_ids)
        self.pool.touch(hits)
        self.model.touch(hits)
        self.holders.append(hits)

    @precondition(lambda self: self.holders)
    @rule(number=st.integers(0, 99))
    def release(self, number):
        self.free(self.holders.pop(number % len(self.holders)))

    @rule(token_ids=keys)
    def look_up(self, token_ids):
        before = state(self.pool)
        assert self.pool.lookup(token_ids) == self.model.lookup(token_ids)
        assert state(self.pool) == before

    @invariant()
    def pool_and_model_agree(self):
        self.pool.check_invariants()
        assert self.pool.ref_cnt == self.model.holders
        assert list(self.pool.free_queue) == self.model.queue
        assert contents(self.pool.tree) == self.model.cache.slot
        assert self.pool.num_free == len(self.model.queue) + len(self.model.cache.lru)
        lru = [block for node in self.pool.tree.lru for block in reversed(node.value)]
        assert lru == [self.model.cache.slot[token] for token in self.model.cache.lru]
        ends = {self.pool.tree.slots(node)[-1] for node in self.pool.node_of if node}
        assert ends == {self.model.cache.slot[end] for end in self.model.cache.ends}


TestPoolAgainstModel = PoolAgainstModel.TestCase
TestPoolAgainstModel.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


@given(st.lists(few_tokens.filter(len), max_size=12), st.integers(2, 6))
def test_pages_hit_what_hash_blocks_of_that_size_hit_as_long_as_nothing_is_evicted(prompts, page_size):
    pools = RadixBlockPool(60 * page_size, page_size), PrefixCachingBlockPool(60, page_size)
    for prompt in prompts:
        hits = []
        for pool in pools:
            found = pool.lookup(prompt[:-1])
            pool.touch(found)
            table = found + (pool.allocate(-(-len(prompt) // page_size) - len(found)) or [])
            pool.free(pool.cache_blocks(prompt, table, len(prompt)))
            hits.append(len(found))
        assert hits[0] == hits[1]


# ---- pages


def test_a_hit_ends_at_any_token():
    pool = RadixBlockPool(8)
    blocks = cached(pool, [1, 2, 3, 4])
    assert [pool.lookup([1, 2, 3, 9][:n]) for n in range(5)] == [blocks[:n] for n in (0, 1, 2, 3, 3)]


def test_keys_are_cut_to_whole_pages_and_hits_are_rounded_down():
    pool = RadixBlockPool(16, 4)
    table = cached(pool, list(range(11)))
    assert (len(table), pool.tree.total_size()) == (3, 2)
    assert [len(pool.lookup(list(range(n)))) for n in (3, 4, 7, 8, 11)] == [0, 1, 1, 2, 2]
    assert pool.lookup([0, 1, 2, 3, 4, 5, 6, 99]) == table[:1]


def test_a_key_shorter_than_a_page_matches_nothing_and_registers_nothing():
    """sglang PR #10637: such a key became empty, and the match crashed."""
    pool = RadixBlockPool(8, 4)
    table = cached(pool, [1, 2, 3])
    assert (pool.lookup([1, 2, 3]), pool.tree.total_size(), pool.num_free) == ([], 0, 1)
    pool.free(table)
    assert pool.num_free == 2


# ---- side by side


def test_two_that_computed_the_same_share_the_trees_blocks_and_the_copies_are_free():
    """mini-sglang PR #142: the copies were freed, and the second table still pointed at them."""
    pool = RadixBlockPool(10)
    first = cached(pool, [1, 2, 3])
    own = pool.allocate(4) or []
    second = pool.cache_blocks([1, 2, 3, 9], own, 4)
    assert second == [*first, own[3]]
    assert [pool.ref_cnt[block] for block in second] == [2, 2, 2, 1]
    assert set(own[:3]) <= set(pool.free_queue)
    pool.free(first)
    pool.check_invariants()
    assert (pool.tree.protected_size, pool.num_free) == (4, 6)


def test_the_table_that_was_passed_in_is_left_as_it_was():
    pool = RadixBlockPool(10)
    cached(pool, [1, 2])
    own = pool.allocate(2) or []
    before = list(own)
    assert pool.cache_blocks([1, 2], own, 2) != before
    assert own == before


def test_copies_are_released_when_nothing_else_is_left_to_do(monkeypatch):
    """So that an interrupt before leaves a table whose blocks are its own."""
    pool = RadixBlockPool(10)
    cached(pool, [1, 2, 3])
    own = pool.allocate(4) or []
    released = []

    def free(self, blocks):
        released.append(blocks)
        assert (self.tree.total_size(), self.tree.protected_size) == (4, 4)
        assert [self.ref_cnt[block] for block in self.lookup([1, 2, 3, 9])] == [2, 2, 2, 1]

    monkeypatch.setattr("handbook.radix.BlockPool.free", free)
    pool.cache_blocks([1, 2, 3, 9], own, 4)
    assert released == [own[:3]]


def test_twins_that_decode_side_by_side_leave_no_chain_of_short_edges():
    pool = RadixBlockPool(200)
    tokens = [7, 8, 9]
    tables = [cached(pool, tokens), cached(pool, tokens)]
    for token in range(40):
        tokens.append(token)
        for i, table in enumerate(tables):
            tables[i] = pool.cache_blocks(tokens, table + (pool.allocate(1) or []), len(tokens))
        pool.check_invariants()
    node, _, _ = pool.tree.find(tokens)
    assert (tables[0] == tables[1], len(pool.tree.path(node)), pool.num_free) == (True, 2, 200 - 43)


# ---- touch, free, allocate


def test_blocks_found_before_the_tree_was_split_can_still_be_touched():
    pool = RadixBlockPool(10)
    pool.free(cached(pool, [1, 2, 3, 4]))
    found = pool.lookup([1, 2, 3, 4])
    other = pool.lookup([1, 2, 9])
    pool.touch(other)
    pool.touch(found)
    pool.check_invariants()
    assert (pool.ref_cnt[found[0]], pool.ref_cnt[found[3]], pool.tree.protected_size) == (2, 1, 4)
    pool.free(found)
    assert pool.tree.protected_size == 2


def test_a_touch_locks_what_it_names_and_no_more():
    pool = RadixBlockPool(4)
    pool.free(cached(pool, [1, 2, 3, 4]))
    found = pool.lookup([1, 2])
    pool.touch(found)
    assert pool.num_free == 2
    assert pool.allocate(3) is None
    assert len(pool.allocate(2) or []) == 2
    assert pool.lookup([1, 2, 3, 4]) == found


def test_blocks_evicted_since_they_were_found_cannot_be_touched():
    pool = RadixBlockPool(4)
    pool.free(cached(pool, [1, 2]))
    found = pool.lookup([1, 2])
    pool.allocate(4)
    before = state(pool)
    with pytest.raises(ValueError, match="look it up again"):
        pool.touch(found)
    assert state(pool) == before


def test_free_blocks_are_handed_out_before_cached_ones_and_only_what_is_missing_is_evicted():
    pool = RadixBlockPool(6)
    for tokens in ([1, 2], [3, 4]):
        pool.free(cached(pool, tokens))
    assert pool.tree.total_size() == 4
    pool.allocate(2)
    assert pool.tree.total_size() == 4
    pool.allocate(1)
    assert (pool.lookup([1, 2]), len(pool.lookup([3, 4])), pool.num_free) == ([], 2, 3)


def test_an_evicted_block_is_handed_out_as_nobodys():
    pool = RadixBlockPool(2)
    pool.free(cached(pool, [1, 2]))
    blocks = pool.allocate(2) or []
    assert [pool.node_of[block] for block in blocks] == [None, None]
    assert pool.lookup([1, 2]) == []


# ---- wrong calls


def busy_pool() -> RadixBlockPool:
    """Ten slots: 0 1 2 for tokens 1 2 3, held, and 0 1 held once more; 3 held unregistered; 4 5 cached; 6 to 9 free."""
    pool = RadixBlockPool(10)
    table = pool.allocate(4) or []
    pool.cache_blocks([1, 2, 3, 4], table, 3)
    pool.touch([0, 1])
    pool.free(cached(pool, [5, 6]))
    pool.check_invariants()
    return pool


WRONG_CALLS: dict[str, tuple[Callable[[Any], object], str]] = {  # besides those of tests/test_caching_pools.py
    "free a part of a table": (lambda p: p.free([0]), "not the blocks of one table"),
    "free a table without its beginning": (lambda p: p.free([1, 2]), "not the blocks of one table"),
    "free two tables in one call": (lambda p: p.free([0, 1, 0, 1, 2]), "not the blocks of one table"),
    "free a table in another order": (lambda p: p.free([1, 0]), "not the blocks of one table"),
    "free the unregistered end first": (lambda p: p.free([3, 0, 1, 2]), "not the blocks of one table"),
    "touch a free block": (lambda p: p.touch([6]), "not the blocks of a cached prefix"),
    "touch a block held outside the tree": (lambda p: p.touch([0, 1, 2, 3]), "not the blocks of a cached prefix"),
    "touch a prefix without its beginning": (lambda p: p.touch([1, 2]), "not the blocks of a cached prefix"),
    "touch blocks of two prefixes": (lambda p: p.touch([0, 5]), "not the blocks of a cached prefix"),
    "register behind blocks that nobody holds": (lambda p: p.cache_blocks([5, 6, 7], [4, 5, 3], 3), "block 5 is not"),
    "register inside an edge": (lambda p: p.cache_blocks([5, 7], [4, 3], 2), "block 4 is not the end"),
}


@pytest.mark.parametrize("what", WRONG_CALLS)
def test_a_wrong_call_names_what_is_wrong_and_changes_nothing(what):
    call, message = WRONG_CALLS[what]
    pool = busy_pool()
    before = state(pool)
    with pytest.raises(ValueError, match=message):
        call(pool)
    assert state(pool) == before


def test_a_table_that_is_the_beginning_of_anothers_cannot_be_freed_twice():
    pool = busy_pool()
    pool.free([0, 1])
    before = state(pool)
    with pytest.raises(ValueError, match="not locked itself"):
        pool.free([0, 1])
    assert state(pool) == before


def test_a_table_cannot_go_on_behind_a_block_inside_an_edge():
    pool = RadixBlockPool(4)
    held = cached(pool, [5, 6, 6])
    own = pool.allocate(1) or []
    before = state(pool)
    with pytest.raises(ValueError, match=f"block {held[1]} is not the end"):
        pool.cache_blocks([5, 6, 7], [*held[:2], *own], 3)
    assert state(pool) == before


@pytest.mark.parametrize("sizes", [(0, 1), (-4, 1), (6, 4), (4, 0), (4, -2), (4.0, 1), (4, 1.0), ("4", 1)])
def test_sizes_that_make_no_whole_pages_are_refused(sizes):
    with pytest.raises(ValueError, match="num_slots must be a multiple of page_size"):
        RadixBlockPool(*sizes)


BREAKS: dict[str, Callable[[Any], object]] = {
    "evictable_size is": lambda p: setattr(p.tree, "evictable_size", 9),
    "a reference count is never negative": lambda p: p.ref_cnt.__setitem__(6, -1),
    "the node that a block lies in": lambda p: p.node_of.__setitem__(6, p.node_of[0]),
    "has one lock on it": lambda p: p.ref_cnt.__setitem__(0, 1),
    "no block lies in the tree twice": lambda p: p.node_of.__setitem__(4, None),
    "neither held nor cached": lambda p: p.free_queue.pop(6),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_check_invariants_names_the_broken_rule(broken):
    pool = busy_pool()
    BREAKS[broken](pool)
    with pytest.raises(AssertionError, match=broken):
        pool.check_invariants()


def test_the_tree_is_found_beside_the_pool():
    assert isinstance(RadixBlockPool(1).tree, RadixCache)


# ---- work, counted


@pytest.mark.parametrize("page_size", [1, 4])
def test_registering_one_more_token_executes_the_same_lines_at_any_length(page_size):
    counts = []
    for num_tokens in (160, 1600, 16_000):
        pool = RadixBlockPool(num_tokens + 8, page_size)
        token_ids = list(range(num_tokens))
        table = cached(pool, token_ids)
        table += pool.allocate(1) or []
        token_ids += range(page_size)
        counts.append(lines(pool.cache_blocks, token_ids, table, len(token_ids)))
        assert pool.lookup(token_ids) == table
    assert counts == [counts[0]] * 3


def test_allocating_visits_as_many_nodes_in_a_large_tree_as_in_a_small_one():
    counts = []
    for num_leaves in (30, 1000):
        pool = RadixBlockPool(1 + 2 * num_leaves)
        for i in range(num_leaves):
            hits = pool.lookup([0])
            pool.touch(hits)
            pool.free(pool.cache_blocks([0, i, i], hits + (pool.allocate(3 - len(hits)) or []), 3))
        assert pool.free_queue == {}
        counts.append(visits(type(pool.tree.root), pool.allocate, 20))
    assert counts == [10, 10]


# ---- in the engine

PROMPT = [(7 * i * i + 3) % 61 for i in range(20)]
PARAMS = SamplingParams(max_tokens=10)


def expected(prompt: list[int]) -> list[int]:
    return generate(MODEL, torch.tensor([prompt]), PARAMS.max_tokens)[0].tolist()


@pytest.mark.parametrize("steps_between", [0, 1, 3])
@pytest.mark.parametrize("budget", [100, 7])
def test_equal_prompts_side_by_side_keep_one_copy_of_what_both_computed(steps_between, budget):
    engine: Any = LLMEngine(MODEL, pool=RadixBlockPool(80), max_num_batched_tokens=budget)
    engine.add_request(PROMPT, PARAMS)
    outputs = []
    for step in range(60):
        if step == steps_between:
            engine.add_request(PROMPT, PARAMS)
        outputs += [request.output_token_ids for request in engine.step()]
        engine.pool.check_invariants()
        tables = [
            request.block_table for request in engine.running if request.num_computed == len(request.token_ids) - 1
        ]
        if len(tables) == 2:
            shortest = min(map(len, tables))
            assert tables[0][:shortest] == tables[1][:shortest]
    assert outputs == [expected(PROMPT)] * 2
    assert engine.pool.tree.total_size() == len(PROMPT) + PARAMS.max_tokens - 1
    assert engine.pool.num_free == 80


def test_a_hit_to_the_token_is_used_and_a_damaged_slot_shows():
    """18 tokens are shared, which no block of 4 or 16 could hit whole; and the hits are really used."""
    follower = [*PROMPT[:18], 50, 51]
    for name in ("keys", "values"):
        for damaged in (False, True):
            engine: Any = LLMEngine(MODEL, pool=RadixBlockPool(80))
            engine.generate([PROMPT], PARAMS)
            if damaged:
                getattr(engine.kv_cache, name)[:, :, engine.pool.lookup(PROMPT)[17]] = 0
            (output,) = engine.generate([follower], PARAMS)
            assert engine.step_log[-PARAMS.max_tokens]["num_cached"] == 18
            assert (output != expected(follower)) == damaged
