"""What each request is promised: its own end, its own draws, and an abort at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from handbook.request import SamplingParams
from tests.engines import EXPECTED, PROMPTS, assert_drained, drain, each_cache, each_pool, expected, greedy, make_engine

# ---- how requests end


@each_pool
def test_a_request_ends_with_its_first_eos_unless_it_ignores_it(caching):
    for position in (0, 3):
        engine = make_engine(caching, 64, 4, eos_token_id=EXPECTED[1][position])
        params = [greedy(), greedy(ignore_eos=True), greedy(2)]
        outputs = engine.generate([PROMPTS[1]] * 3, params)
        end = EXPECTED[1].index(EXPECTED[1][position]) + 1
        assert outputs == [EXPECTED[1][:end], EXPECTED[1], EXPECTED[1][: min(end, 2)]]
        assert_drained(engine)


@each_pool
def test_a_request_for_one_new_token_ends_with_its_prefill(caching):
    """Twice, so that the second finds what the first has left."""
    engine = make_engine(caching, 64, 4)
    for _ in range(2):
        assert engine.generate([PROMPTS[0]], greedy(1)) == [EXPECTED[0][:1]]
    assert [entry["num_decode"] for entry in engine.step_log] == [0, 0]
    assert_drained(engine)


def test_outputs_come_in_the_order_of_the_prompts_whichever_ends_first():
    lengths = [9, 1, 5, 2]
    engine = make_engine(False, 64, 4)
    outputs = engine.generate([PROMPTS[i] for i in range(4)], [greedy(n) for n in lengths])
    assert outputs == [expected(i, n) for i, n in enumerate(lengths)]


def test_no_prompts_give_no_outputs():
    engine = make_engine(False, 4, 4)
    assert (engine.generate([], greedy()), engine.generate([], []), engine.step_log) == ([], [], [])


@each_cache
def test_requests_that_were_queued_before_a_generate_are_delivered_by_later_steps(caching):
    engine = make_engine(caching, 64, 4)
    early, late = engine.add_request(PROMPTS[7], greedy(2)), engine.add_request(PROMPTS[5], greedy())
    assert engine.generate([PROMPTS[6]], greedy(5)) == [EXPECTED[6][:5]]
    (delivered,) = engine.step()
    assert (delivered.request_id, delivered.output_token_ids) == (early, EXPECTED[7][:2])
    assert drain(engine) == {late: EXPECTED[5]}


@each_cache
def test_a_prompt_is_copied_so_that_its_owner_may_change_it(caching):
    engine, prompt = make_engine(caching, 64, 4), list(PROMPTS[5])
    engine.add_request(prompt, greedy())
    prompt[:] = [1]
    assert drain(engine) == {0: EXPECTED[5]}


@pytest.mark.parametrize("prompt", [tuple(PROMPTS[5]), torch.tensor(PROMPTS[5])], ids=["tuple", "tensor"])
@each_cache
def test_a_prompt_may_be_any_sequence_of_whole_numbers(prompt, caching):
    assert make_engine(caching, 64, 4).generate([prompt], greedy()) == [EXPECTED[5]]


# ---- abort

WHEN_TO_ABORT: dict[str, Callable[[Any], bool]] = {
    "waiting": lambda r: r.num_cached is None,
    "prefilling": lambda r: 0 < r.num_computed < r.num_prompt,
    "decoding": lambda r: r.is_decoding and len(r.output_token_ids) > 1,
    "preempted": lambda r: r.num_cached is not None and not r.block_table,
}


@each_pool
@pytest.mark.parametrize("when", WHEN_TO_ABORT)
def test_an_aborted_request_frees_its_blocks_and_is_never_returned(caching, when):
    engine = make_engine(caching, 11, 4, max_num_batched_tokens=9)
    kept = [engine.add_request(PROMPTS[2], greedy()), engine.add_request(PROMPTS[7], greedy())]
    aborted = engine.add_request(PROMPTS[3], greedy())
    kept.append(engine.add_request(PROMPTS[6], greedy()))
    outputs: dict[int, list[int]] = {}
    (request,) = (request for request in engine.waiting if request.request_id == aborted)
    while not WHEN_TO_ABORT[when](request):
        outputs |= {finished.request_id: finished.output_token_ids for finished in engine.step()}
        assert aborted not in outputs, f"the request was never {when}"
    engine.abort(aborted)
    assert sum(engine.pool.ref_cnt) == sum(len(request.block_table) for request in engine.running)
    outputs |= drain(engine)
    assert outputs == dict(zip(kept, (EXPECTED[2], EXPECTED[7], EXPECTED[6]), strict=True))
    with pytest.raises(ValueError, match=f"request {aborted}"):
        engine.abort(aborted)


# ---- sampling


def test_the_draws_of_a_seeded_request_hang_on_nothing_else_in_the_engine():
    sampled = [SamplingParams(max_tokens=8, temperature=1.0, seed=seed) for seed in range(5)]
    alone = [make_engine(False, 64, 4).generate([PROMPTS[i]], p)[0] for i, p in enumerate(sampled)]
    assert alone != [expected(i, 8) for i in range(5)]
    for caching, num_blocks, budget, order in (
        (False, 64, 100, [0, 1, 2, 3, 4]),
        (False, 11, 100, [4, 3, 2, 1, 0]),
        ("blocks", 11, 100, [2, 0, 4, 1, 3]),
        ("blocks", 64, 7, [3, 3, 1, 0, 0, 2, 4]),
        ("tree", 11, 100, [2, 0, 4, 1, 3]),
        ("tree", 64, 7, [3, 3, 1, 0, 0, 2, 4]),
    ):
        engine = make_engine(caching, num_blocks, 4, max_num_batched_tokens=budget)
        outputs = engine.generate([PROMPTS[i] for i in order], [sampled[i] for i in order])
        assert outputs == [alone[i] for i in order]


@each_cache
def test_one_prompt_with_other_seeds_gives_other_texts(caching):
    params = [SamplingParams(max_tokens=8, temperature=1.0, seed=seed) for seed in range(4)]
    outputs = make_engine(caching, 64, 4).generate([PROMPTS[0]] * 4, params)
    assert len({tuple(output) for output in outputs}) == 4
