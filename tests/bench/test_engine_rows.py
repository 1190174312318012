"""The engine's benchmarks do the work they say, on a small model; how long it takes is not asserted."""

from __future__ import annotations

import copy

import pytest
import torch

from handbook.mini_llm import Qwen3Config, Transformer
from handbook.reordered import reorder_weights
from tests.bench import engine

PLAIN = Transformer.random(Qwen3Config(2000, 24, 40, 2, 4, 2, 10), seed=0)
SWIFT = copy.deepcopy(PLAIN)
reorder_weights(SWIFT)


@pytest.mark.parametrize(
    "row",
    [
        lambda: engine.decode_row(PLAIN, SWIFT, 20, rounds=2),
        lambda: engine.first_token_row(SWIFT, rounds=2, num_shared=32, num_own=5),
        lambda: engine.six_prompts_row(PLAIN, SWIFT, 3, rounds=2),
    ],
    ids=["decode", "first tokens", "six prompts"],
)
def test_a_row_holds_the_times_of_both(row):
    assert row().microseconds.keys() == {"plain", "handbook"}


def test_the_share_outside_the_model_is_a_share():
    row = engine.overhead_row(SWIFT, rounds=3)
    assert 0 < row.facts["% outside the model"] < 100


@torch.inference_mode()
def test_transformers_runs_on_our_weights():
    ids = torch.arange(30)[None]
    for attention in ("sdpa", "eager"):
        theirs = engine.of_transformers(PLAIN, attention)
        assert (theirs(ids).logits - PLAIN(ids)).abs().max() < 1e-4
        assert theirs.lm_head.weight.data_ptr() == PLAIN.embed_tokens.weight.data_ptr(), "no copy of the weights"
