"""The engine finds cached prefixes again, as much as it can and no more, and counts them honestly."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from handbook import prefix_cache
from handbook.mini_llm import generate
from tests.engines import (
    EXPECTED,
    LONGEST,
    MODEL,
    PROMPTS,
    before_each,
    drain,
    each_cache,
    greedy,
    make_engine,
    registered,
    total,
)


@each_cache
@pytest.mark.parametrize("block_size", [1, 4, 16])
def test_caching_saves_exactly_the_tokens_that_it_hits(block_size, caching):
    engines = [make_engine(each, 300, block_size) for each in (False, caching)]
    for engine in engines:
        assert engine.generate(PROMPTS[:1], greedy()) == EXPECTED[:1]
        assert engine.generate(PROMPTS[1:], greedy()) == EXPECTED[1:]
    off, on = engines
    assert total(off, "num_tokens") - total(on, "num_tokens") == on.pool.num_hits == total(on, "num_cached")
    shared = [0 for _ in PROMPTS[1:]]
    for i, prompt in enumerate(PROMPTS[1:]):
        for n, (ours, first) in enumerate(zip(prompt[:-1], PROMPTS[0] + EXPECTED[0][:-1], strict=False), 1):
            if ours != first:
                break
            shared[i] = n
    assert on.pool.num_hits == sum(n // block_size * block_size for n in shared) > 0


@pytest.mark.parametrize("name", ["keys", "values"])
@pytest.mark.parametrize("index", range(4))
@each_cache
def test_a_damaged_block_shows_in_the_output_of_the_request_that_hits_it(name, index, caching):
    """The negative control of every equality here: hits are really used."""
    engine = make_engine(caching, 64, 4)
    engine.generate([PROMPTS[0]], greedy())
    block = engine.pool.lookup(PROMPTS[0])[index]
    getattr(engine.kv_cache, name)[:, :, block] = 0
    (output,) = engine.generate([PROMPTS[1]], greedy())
    assert total(engine, "num_cached") == 16
    assert output != EXPECTED[1]


@each_cache
def test_a_prompt_of_whole_blocks_that_is_all_cached_computes_its_last_block(caching):
    """nano-vllm #114; vllm PRs #11186, #17999: nothing left to compute, or a broken chain of hashes."""
    engine, cold = make_engine(caching, 32, 4), make_engine(caching, 32, 4)
    assert engine.generate([PROMPTS[6]], greedy(5)) == engine.generate([PROMPTS[6]], greedy(5)) == [EXPECTED[6][:5]]
    assert [entry["num_cached"] for entry in engine.step_log if entry["num_prefill"]] == [0, 4]
    assert [entry["num_prefill"] for entry in engine.step_log if entry["num_prefill"]] == [8, 4]
    cold.generate([PROMPTS[6]], greedy(5))
    assert registered(engine.pool) == registered(cold.pool)


@each_cache
def test_a_block_of_one_token_leaves_the_last_token_to_compute(caching):
    engine = make_engine(caching, 64, 1)
    for _ in range(2):
        assert engine.generate([PROMPTS[6]], greedy(2)) == [EXPECTED[6][:2]]
    assert [entry["num_prefill"] for entry in engine.step_log] == [8, 0, 1, 0]


@each_cache
def test_two_equal_prompts_in_one_step_are_both_computed_and_registered_once(caching):
    engine = make_engine(caching, 64, 4)
    assert engine.generate([PROMPTS[2]] * 2, greedy()) == [EXPECTED[2]] * 2
    assert engine.step_log[0]["num_prefill"] == 2 * len(PROMPTS[2])
    assert engine.pool.num_hits == 0
    assert len(registered(engine.pool)) == (len(PROMPTS[2]) + LONGEST - 1) // 4


@each_cache
def test_a_request_added_one_step_later_hits_what_is_still_running(caching):
    engine = make_engine(caching, 64, 4)
    engine.add_request(PROMPTS[2], greedy())
    engine.step()
    engine.add_request(PROMPTS[2], greedy())
    engine.step()
    assert engine.step_log[1] == {"num_tokens": 5, "num_prefill": 4, "num_decode": 1, "num_cached": 16}
    assert drain(engine) == {0: EXPECTED[2], 1: EXPECTED[2]}


@each_cache
def test_hits_use_up_nothing_of_the_budget(caching):
    engine = make_engine(caching, 64, 4, max_num_batched_tokens=16)
    engine.generate([PROMPTS[0]], greedy(1))
    requests = [engine.add_request(PROMPTS[1], greedy()) for _ in range(3)]
    engine.step()
    assert engine.step_log[-1] == {"num_tokens": 15, "num_prefill": 15, "num_decode": 0, "num_cached": 48}
    assert drain(engine) == dict.fromkeys(requests, EXPECTED[1])


@each_cache
def test_generated_tokens_are_hit_too(caching):
    engine = make_engine(caching, 64, 4)
    engine.generate([PROMPTS[7]], greedy())
    follow_up = PROMPTS[7] + EXPECTED[7] + [1, 2]
    (output,) = engine.generate([follow_up], greedy(4))
    assert engine.pool.num_hits == (len(PROMPTS[7]) + LONGEST - 1) // 4 * 4 == 12
    assert output == generate(MODEL, torch.tensor([follow_up]), 4)[0].tolist()


