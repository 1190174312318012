"""Prefix caching with hash blocks: against the naive model, to the letter of the transcript, abused, and counted."""

from __future__ import annotations

import copy
import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from handbook import prefix_cache
from handbook.prefix_cache import PrefixCachingBlockPool
from tests.naive.plain_block_pool import PlainBlockPool
from tests.naive.prefix_model import NaivePrefixCache

few_tokens = st.lists(st.integers(0, 1), max_size=10)  # two different tokens, so that prefixes are often shared


def state(pool: PrefixCachingBlockPool) -> dict[str, Any]:
    """All that a pool knows; the order of its free queue counts, since two ordered mappings compare by order."""
    return copy.deepcopy(vars(pool))


def cached(pool: PrefixCachingBlockPool, token_ids: list[int]) -> list[int]:
    """Blocks newly allocated and registered for token_ids, and still held."""
    blocks = pool.allocate(-(-len(token_ids) // pool.block_size))
    assert blocks is not None
    return pool.cache_blocks(token_ids, blocks, len(token_ids))


# ---- the whole contract, against the naive model


class PoolAgainstModel(RuleBasedStateMachine):
    """Requests come, compute in pieces, grow and go, on the pool and on the model; after each operation both agree."""

    @initialize(num_blocks=st.integers(1, 8), block_size=st.integers(1, 3))
    def start(self, num_blocks, block_size):
        self.pool = PrefixCachingBlockPool(num_blocks, block_size)
        self.model = NaivePrefixCache(num_blocks, block_size)
        self.requests: list[dict[str, Any]] = []
        self.holders: list[list[int]] = []

    def pick(self, items: list[Any], number: int) -> Any:
        return items[number % len(items)]

    def allocate(self, n: int) -> list[int] | None:
        blocks = self.pool.allocate(n)
        assert blocks == self.model.allocate(n)
        return blocks

    @rule(token_ids=few_tokens.filter(len))
    def admit(self, token_ids):
        hits = self.pool.lookup(token_ids[:-1])
        assert hits == self.model.lookup(token_ids[:-1])
        self.pool.touch(hits)
        self.model.touch(hits)
        blocks = self.allocate(-(-len(token_ids) // self.pool.block_size) - len(hits))
        if blocks is None:
            self.pool.free(hits)
            self.model.free(hits)
            return
        num_computed = len(hits) * self.pool.block_size
        self.requests.append({"tokens": token_ids, "table": hits + blocks, "computed": num_computed, "hashes": []})

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0, 99), num_tokens=st.integers(0, 5), gives_hashes=st.booleans())
    def compute(self, number, num_tokens, gives_hashes):
        request = self.pick(self.requests, number)
        request["computed"] = min(request["computed"] + num_tokens, len(request["tokens"]))
        hashes = None
        if gives_hashes:
            self.pool.extend_hashes(request["hashes"], request["tokens"])
            hashes = request["hashes"]
        table = self.pool.cache_blocks(request["tokens"], request["table"], request["computed"], hashes)
        assert table == request["table"]
        self.model.cache_blocks(request["tokens"], request["table"], request["computed"])

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0, 99), token=st.integers(0, 1))
    def grow(self, number, token):
        request = self.pick(self.requests, number)
        if len(request["tokens"]) == len(request["table"]) * self.pool.block_size:
            blocks = self.allocate(1)
            if blocks is None:
                return
            request["table"] += blocks
        request["tokens"].append(token)

    @precondition(lambda self: self.requests)
    @rule(number=st.integers(0, 99))
    def finish(self, number):
        request = self.pick(self.requests, number)
        self.requests.remove(request)
        self.pool.free(request["table"])
        self.model.free(request["table"])

    @rule(token_ids=few_tokens)
    def hold(self, token_ids):
        hits = self.pool.lookup(token_ids)
        self.pool.touch(hits)
        self.model.touch(hits)
        self.holders.append(hits)

    @precondition(lambda self: self.holders)
    @rule(number=st.integers(0, 99))
    def release(self, number):
        hits = self.holders.pop(number % len(self.holders))
        self.pool.free(hits)
        self.model.free(hits)

    @rule(token_ids=few_tokens, more=few_tokens, num_hashes=st.integers(0, 12))
    def look_up(self, token_ids, more, num_hashes):
        before = state(self.pool)
        hashes = self.pool.block_hashes(token_ids + more)[:num_hashes]  # too few, as many, or too many
        for found in (self.pool.lookup(token_ids), self.pool.lookup(token_ids, hashes)):
            assert found == self.model.lookup(token_ids)
        assert state(self.pool) == before

    @invariant()
    def pool_and_model_agree(self):
        self.pool.check_invariants()
        assert self.pool.ref_cnt == self.model.holders
        assert list(self.pool.free_queue) == self.model.queue
        assert self.pool.num_free == len(self.model.queue)
        registered = {self.pool.block_hashes(prefix)[-1]: block for block, prefix in self.model.prefix_of.items()}
        assert self.pool.hash_to_block == registered
        assert {block: h for block, h in enumerate(self.pool.block_hash) if h} == {b: h for h, b in registered.items()}


