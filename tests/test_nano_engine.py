"""The engine: whatever the mix, each request's tokens are those of plain greedy decoding, and no block stays held."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from handbook.scheduling import DFSWeight, LongestPrefixMatch, RandomOrder
from tests.engines import (
    EXPECTED,
    LONGEST,
    MODEL,
    PROMPTS,
    assert_drained,
    before_each,
    drain,
    each_cache,
    each_pool,
    expected,
    greedy,
    make_engine,
    total,
)


@torch.inference_mode()
def test_no_choice_of_the_reference_is_a_close_one_and_its_text_is_not_monotonous():
    """What differs between two ways to compute a logit is some 1e-6, so equality of tokens cannot flake."""
    for prompt, tokens in zip(PROMPTS, EXPECTED, strict=True):
        best = MODEL(torch.tensor([prompt + tokens]))[0, len(prompt) - 1 : -1].topk(2).values
        assert (best[:, 0] - best[:, 1]).min() > 2e-3
        assert len(set(tokens)) >= 4


# ---- every mix


@st.composite
def mixes(draw: st.DrawFn) -> dict[str, Any]:
    """Requests with their arrivals, and an engine that is just able to run each of them, or has a little more."""
    block_size = draw(st.sampled_from([1, 4, 16]))
    request = st.tuples(st.integers(0, len(PROMPTS) - 1), st.integers(1, LONGEST), st.sampled_from([0, 1, 0, 2, 6]))
    requests = draw(st.lists(request, min_size=3, max_size=6))  # prompt, max_tokens, steps since the one before
    smallest = max(-(-(len(PROMPTS[i]) + max_tokens - 1) // block_size) for i, max_tokens, _ in requests)
    return {
        "requests": requests,
        "num_blocks": smallest + draw(st.integers(0, 32 // block_size)),
        "block_size": block_size,
        "caching": draw(st.sampled_from(["blocks", "tree", False])),
        "max_num_seqs": draw(st.sampled_from([6, 2, 3, 1])),
        "max_num_batched_tokens": draw(st.sampled_from([100, 32, 13, 8, 5, 3, 1])),
        "eos_token_id": draw(st.none() | st.sampled_from([tokens[k] for tokens in EXPECTED[:3] for k in (0, 3)])),
        "policy": draw(st.none() | st.sampled_from([LongestPrefixMatch, DFSWeight, RandomOrder]).map(lambda p: p())),
    }


def check_step(engine: Any, running_before: set[int]) -> set[int]:
    """What must hold after every step; the requests that it preempted."""
    engine.pool.check_invariants()
    entry = engine.step_log[-1]
    assert entry["num_tokens"] == entry["num_prefill"] + entry["num_decode"]
    assert entry["num_tokens"] <= engine.max_num_batched_tokens
    assert entry["num_decode"] <= len(running_before) or engine.pool.enable_caching
    assert len(engine.running) <= engine.max_num_seqs
    held = sum(len(request.block_table) for request in engine.running)
    assert sum(engine.pool.ref_cnt) == held, "blocks are held by the block tables of running requests alone"
    assert not any(request.block_table or request.num_computed for request in engine.waiting)
    assert all(request.is_decoding for request in engine.running[:-1]), "only the youngest can be in its prefill"
    running, waiting = ([r.request_id for r in queue] for queue in (engine.running, engine.waiting))
    if engine.policy is None:
        assert running + waiting == sorted(running + waiting), "the oldest first, and running ones before waiting ones"
    return running_before & set(waiting)


@given(mixes())
@settings(max_examples=120)
def test_each_request_of_any_mix_gets_the_tokens_of_generate(mix):
    requests, caching = mix.pop("requests"), mix["caching"]
    eos_token_id = mix["eos_token_id"]
    engine = make_engine(**mix)
    wanted: dict[int, list[int]] = {}
    outputs: dict[int, list[int]] = {}
    preempted: set[int] = set()
    arrivals = list(itertools.accumulate(gap for _, _, gap in requests))
    while len(outputs) < len(requests):
        for (index, max_tokens, _), arrival in zip(requests, arrivals, strict=True):
            if arrival == len(engine.step_log):
                request_id = engine.add_request(PROMPTS[index], greedy(max_tokens))
                wanted[request_id] = expected(index, max_tokens, eos_token_id)
        running = {request.request_id for request in engine.running}
        outputs |= {request.request_id: request.output_token_ids for request in engine.step()}
        preempted |= check_step(engine, running)
        assert len(engine.step_log) < 2000, "the engine makes no progress"
    assert outputs == wanted
    assert_drained(engine)
    # Each token but a request's last is computed or found; more than once only after a preemption.
    needed = sum(len(PROMPTS[index]) + len(wanted[i]) - 1 for i, (index, _, _) in enumerate(requests))
    worked = total(engine, "num_tokens") + total(engine, "num_cached")
    assert worked == needed if not preempted else worked > needed
    if caching:
        assert engine.pool.num_queries == sum(len(PROMPTS[index]) - 1 for index, _, _ in requests)
        assert engine.pool.num_hits <= total(engine, "num_cached")
        assert preempted or engine.pool.num_hits == total(engine, "num_cached")
    else:
        assert total(engine, "num_cached") == 0


@each_pool
@pytest.mark.parametrize(("block_size", "num_blocks"), [(1, 43), (4, 12), (16, 4)])
def test_a_pool_just_large_enough_for_one_request_runs_many_by_preempting_them(caching, block_size, num_blocks):
    engine = make_engine(caching, num_blocks, block_size)
    assert engine.generate(PROMPTS, greedy()) == EXPECTED
    assert_drained(engine)
    needed = sum(len(prompt) + LONGEST - 1 for prompt in PROMPTS)
    assert total(engine, "num_tokens") + total(engine, "num_cached") > needed, "nobody was preempted"


@each_pool
def test_500_requests_go_through_64_blocks(caching):
    engine = make_engine(caching, 64, 4)
    asked = [(i % len(PROMPTS), 1 + i % 4) for i in range(500)]
    outputs = engine.generate([PROMPTS[index] for index, _ in asked], [greedy(n) for _, n in asked])
    assert outputs == [expected(*each) for each in asked]
    assert_drained(engine)


def test_preemption_takes_the_youngest():
    engine = make_engine(False, 9, 4)
    unfinished = [engine.add_request(PROMPTS[7], greedy()) for _ in range(4)]
    num_running = []
    while unfinished:
        for request in engine.step():
            unfinished.remove(request.request_id)
        num_running.append(len(engine.running))
        assert [request.request_id for request in engine.running] == unfinished[: num_running[-1]]
    assert num_running[0] == 4
    assert set(num_running[: LONGEST - 1]) == {4, 3}


def test_a_preempted_request_comes_before_those_that_have_never_run():
    engine = make_engine(False, 6, 4)
    for index in (7, 5, 8, 8):
        engine.add_request(PROMPTS[index], greedy())
    while not engine.waiting or engine.waiting[0].num_cached is None:
        engine.step()
    assert [request.request_id for request in engine.waiting] == list(range(len(engine.running), 4))
    assert drain(engine) == {0: EXPECTED[7], 1: EXPECTED[5], 2: EXPECTED[8], 3: EXPECTED[8]}


@each_pool
def test_the_output_of_a_preempted_request_is_kept(caching):
    """Recomputed, not chosen again: it goes on where it was."""
    engine = make_engine(caching, 6, 4)
    for index in (7, 5):
        engine.add_request(PROMPTS[index], greedy())
    kept: list[int] = []
    while engine.running or engine.waiting:
        engine.step()
        if engine.waiting and not kept:
            kept = list(engine.waiting[0].output_token_ids)
    assert len(kept) > 1
    assert kept == EXPECTED[5][: len(kept)]


@each_cache
def test_the_model_computes_what_the_log_says(monkeypatch, caching):
    seen: list[int] = []
    before_each(monkeypatch, MODEL, "hidden_states", lambda input_ids, *rest: seen.append(input_ids.numel()))
    engine = make_engine(caching, 12, 4, max_num_batched_tokens=7)
    engine.generate(PROMPTS, greedy())
    assert seen == [entry["num_tokens"] for entry in engine.step_log]


# ---- what a step packs


@each_pool
def test_a_long_prompt_is_prefilled_in_chunks_of_the_budget(caching):
    engine = make_engine(caching, 64, 4, max_num_batched_tokens=8)
    assert engine.generate([PROMPTS[3]], greedy(3)) == [EXPECTED[3][:3]]
    assert [entry["num_prefill"] for entry in engine.step_log] == [8, 8, 8, 8, 1, 0, 0]
    assert [entry["num_decode"] for entry in engine.step_log] == [0, 0, 0, 0, 0, 1, 1]


def test_decodes_come_first_and_prefill_takes_what_the_budget_leaves():
    engine = make_engine(False, 64, 4, max_num_batched_tokens=8)
    for index in (6, 6, 3):
        engine.add_request(PROMPTS[index], greedy())
    for _ in range(4):
        engine.step()
    assert [entry["num_prefill"] for entry in engine.step_log] == [8, 7, 7, 6]
    assert [entry["num_decode"] for entry in engine.step_log] == [0, 1, 1, 2]
    assert {0: EXPECTED[6], 1: EXPECTED[6], 2: EXPECTED[3]} == drain(engine)


def test_a_budget_smaller_than_the_decodes_serves_the_oldest():
    engine = make_engine(False, 64, 4, max_num_batched_tokens=4)
    ids = [engine.add_request(PROMPTS[8], greedy()) for _ in range(6)]
    engine.step()
    engine.max_num_batched_tokens = 2
    engine.step()
    assert [len(request.output_token_ids) for request in engine.running] == [2, 2, 1, 1]
    assert drain(engine) == dict.fromkeys(ids, EXPECTED[8])


def test_no_more_requests_run_than_max_num_seqs():
    engine = make_engine(False, 64, 4, max_num_seqs=2)
    for _ in range(5):
        engine.add_request(PROMPTS[8], greedy(3))
    counts = []
    while engine.waiting or engine.running:
        counts.append(len(engine.step() or engine.running))
    assert max(counts) == 2


@each_cache
def test_a_step_without_requests_computes_nothing(caching):
    engine = make_engine(caching, 4, 4)
    assert engine.step() == []
    assert engine.step_log == [{"num_tokens": 0, "num_prefill": 0, "num_decode": 0, "num_cached": 0}]
