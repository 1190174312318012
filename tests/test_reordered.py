"""Reordered weights give the products of the plain ones, are really used, and absent where torch cannot have them."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
import torch.nn.functional as F

from handbook import reordered
from handbook.attention import ContiguousKVCache
from handbook.mini_llm import Qwen3Config, Transformer, generate
from handbook.nano_engine import LLMEngine
from handbook.reordered import FEW_ROWS, ReorderedWeight, reorder_weights
from handbook.request import SamplingParams

TIED = Qwen3Config(61, 24, 40, 2, 4, 2, 10)
UNTIED = Qwen3Config(61, 24, 40, 2, 4, 2, 10, tie_word_embeddings=False)
PROMPTS = [[5, 9, 60, 2], [5, 9, 60, 2, 33, 1], [7]]

if not torch.backends.mkldnn.is_available():
    warnings.warn("NOT TESTED: reordered weights; this torch has no oneDNN.", stacklevel=1)
needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN, which reorders the weights"
)


def reordered_copy(model: Transformer) -> Transformer:
    swift = copy.deepcopy(model)
    assert reorder_weights(swift) == 2 * 7 + 1, "seven matrices a layer, and the one on the way out"
    return swift


@needs_onednn
@pytest.mark.parametrize("config", [TIED, UNTIED], ids=["tied", "untied"])
@pytest.mark.parametrize("num_tokens", [1, 5, FEW_ROWS, FEW_ROWS + 1])
@torch.inference_mode()
def test_the_logits_are_those_of_the_plain_weights(config, num_tokens):
    model = Transformer.random(config, seed=3)
    ids = (torch.arange(num_tokens) * 7 % 61)[None]
    assert (reordered_copy(model)(ids) - model(ids)).abs().max() < 1e-5


@needs_onednn
@torch.inference_mode()
def test_few_rows_are_multiplied_by_the_copy_and_many_by_the_weight_itself():
    """The negative control: a wrong copy shows, where it is used."""
    weight = ReorderedWeight(torch.eye(24), requires_grad=False)
    weight.reordered = ReorderedWeight(2 * torch.eye(24), requires_grad=False).reordered
    for rows, factor in ((1, 2), (FEW_ROWS, 2), (FEW_ROWS + 1, 1)):
        x = torch.rand(rows, 24)
        assert torch.allclose(F.linear(x, weight), factor * x)
        assert torch.allclose(F.linear(x[None], weight, None), factor * x[None])
    bias = torch.ones(24)
    assert torch.allclose(F.linear(x[:1], weight, bias), x[:1] + 1), "a product with a bias is left to torch"


@needs_onednn
def test_the_embedding_is_reordered_where_it_is_the_way_out_too():
    for config, name in ((TIED, "embed_tokens"), (UNTIED, "lm_head")):
        model = Transformer.random(config, seed=3)
        reorder_weights(model)
        found = {name for name, weight in model.named_parameters() if isinstance(weight, ReorderedWeight)}
        assert f"{name}.weight" in found
        assert len(found) == 15


@needs_onednn
def test_the_engine_gives_the_tokens_of_generate_with_them():
    model = Transformer.random(TIED, seed=23)
    swift = reordered_copy(model)
    wanted = [generate(model, torch.tensor([prompt]), 6)[0].tolist() for prompt in PROMPTS]
    assert LLMEngine(swift).generate(PROMPTS, SamplingParams(6)) == wanted
    assert [generate(swift, torch.tensor([prompt]), 6)[0].tolist() for prompt in PROMPTS] == wanted


@needs_onednn
@torch.inference_mode()
def test_a_copy_of_the_model_has_its_own():
    swift = reordered_copy(Transformer.random(TIED, seed=3))
    again = copy.deepcopy(swift)
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(again(ids, kv_cache=ContiguousKVCache()), swift(ids))


@needs_onednn
def test_gradients_come_from_the_plain_product():
    weight = ReorderedWeight(torch.eye(24), requires_grad=False)
    weight.reordered = ReorderedWeight(2 * torch.eye(24), requires_grad=False).reordered
    x = torch.rand(1, 24, requires_grad=True)
    F.linear(x, weight).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones(1, 24))


@needs_onednn
def test_other_types_than_float32_stay_as_they_are():
    assert reorder_weights(Transformer.random(TIED, seed=3, dtype=torch.bfloat16)) == 0


@pytest.mark.parametrize("error", [AttributeError("no such operator"), RuntimeError("not for this processor")])
def test_where_torch_cannot_reorder_nothing_happens(monkeypatch, error):
    def refuse(weight):
        raise error

    monkeypatch.setattr(reordered, "_reorder", refuse)
    model = Transformer.random(TIED, seed=3)
    assert reorder_weights(model) == 0
    assert not any(isinstance(weight, ReorderedWeight) for weight in model.parameters())


@needs_onednn
def test_where_the_reordered_product_is_wrong_it_is_not_used(monkeypatch):
    reorder = reordered._reorder
    monkeypatch.setattr(reordered, "_reorder", lambda weight: reorder(weight.flip(0)))
    assert reorder_weights(Transformer.random(TIED, seed=3)) == 0
