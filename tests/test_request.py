"""Requests and sampling: drawn tokens against the distribution said in plain Python, and what is refused."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from handbook.request import Request, SamplingParams, sample

LOGITS = torch.tensor([0.5, 2.0, -1.0, 1.5, 0.0, 1.0])


def distribution(params: SamplingParams) -> dict[int, float]:
    """Probabilities of the tokens of LOGITS: softmax, the top_k of it, and of those the fewest that reach top_p."""
    weights = {token: math.exp(logit / params.temperature) for token, logit in enumerate(LOGITS.tolist())}
    best_first = sorted(weights, key=lambda token: -weights[token])[: params.top_k or None]
    total = sum(weights[token] for token in best_first)
    kept, reached = [], 0.0
    for token in best_first:
        if reached < params.top_p:
            kept.append(token)
            reached += weights[token] / total
    return {token: weights[token] / sum(weights[t] for t in kept) for token in kept}


def draws(params: SamplingParams, n: int, logits: torch.Tensor = LOGITS) -> list[int]:
    generator = params.generator()
    return [sample(logits, params, generator) for _ in range(n)]


@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(temperature=1.0, seed=0),
        SamplingParams(temperature=0.5, seed=1),
        SamplingParams(temperature=3.0, seed=2),
        SamplingParams(temperature=1.0, top_k=3, seed=3),
        SamplingParams(temperature=1.0, top_k=100, seed=4),
        SamplingParams(temperature=1.0, top_p=0.7, seed=5),
        SamplingParams(temperature=1.0, top_p=1e-9, seed=6),
        SamplingParams(temperature=2.0, top_k=4, top_p=0.8, seed=7),
    ],
    ids=str,
)
def test_tokens_are_drawn_as_often_as_their_probability_says(params):
    expected, counts = distribution(params), Counter(draws(params, 1000))
    assert counts.keys() == expected.keys()
    assert sum(abs(counts[token] / 1000 - p) for token, p in expected.items()) < 0.12


def test_temperature_0_takes_the_best_token_and_draws_nothing():
    params = SamplingParams(seed=0)
    generator = params.generator()
    before = generator.get_state()
    assert sample(LOGITS, params, generator) == 1
    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize("temperature", [1e-3, 1e-45, 5e-324])
def test_a_temperature_near_0_takes_the_best_token(temperature):
    assert set(draws(SamplingParams(temperature=temperature, seed=0), 20)) == {1}


def test_nothing_is_cut_off_by_default():
    assert set(draws(SamplingParams(temperature=1.0, seed=0), 500, torch.zeros(30))) == set(range(30))


def test_top_p_keeps_the_fewest_tokens_that_reach_it():
    """Of two equal tokens one alone has a half."""
    assert len(set(draws(SamplingParams(temperature=1.0, top_p=0.5, seed=0), 50, torch.zeros(2)))) == 1


def test_bfloat16_logits_are_drawn_from_like_any_others():
    params = SamplingParams(temperature=1.0, seed=0)
    assert draws(params, 50, LOGITS.bfloat16()) == draws(params, 50)


def test_draws_hang_on_the_seed_alone():
    params = SamplingParams(temperature=1.0, seed=3)
    torch.manual_seed(0)
    first, before = draws(params, 40), torch.get_rng_state()
    torch.manual_seed(1)
    assert draws(params, 40) == first
    torch.manual_seed(0)
    assert torch.equal(torch.get_rng_state(), before)
    assert draws(SamplingParams(temperature=1.0, seed=4), 40) != first


def test_without_a_seed_every_request_draws_its_own():
    params = SamplingParams(temperature=1.0)
    assert draws(params, 60) != draws(params, 60)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 0),
        ("max_tokens", -1),
        ("max_tokens", 2.5),
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_k", -1),
        ("top_k", 2.0),
        ("top_p", 0.0),
        ("top_p", 1.1),
        ("top_p", math.nan),
        ("seed", -1),
        ("seed", 2**63),
        ("seed", 1.0),
    ],
)
def test_a_wrong_parameter_is_named_with_its_value(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be .*; got {value}\."):
        SamplingParams(**{name: value})


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_the_outermost_seeds_are_seeds(seed):
    assert draws(SamplingParams(temperature=1.0, seed=seed), 3) == draws(SamplingParams(temperature=1.0, seed=seed), 3)


# ---- where a request stands


def request(tokens: list[int], num_prompt: int, num_computed: int = 0, **params: object) -> Request:
    sampling = SamplingParams(**params)  # type: ignore[arg-type]
    return Request(0, tokens, num_prompt, sampling, sampling.generator(), num_computed=num_computed)


def test_the_output_is_what_follows_the_prompt():
    assert request([1, 2, 3, 4], num_prompt=3).output_token_ids == [4]


@pytest.mark.parametrize(
    ("num_tokens", "num_computed", "is_decoding"), [(3, 0, False), (3, 2, False), (4, 3, True), (4, 2, False)]
)
def test_a_request_decodes_when_only_its_newest_generated_token_is_not_computed(num_tokens, num_computed, is_decoding):
    assert request([0] * num_tokens, 3, num_computed).is_decoding == is_decoding


@pytest.mark.parametrize(
    ("tokens", "params", "is_finished"),
    [
        ([9, 9, 1], {"max_tokens": 2}, False),
        ([9, 9, 1, 1], {"max_tokens": 2}, True),
        ([9, 9, 7], {"max_tokens": 2}, True),
        ([9, 9, 7], {"max_tokens": 2, "ignore_eos": True}, False),
        ([9, 9, 7, 7], {"max_tokens": 2, "ignore_eos": True}, True),
    ],
)
def test_a_request_ends_at_eos_or_max_tokens(tokens, params, is_finished):
    assert request(tokens, 2, **params).is_finished(eos_token_id=7) == is_finished


def test_without_an_eos_token_only_max_tokens_ends_a_request():
    assert not request([9, 9, 7], 2).is_finished(eos_token_id=None)
