"""The reference of problem 131 does what the pool of chapter 03 does, wherever both say what is to be done."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from handbook.prefix_cache import PrefixCachingBlockPool
from practice.grader.catalogue import Solution
from practice.grader.problems import load

PROBLEM = load(131)
PrefixCache = Solution(PROBLEM.folder / "reference.py", PROBLEM.class_name, "AC").make()


def admit(pool: PrefixCachingBlockPool, tokens: list[int]) -> tuple[list[int], int] | None:
    """What the engine does for a request that is computed at once: look up, count, take, register."""
    hits = pool.lookup(tokens[:-1])
    num_new = -(-len(tokens) // pool.block_size) - len(hits)
    if num_new > pool.num_free - sum(pool.ref_cnt[block] == 0 for block in hits):
        return None
    pool.touch(hits)
    new = pool.allocate(num_new)
    assert new is not None
    return pool.cache_blocks(tokens, hits + new, len(tokens)), len(hits) * pool.block_size


@settings(max_examples=150, deadline=None)
@given(
    num_blocks=st.integers(1, 8),
    block_size=st.integers(1, 3),
    calls=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=9) | st.integers(0, 9), max_size=30),
)
def test_reference_and_pool_agree_in_answers_queue_and_counts(num_blocks, block_size, calls):
    cache, pool = PrefixCache(num_blocks, block_size), PrefixCachingBlockPool(num_blocks, block_size)
    tables: list[list[int]] = []
    for call in calls:
        if isinstance(call, list):
            answer = cache.allocate(list(call))
            assert answer == admit(pool, call)
            if answer is not None:
                tables.append(answer[0])
        elif tables:
            table = tables.pop(call % len(tables))
            cache.free(list(table))
            pool.free(table)
        assert list(cache.free_queue) == list(pool.free_queue)
        assert cache.num_references == pool.ref_cnt
        assert {block for block in range(num_blocks) if cache.block_key[block]} == set(pool.hash_to_block.values())
