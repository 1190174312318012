"""What every `CachingBlockPool` promises, whatever it finds prefixes by: wrong calls, nothing, statistics."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.radix import RadixBlockPool

POOLS: dict[str, Callable[[int], Any]] = {
    "blocks of 1": lambda num_blocks: PrefixCachingBlockPool(num_blocks, 1),
    "blocks of 2": lambda num_blocks: PrefixCachingBlockPool(num_blocks, 2),
    "tree": lambda num_blocks: RadixBlockPool(num_blocks),
    "tree of pages of 2": lambda num_blocks: RadixBlockPool(2 * num_blocks, 2),
}
each_pool = pytest.mark.parametrize("make", POOLS.values(), ids=POOLS)


def state(pool: Any) -> bytes:
    """All that a pool knows, the order of its queues included."""
    return pickle.dumps(pool)


def tokens(pool: Any, letters: str) -> list[int]:
    """A block of tokens for each letter."""
    return [ord(letter) for letter in letters for _ in range(pool.block_size)]


def register(pool: Any, letters: str, blocks: list[int], num_blocks: int | None = None) -> list[int]:
    """Register the first num_blocks blocks, or all."""
    num_computed = (len(letters) if num_blocks is None else num_blocks) * pool.block_size
    return pool.cache_blocks(tokens(pool, letters), blocks, num_computed)


def cached(pool: Any, letters: str) -> list[int]:
    """Blocks newly allocated and registered, and still held."""
    return register(pool, letters, pool.allocate(len(letters)))


def busy_pool(make: Callable[[int], Any]) -> Any:
    """Ten blocks: 0 1 2 for A B C, held, 0 1 by another one, too; 3 held unregistered; 4 5 cached; 6 to 9 free."""
    pool = make(10)
    register(pool, "ABCD", pool.allocate(4), 3)
    pool.touch([0, 1])
    pool.free(cached(pool, "EF"))
    pool.record(4, 2)
    pool.check_invariants()
    return pool


WRONG_CALLS: dict[str, tuple[Callable[[Any], object], str]] = {
    "free what nobody holds": (lambda p: p.free([6]), "block 6 has 0 references"),
    "free what is cached and nobody holds": (lambda p: p.free([4, 5]), "block [45] has 0 references"),
    "free what is held and what is not": (lambda p: p.free([0, 6]), "block 6 has 0 references"),
    "free a block twice in one call": (lambda p: p.free([0, 1, 2, 2]), "block 2 has 1 references; .* 2 times"),
    "free a block twice, but not in turn": (lambda p: p.free([0, 2, 1, 2]), "block 2 has 1 references; .* 2 times"),
    "free a block three times that two hold": (lambda p: p.free([0, 0, 0]), "block 0 has 2 references; .* 3 times"),
    "free a block that does not exist": (lambda p: p.free([0, 1, 10]), "no block 10: .* 0 to 9"),
    "free a negative block": (lambda p: p.free([0, 1, -1]), "no block -1"),
    "free a negative block by itself": (lambda p: p.free([-10]), "no block -10"),
    "free what is no number": (lambda p: p.free([0, 1, "2"]), "no block '2'"),
    "free half a block": (lambda p: p.free([0, 1, 1.5]), "no block 1.5"),
    "touch a block that does not exist": (lambda p: p.touch([0, 10]), "no block 10: .* 0 to 9"),
    "touch a negative block": (lambda p: p.touch([0, 1, -8]), "no block -8"),
    "touch what is no number": (lambda p: p.touch([0, 1, "2"]), "no block '2'"),
    "touch half a block": (lambda p: p.touch([0, 1.5]), "no block 1.5"),
    "allocate a negative number": (lambda p: p.allocate(-1), "-1"),
    "allocate half a block": (lambda p: p.allocate(0.5), "0.5"),
    "allocate half a block more than is free": (lambda p: p.allocate(4.5), r"[40]\.5"),
    "register blocks not given": (lambda p: register(p, "ABCD", [0, 1, 2]), "computed of .* 3 blocks"),
    "register more tokens than given": (lambda p: register(p, "ABC", [0, 1, 2, 3], 4), "computed of .* 4 blocks"),
    "register a negative number": (lambda p: p.cache_blocks(tokens(p, "AB"), [0, 1], -1), "-1 computed"),
    "register a free block": (lambda p: register(p, "ABCD", [0, 1, 2, 6]), r"block 6 is held by nobody|\[6\] must"),
    "register free blocks": (lambda p: register(p, "GH", [7, 6]), r"block 6 is held by nobody|\[7, 6\] must"),
    "register one block twice": (lambda p: register(p, "ABCDE", [0, 1, 2, 3, 3]), r"\[3, 3\]"),
    "register a block that does not exist": (lambda p: register(p, "ABCD", [0, 1, 2, 10]), "no block 10"),
    "register a negative block": (lambda p: register(p, "ABCD", [0, 1, 2, -7]), "no block -7"),
    "register for another prefix": (lambda p: register(p, "XYZD", [0, 1, 2, 3]), "block 2 is (registered for|not)"),
    "record more hits than tokens": (lambda p: p.record(1, 2), "2 hits"),
    "record a negative number of tokens": (lambda p: p.record(-1, -1), "-1 hits"),
    "record a negative number of hits": (lambda p: p.record(3, -1), "-1 hits"),
}


@pytest.mark.parametrize("what", WRONG_CALLS)
@each_pool
def test_a_wrong_call_names_what_is_wrong_and_changes_nothing(what, make):
    call, message = WRONG_CALLS[what]
    pool = busy_pool(make)
    before = state(pool)
    with pytest.raises(ValueError, match=message):
        call(pool)
    assert state(pool) == before


@each_pool
def test_a_table_cannot_be_freed_again_after_its_last_holder_let_go(make):
    """sglang #38941, #31486, sglang-jax PR #982: one slot freed on two paths."""
    pool = make(2)
    table = cached(pool, "AB")
    pool.free(table)
    before = state(pool)
    with pytest.raises(ValueError, match="cannot free"):
        pool.free(table)
    assert state(pool) == before


@each_pool
def test_more_than_is_free_cannot_be_allocated_and_nothing_is_forgotten(make):
    pool = make(4)
    pool.free(cached(pool, "ABC"))
    pool.touch(pool.lookup(tokens(pool, "AB")))
    before = state(pool)
    assert pool.allocate(3) is None
    assert state(pool) == before


@each_pool
def test_nothing_is_a_right_argument_everywhere(make):
    pool = busy_pool(make)
    before = state(pool)
    assert (pool.allocate(0), pool.lookup([]), pool.cache_blocks([], [], 0)) == ([], [], [])
    pool.touch([])
    pool.free([])
    pool.record(0, 0)
    pool.extend_hashes([], [])
    assert state(pool) == before


@each_pool
def test_registering_what_is_registered_changes_nothing(make):
    pool = busy_pool(make)
    before = state(pool)
    table = [0, 1, 2, 3]
    for num_blocks in range(4):
        assert register(pool, "ABCD", table, num_blocks) is table
    assert state(pool) == before


@each_pool
def test_records_add_up(make):
    pool = make(1)
    pool.record(10, 4)
    pool.record(5, 0)
    assert (pool.num_queries, pool.num_hits) == (15, 4)


@each_pool
def test_check_invariants_notices_more_hits_than_tokens_looked_up(make):
    pool = busy_pool(make)
    pool.num_hits = 5
    with pytest.raises(AssertionError, match="hits are a part"):
        pool.check_invariants()
