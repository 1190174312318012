"""The tools of proof prove what they say: logits on top of a cache are those without it, and damage shows."""

from __future__ import annotations

import pytest
import torch

from handbook.lab.evidence import computed, damage, largest_differences, new_token_logits, run, smallest_gaps
from handbook.mini_llm import Qwen3Config, Transformer
from handbook.nano_engine import LLMEngine
from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.request import SamplingParams

TINY = Transformer.random(Qwen3Config(64, 32, 64, 2, 4, 2, 8), seed=1)
PROMPTS = [[1, 2, 3, 4, 5, 6, 7, 8, token] for token in (9, 10, 11)]


@pytest.fixture
def engine() -> LLMEngine:
    return LLMEngine(TINY, pool=PrefixCachingBlockPool(32, 4))


def test_requests_come_back_in_the_order_given(engine):
    requests = run(engine, PROMPTS, SamplingParams(max_tokens=2))
    assert [request.token_ids[: request.num_prompt] for request in requests] == PROMPTS


def test_computed_counts_the_tokens_of_all_steps(engine):
    run(engine, PROMPTS[:1], SamplingParams(max_tokens=3))
    assert computed(engine) == 9 + 2


def test_new_token_logits_pick_the_tokens_that_the_request_got(engine):
    (request,) = run(engine, PROMPTS[:1], SamplingParams(max_tokens=4))
    assert new_token_logits(engine, request, []).argmax(-1).tolist() == request.output_token_ids


def test_logits_on_cached_blocks_are_the_recomputed_ones_until_a_block_is_damaged(engine):
    (request,) = run(engine, PROMPTS[:1], SamplingParams(max_tokens=4))
    cached = engine.pool.lookup(request.token_ids[:8])
    recomputed = [new_token_logits(engine, request, [])]
    assert largest_differences(recomputed, [new_token_logits(engine, request, cached)])[0] < 1e-5
    damage(engine, cached[0])
    assert largest_differences(recomputed, [new_token_logits(engine, request, cached)])[0] > 1e-3


def test_the_gap_is_that_of_the_two_best_tokens_of_the_closest_position():
    assert smallest_gaps([torch.tensor([[1.0, 4.0, 2.0], [0.0, 0.5, 3.0]]), torch.tensor([[7.0, 0.0, 6.0]])]) == [2, 1]