@each_cache
def test_a_chunk_is_registered_before_the_prompt_is_done(caching):
    engine = make_engine(caching, 64, 4, max_num_batched_tokens=8)
    engine.add_request(PROMPTS[3], greedy())
    engine.step()
    assert len(engine.pool.lookup(PROMPTS[3])) == 2


@each_cache
def test_nothing_is_registered_before_it_is_computed(monkeypatch, caching):
    engine = make_engine(caching, 64, 4)
    engine.add_request(PROMPTS[3], greedy())
    found: list[list[int]] = []
    before_each(monkeypatch, MODEL, "hidden_states", lambda *args: found.append(engine.pool.lookup(PROMPTS[3])))
    engine.step()
    assert found == [[]]


@each_cache
def test_statistics_of_a_request_are_recorded_once_however_often_it_is_preempted(caching):
    """vllm #25780: preempted requests hit their own blocks, and random prompts showed a hit rate of 32%."""
    engine = make_engine(caching, 7, 4)
    prompts = [PROMPTS[7], [5, 6, 7, 8, 9, 10]]
    outputs = engine.generate(prompts, greedy())
    assert outputs == [generate(MODEL, torch.tensor([prompt]), LONGEST)[0].tolist() for prompt in prompts]
    assert total(engine, "num_cached") > 0, "nobody was preempted and found its own blocks again"
    assert (engine.pool.num_hits, engine.pool.num_queries) == (0, sum(len(prompt) - 1 for prompt in prompts))


@each_cache
def test_a_request_that_waits_for_blocks_records_nothing_until_it_is_admitted(caching):
    engine = make_engine(caching, 6, 4)
    engine.add_request(PROMPTS[2], greedy(1))
    engine.add_request(PROMPTS[5], greedy(4))
    engine._schedule()
    for _ in range(3):
        engine._schedule()
    assert engine.pool.num_queries == len(PROMPTS[2]) - 1
    assert drain(engine) == {0: EXPECTED[2][:1], 1: EXPECTED[5][:4]}
    assert engine.pool.num_queries == len(PROMPTS[2]) + len(PROMPTS[5]) - 2


STRANGERS = [[5 + n, *range(30, 53)] for n in range(2)]  # of six blocks of 4 each, that share nothing with PROMPTS


@pytest.mark.parametrize(
    ("num_blocks", "cached_first", "before", "num_found"),
    [(11, STRANGERS[1], PROMPTS[3], 0), (12, PROMPTS[0], STRANGERS[0], 16)],
    ids=["more was cached since", "a part was evicted since"],
)
@each_cache
def test_what_a_failed_attempt_found_is_never_used_later(
    monkeypatch, caching, num_blocks, cached_first, before, num_found
):
    """A request waits behind another one, and meanwhile what is cached of its prompt changes."""
    engine = make_engine(caching, num_blocks, 4)
    engine.generate([cached_first], greedy(1))
    engine.add_request(before, greedy())
    request_id = engine.add_request(PROMPTS[3], greedy())
    request, lookup, num_hits, found = engine.waiting[-1], engine.pool.lookup, engine.pool.num_hits, []

    def looking(token_ids, hashes):
        blocks = lookup(token_ids, hashes)
        if token_ids == PROMPTS[3][:-1]:
            found.append(len(blocks) * 4)
        return blocks

    monkeypatch.setattr(engine.pool, "lookup", looking)
    while request.num_cached is None:
        engine.step()
    assert found[0] == num_found != found[-1]
    assert request.num_cached == engine.step_log[-1]["num_cached"] == engine.pool.num_hits - num_hits == found[-1]
    assert drain(engine)[request_id] == EXPECTED[3]


@each_cache
def test_a_pool_whose_every_free_block_is_cached_evicts_them(caching):
    engine = make_engine(caching, 6, 4)
    for stranger in STRANGERS:
        engine.generate([stranger], greedy(1))
    assert len(registered(engine.pool)) == engine.pool.num_free == 6
    assert engine.generate([PROMPTS[0]], greedy(5)) == [EXPECTED[0][:5]]
    assert len(engine.pool.lookup(PROMPTS[0])) == 4
    assert engine.pool.lookup(STRANGERS[0]) == []
    assert len(engine.pool.lookup(STRANGERS[1])) <= 1


@pytest.mark.parametrize("num_blocks", [300, 12], ids=["room for all", "preemption"])
def test_hashes_are_computed_once_for_each_block_of_a_request(monkeypatch, num_blocks):
    hashed: list[Any] = []
    before_each(monkeypatch, prefix_cache, "hash_block", lambda *block: hashed.append(block))
    engine = make_engine("blocks", num_blocks, 4, max_num_batched_tokens=16)
    engine.generate(PROMPTS, greedy())
    assert 0 < len(hashed) <= sum((len(prompt) + LONGEST) // 4 for prompt in PROMPTS)