TestPoolAgainstModel = PoolAgainstModel.TestCase
TestPoolAgainstModel.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)


def test_the_transcript_of_a_pool_of_four_blocks_of_two_tokens():
    pool = PrefixCachingBlockPool(4, 2)
    assert pool.allocate(3) == [0, 1, 2]
    assert pool.cache_blocks([1, 2, 3, 4, 5], [0, 1, 2], 5) == [0, 1, 2]
    assert [h is not None for h in pool.block_hash] == [True, True, False, False]
    pool.free([0, 1, 2])
    assert list(pool.free_queue) == [3, 2, 1, 0]
    assert pool.lookup([1, 2, 3, 4, 9]) == [0, 1]
    pool.touch([0, 1])
    assert list(pool.free_queue) == [3, 2]
    pool.free([0, 1])
    assert pool.allocate(3) == [3, 2, 1]
    assert pool.lookup([1, 2, 3, 4, 9]) == [0]


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), max_size=12), st.integers(4, 12))
def test_the_plain_version_hits_the_same_blocks(prompts, num_blocks):
    """So what the benchmark compares is the same work."""
    pool, plain = PrefixCachingBlockPool(num_blocks, 3), PlainBlockPool(num_blocks, 3)
    for prompt in prompts:
        tables = []
        for each in (pool, plain):
            hits = each.lookup(prompt[:-1])
            each.touch(hits)
            blocks = each.allocate(-(-len(prompt) // 3) - len(hits))
            assert blocks is not None
            tables.append(each.cache_blocks(prompt, hits + blocks, len(prompt)))
            each.free(tables[-1])
        assert tables[0] == tables[1]


# ---- hashes


def test_a_hash_is_sha256_over_the_parent_and_64_bit_tokens():
    first, second = PrefixCachingBlockPool(1, 2).block_hashes([1, 2, 3, 4, 5])
    assert first.hex() == "bc46af79e96bc03a3b5a1a88aeab5079b0dd4c6dfc5f9c14e318fec7de310f6b"
    assert second.hex() == "456085d4fd464c1c3933d729ca9c0ca386011432460b3a08c6ccf903fbed4d9c"


def test_hashes_are_the_same_in_a_process_with_another_hash_seed():
    code = "from handbook.prefix_cache import *; print(*PrefixCachingBlockPool(1, 2).block_hashes([5, 6, 7, 8]))"
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    root = Path(prefix_cache.__file__).parent.parent
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == " ".join(map(str, PrefixCachingBlockPool(1, 2).block_hashes([5, 6, 7, 8])))


def test_equal_hash_means_equal_whole_prefix():
    pool = PrefixCachingBlockPool(1, 2)
    prefix_of: dict[bytes, tuple[int, ...]] = {}
    for tokens in itertools.product([0, 1, 256], repeat=6):
        for index, block_hash in enumerate(pool.block_hashes(tokens)):
            prefix = tokens[: 2 * index + 2]
            assert prefix_of.setdefault(block_hash, prefix) == prefix
    assert len(prefix_of) == 3**2 + 3**4 + 3**6


def test_a_block_that_is_not_full_has_no_hash():
    assert [len(PrefixCachingBlockPool(1, 3).block_hashes(range(n))) for n in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_a_large_token_does_not_fold_onto_a_small_one():
    """vllm PR #12621: with Python's hash, 1 and 1 + 2**61 - 1 are the same."""
    assert hash((1, 2)) == hash((1 + 2**61 - 1, 2))
    pool = PrefixCachingBlockPool(2, 2)
    cached(pool, [1, 2])
    assert pool.lookup([1 + 2**61 - 1, 2]) == []


@given(few_tokens, st.lists(st.integers(1, 10)), st.integers(1, 3))
def test_hashes_extended_piece_by_piece_are_those_of_the_whole(token_ids, cuts, block_size):
    pool = PrefixCachingBlockPool(1, block_size)
    hashes: list[bytes] = []
    for cut in sorted(cuts):
        pool.extend_hashes(hashes, token_ids[:cut])
        assert hashes == pool.block_hashes(token_ids[:cut])


def test_hashes_that_could_not_all_be_extended_stay_as_they_were():
    pool = PrefixCachingBlockPool(1, 2)
    hashes = pool.block_hashes([1, 2])
    with pytest.raises(ValueError, match="whole numbers below"):
        pool.extend_hashes(hashes, [1, 2, 3, 4, 5, 2**63])
    assert hashes == pool.block_hashes([1, 2])


# ---- look-ups


def test_a_block_with_the_same_tokens_under_another_prefix_is_no_hit():
    pool = PrefixCachingBlockPool(4, 2)
    cached(pool, [1, 2, 3, 4])
    assert pool.lookup([9, 9, 3, 4]) == [] == pool.lookup([3, 4])


def test_a_lookup_never_looks_beyond_the_full_blocks_of_its_tokens():
    pool = PrefixCachingBlockPool(4, 2)
    blocks = cached(pool, [1, 2, 3, 4, 5, 6])
    hashes = pool.block_hashes([1, 2, 3, 4, 5, 6])
    assert [pool.lookup([1, 2, 3, 4, 5, 6][:n], hashes) for n in range(7)] == [blocks[: n // 2] for n in range(7)]


def test_a_lookup_with_too_few_hashes_finds_the_longest_prefix_all_the_same():
    pool = PrefixCachingBlockPool(4, 2)
    blocks = cached(pool, [1, 2, 3, 4, 5, 6])
    hashes = pool.block_hashes([1, 2, 3, 4, 5, 6])
    assert [pool.lookup([1, 2, 3, 4, 5, 6], hashes[:n]) for n in range(4)] == [blocks] * 4


def test_a_lookup_changes_neither_the_pool_nor_the_hashes_it_is_given():
    pool = PrefixCachingBlockPool(4, 2)
    pool.free(cached(pool, [1, 2, 3, 4]))
    hashes = pool.block_hashes([1, 2])
    before = state(pool), list(hashes)
    pool.lookup([1, 2, 3, 4, 5, 6], hashes)
    assert (state(pool), hashes) == before


# ---- what stays, and what is forgotten first


def test_a_child_is_forgotten_before_its_parent():
    pool = PrefixCachingBlockPool(3, 1)
    blocks = cached(pool, [1, 2, 3])
    pool.free(blocks)
    found = []
    for _ in blocks:
        pool.allocate(1)
        found.append(pool.lookup([1, 2, 3]))
    assert found == [blocks[:2], blocks[:1], []]


def test_the_least_recently_used_prefix_is_forgotten_first():
    pool = PrefixCachingBlockPool(2, 1)
    for token in (1, 2):
        pool.free(cached(pool, [token]))
    pool.touch(pool.lookup([1]))
    pool.free(pool.lookup([1]))
    pool.allocate(1)
    assert (pool.lookup([1]), pool.lookup([2])) == ([0], [])


def test_a_hit_block_is_safe_until_all_its_holders_let_go():
    pool = PrefixCachingBlockPool(2, 1)
    block = cached(pool, [7])
    pool.touch(block)
    pool.free(block)
    assert pool.allocate(2) is None
    assert pool.lookup([7]) == block
    pool.free(block)
    assert pool.allocate(2) == [1, 0]


def test_a_block_handed_out_again_is_found_by_nobody():
    """nano-vllm #163: the old hash stayed in the map, and a later request hit foreign data."""
    pool = PrefixCachingBlockPool(4, 2)
    pool.free(cached(pool, [1, 2, 3, 4]))
    pool.allocate(4)
    assert pool.lookup([1, 2, 3, 4]) == []
    assert pool.hash_to_block == {}


def test_a_block_is_handed_out_without_a_hash():
    """vllm PRs #4761, #4764, #5364: it was handed out still marked as computed."""
    pool = PrefixCachingBlockPool(1, 2)
    pool.free(cached(pool, [1, 2]))
    (block,) = pool.allocate(1) or []
    assert pool.block_hash[block] is None


# ---- two requests that computed one block side by side


def test_of_two_blocks_computed_side_by_side_the_first_stays_registered():
    """nano-vllm #219: the later one took over the map, and its eviction hid the first, still alive."""
    pool = PrefixCachingBlockPool(4, 2)
    first, second = cached(pool, [1, 2, 3, 4]), cached(pool, [1, 2, 3, 4])
    assert pool.lookup([1, 2, 3, 4]) == first
    pool.free(second)
    pool.allocate(2)
    assert pool.lookup([1, 2, 3, 4]) == first


def test_a_copy_is_never_promoted_so_a_hit_can_be_lost():
    """The mirror of nano-vllm #219, and ours: lost, never wrong. (vLLM keeps all copies.)"""
    pool = PrefixCachingBlockPool(3, 2)
    first, second = cached(pool, [1, 2]), cached(pool, [1, 2])
    pool.free(first)
    pool.allocate(2)
    assert pool.cache_blocks([1, 2], second, 2) == second
    assert pool.lookup([1, 2]) == []


def test_the_child_of_a_lost_parent_is_found_again_when_the_parent_is_computed_again():
    pool = PrefixCachingBlockPool(4, 2)
    parent = cached(pool, [1, 2])
    table = pool.allocate(2) or []
    pool.cache_blocks([1, 2, 3, 4], table, 4)  # a copy of the parent, and its registered child
    pool.free(parent)
    pool.allocate(2)
    assert pool.lookup([1, 2, 3, 4]) == []
    pool.free([parent[0]])
    again = cached(pool, [1, 2])
    assert pool.lookup([1, 2, 3, 4]) == [again[0], table[1]]


def test_a_copy_cannot_be_registered_for_another_prefix():
    pool = PrefixCachingBlockPool(4, 2)
    cached(pool, [1, 2])
    table = cached(pool, [1, 2]) + (pool.allocate(1) or [])
    before = state(pool)
    with pytest.raises(ValueError, match=r"block 1 .*another prefix"):
        pool.cache_blocks([7, 7, 8, 8], table, 4)
    assert state(pool) == before


# ---- wrong calls


def busy_pool() -> PrefixCachingBlockPool:
    """Six blocks of two tokens: 0 and 1 registered for 1 2 3 4, 0 held twice; 2 held; 3, 4 and 5 free."""
    pool = PrefixCachingBlockPool(6, 2)
    cached(pool, [1, 2, 3, 4, 5])
    pool.touch([0])
    return pool


H1, H2 = PrefixCachingBlockPool(1, 2).block_hashes([1, 2, 3, 4])
WRONG_CALLS = {  # besides those of tests/test_caching_pools.py
    "register with too few hashes": (lambda p: p.cache_blocks([1, 2, 3, 4], [0, 1], 4, [H1]), "1 hashes.*2 full"),
    "register with hashes of another prefix": (
        lambda p: p.cache_blocks([1, 2, 3, 4], [0, 1], 4, [H1, H1]),
        "block 1.*another prefix",
    ),
    "hash a token of 64 bits": (lambda p: p.block_hashes([1, 2**63]), str(2**63)),
    "hash half a token": (lambda p: p.block_hashes([1, 0.5]), "0.5"),
    "look up a token of 64 bits": (lambda p: p.lookup([1, 2**63]), str(2**63)),
    "register a token of 64 bits": (lambda p: p.cache_blocks([1, 2, 3, 4, 5, 2**63], [0, 1, 2], 6), str(2**63)),
}


@pytest.mark.parametrize("what", WRONG_CALLS)
def test_a_wrong_call_names_what_is_wrong_and_changes_nothing(what):
    call, message = WRONG_CALLS[what]
    pool = busy_pool()
    before = state(pool)
    with pytest.raises(ValueError, match=message):
        call(pool)
    assert state(pool) == before


BREAKS = {
    "the two maps are inverse": lambda p: p.hash_to_block.clear(),
    "no two blocks are registered": lambda p: (p.block_hash.__setitem__(2, H1), p.hash_to_block.update({H1: 2})),
    "a copy has no hash of its own": lambda p: p.copies.update({0: H1}),
    "exactly the blocks with reference count 0": lambda p: p.free_queue.pop(3),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_check_invariants_names_the_broken_rule(broken):
    pool = busy_pool()
    pool.check_invariants()
    BREAKS[broken](pool)
    with pytest.raises(AssertionError, match=broken):
        pool.check_invariants()


# ---- work, counted


class CountingList(list[Any]):
    """A list that counts how many of its items were read."""

    def __init__(self, items: Any = ()) -> None:
        super().__init__(items)
        self.num_read = 0

    def __getitem__(self, index: Any) -> Any:
        self.num_read += len(range(*index.indices(len(self)))) if isinstance(index, slice) else 1
        return super().__getitem__(index)

    def __iter__(self) -> Any:
        for item in super().__iter__():
            self.num_read += 1
            yield item


def items_read_by_one_more_token(num_tokens: int) -> int:
    """Items of tokens, hashes and block table that are read when one token is registered after num_tokens."""
    pool = PrefixCachingBlockPool(num_tokens // 16 + 1)
    token_ids, hashes = CountingList(range(num_tokens)), CountingList()
    table = CountingList(pool.allocate(num_tokens // 16 + 1))
    pool.extend_hashes(hashes, token_ids)
    pool.cache_blocks(token_ids, table, num_tokens, hashes)
    for each in (token_ids, hashes, table):
        each.num_read = 0
    token_ids.append(num_tokens)
    pool.extend_hashes(hashes, token_ids)
    pool.cache_blocks(token_ids, table, num_tokens + 1, hashes)
    return sum(each.num_read for each in (token_ids, hashes, table))


@pytest.mark.parametrize("past_the_last_full_block", [0, 1, 15])
def test_registering_one_more_token_reads_the_same_few_items_at_any_length(past_the_last_full_block):
    counts = [items_read_by_one_more_token(n + past_the_last_full_block) for n in (160, 1600, 16000)]
    assert counts == [counts[0]] * 3
    assert counts[0] <= 16 + 8  # the tokens of a block that was filled, and the end of hashes and table


@pytest.fixture
def hashed(monkeypatch):
    """A list that grows by the tokens of each block that is hashed."""
    hash_block, blocks = prefix_cache.hash_block, []

    def counting_hash_block(parent, token_ids):
        blocks.append(token_ids)
        return hash_block(parent, token_ids)

    monkeypatch.setattr(prefix_cache, "hash_block", counting_hash_block)
    return blocks


def test_a_sequence_is_hashed_once_a_block_however_often_it_is_extended(hashed):
    pool = PrefixCachingBlockPool(1, 4)
    hashes: list[bytes] = []
    for length in range(103):
        pool.extend_hashes(hashes, range(length))
    assert len(hashed) == 102 // 4


def test_a_lookup_stops_hashing_at_the_first_block_that_is_not_cached(hashed):
    pool = PrefixCachingBlockPool(4, 4)
    cached(pool, [0, 1, 2, 3])
    hashed.clear()
    pool.lookup(list(range(4000)))
    assert len(hashed) == 2
