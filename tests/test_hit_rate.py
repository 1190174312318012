"""The table of hit rates to the digit, on the two caches of the course; blocks against the tree; agents."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handbook.hit_rate import (
    agents,
    block_hits,
    block_ids,
    few_shot,
    hit_rate,
    interleaved,
    loss_per_shared_prefix,
    questions_about_documents,
    tree_hits,
    workloads,
)
from tests.naive.plain_block_pool import PlainBlockPool
from tests.naive.plain_radix import PlainRadixCache

PROMPTS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=12), min_size=1, max_size=12)
TABLE = {  # radix tree, blocks of 16, blocks of 64
    "shared system prompt": ("89.5%", "88.8%", "86.0%"),
    "multi-turn": ("79.2%", "78.6%", "76.8%"),
    "few-shot": ("89.6%", "87.8%", "81.1%"),
    "parallel sampling": ("87.1%", "84.2%", "73.3%"),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_hit_rates_of_the_four_workloads_are_those_of_the_table(name):
    prompts = workloads()[name]
    hits = tree_hits(prompts), block_hits(prompts, 16), block_hits(prompts, 64)
    assert tuple(f"{hit_rate(each, prompts):.1%}" for each in hits) == TABLE[name]


def test_another_seed_draws_other_prompts():
    assert few_shot(Random(1)) != few_shot(Random(2))


@given(PROMPTS, st.integers(1, 5))
def test_unlimited_blocks_find_what_the_tree_finds_rounded_down_to_whole_blocks(prompts, block_size):
    assert block_hits(prompts, block_size) == [hits // block_size * block_size for hits in tree_hits(prompts)]


@given(PROMPTS)
def test_the_tree_finds_the_longest_beginning_that_any_earlier_prompt_has(prompts):
    def shared(left, right):
        return next(
            (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
        )

    expected = [max([shared(p[:-1], q) for q in prompts[:now]], default=0) for now, p in enumerate(prompts)]
    assert tree_hits(prompts) == expected


@given(PROMPTS, st.integers(12, 40))
def test_a_bounded_tree_hits_what_the_plain_one_hits(prompts, capacity):
    tree, expected = PlainRadixCache(), []
    for prompt in prompts:
        found, node = tree.match_prefix(prompt[:-1])
        tree.inc_lock_ref(node)
        tree.evict(max(0, tree.total_size() + len(prompt) - len(found) - capacity))
        tree.insert(prompt, list(range(len(prompt))))
        tree.dec_lock_ref(node)
        assert tree.total_size() <= capacity
        expected.append(len(found))
    assert tree_hits(prompts, capacity) == expected


@given(PROMPTS, st.integers(12, 40))
def test_bounded_blocks_hit_what_the_plain_pool_hits(prompts, capacity):
    pool, expected = PlainBlockPool(capacity // 2, 2), []
    for prompt in prompts:
        found = pool.lookup(prompt[:-1])
        pool.touch(found)
        new = pool.allocate(-(-len(prompt) // 2) - len(found))
        assert new is not None
        pool.free(pool.cache_blocks(prompt, found + new, len(prompt)))
        expected.append(2 * len(found))
    assert block_hits(prompts, 2, capacity) == expected


@pytest.mark.parametrize("hits", [tree_hits, lambda prompts, capacity: block_hits(prompts, 4, capacity)])
def test_a_prompt_larger_than_the_cache_is_an_error(hits):
    assert hits([[1] * 8], 8) == [0]
    with pytest.raises(ValueError, match=r"a prompt takes (9|12) tokens of the cache, which has 8"):
        hits([[1] * 9], 8)


def test_blocks_of_no_tokens_are_an_error():
    with pytest.raises(ValueError, match="at least one token; got block_size 0"):
        block_hits([[1]], 0)


def test_where_shared_prefixes_end_anywhere_a_block_loses_half_of_itself():
    prompts = workloads()["multi-turn"]
    for block_size in (4, 16, 64):
        assert loss_per_shared_prefix(prompts, block_size) == pytest.approx((block_size - 1) / 2, rel=0.35)
    assert loss_per_shared_prefix(prompts, 1) == 0


def test_where_all_shared_prefixes_end_in_one_place_the_loss_is_the_rest_of_that_length():
    system = workloads()["shared system prompt"]
    assert loss_per_shared_prefix(system, 64) == 1000 % 64


def test_prompts_that_share_nothing_have_nothing_to_lose():
    with pytest.raises(ValueError, match="share no prefixes"):
        loss_per_shared_prefix([[1, 2], [3, 4]], 16)


def test_an_agent_sends_its_whole_context_again_and_finds_all_of_it():
    ((*prompts,),) = agents(1)
    assert tree_hits(prompts)[1:] == [len(prompt) for prompt in prompts[:-1]]
    assert all(later[: len(former)] == former for former, later in pairwise(prompts))


def test_agents_share_their_tools_and_nothing_else():
    first, second = agents(2, num_turns=1)
    assert tree_hits(first + second)[1] == 1000


def test_sessions_take_turns_until_all_have_ended():
    assert interleaved([[[1], [2], [3]], [[4]], [[5], [6]]]) == [[1], [4], [5], [2], [6], [3]]


def test_with_more_agents_than_fit_nothing_is_left_of_the_hits_but_the_tools_that_all_share():
    def hits(num_agents):
        return block_hits(interleaved(agents(num_agents, num_turns=8)), 16, 16_000)

    assert min(hits(4)[4:]) > 1000
    assert set(hits(16)[-2 * 16 :]) == {1000 // 16 * 16}


def test_under_pressure_whole_leaves_lose_more_than_partial_blocks():
    prompts = questions_about_documents(num_documents=10, document_tokens=1000, num_questions=200)
    assert sum(tree_hits(prompts)) > sum(block_hits(prompts, 16))
    assert sum(tree_hits(prompts, 2000)) < sum(block_hits(prompts, 16, 2000))


def test_equal_block_ids_mean_equal_whole_prefixes():
    ids = block_ids([[1, 2, 3, 4, 5], [1, 2, 9, 4], [3, 4, 3, 4]], 2)
    assert [len(each) for each in ids] == [2, 2, 2]
    assert ids[0][0] == ids[1][0]
    assert len({block for each in ids for block in each}) == 5
