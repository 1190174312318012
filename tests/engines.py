"""A lively little model, prompts with known answers, engines on each kind of pool: what the engine's tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from handbook.mini_llm import Qwen3Config, Transformer, generate
from handbook.nano_engine import LLMEngine
from handbook.paged import BlockPool
from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.radix import RadixBlockPool
from handbook.request import SamplingParams
from tests.naive.radix_model import contents


def lively_model() -> Transformer:
    """Random weights whose text changes from token to token, so that a wrong token shows."""
    model = Transformer.random(Qwen3Config(61, 24, 40, 2, 4, 2, 10), seed=23)
    with torch.no_grad():
        for weight in model.layers.parameters():
            weight.mul_(2 if weight.dim() == 2 else 1)
    return model


MODEL = lively_model()
LONGEST = 10  # new tokens
SHARED = [(7 * i * i + 3) % 61 for i in range(24)]
PROMPTS = [
    SHARED[:16],  # whole blocks of 1, 4 and 16
    [*SHARED[:16], 50, 51, 52, 53, 54],
    SHARED[:20],
    SHARED[:20] + [9] * 13,
    [*SHARED, 60, 2, 33],
    [*SHARED[:9], 1, 2, 3],
    SHARED[:8],
    [44, 8, 15, 4],
    [30],
]
EXPECTED = [generate(MODEL, torch.tensor([prompt]), LONGEST)[0].tolist() for prompt in PROMPTS]


def expected(index: int, max_tokens: int, eos_token_id: int | None = None) -> list[int]:
    tokens = EXPECTED[index][:max_tokens]
    return tokens[: tokens.index(eos_token_id) + 1] if eos_token_id in tokens else tokens


def greedy(max_tokens: int = LONGEST, **more: Any) -> SamplingParams:
    return SamplingParams(max_tokens=max_tokens, **more)


def make_engine(caching: str | bool, num_blocks: int, block_size: int, **more: Any) -> Any:
    """An engine that caches in a "tree", in "blocks", or, where caching is False, not at all."""
    if caching == "tree":
        return LLMEngine(MODEL, pool=RadixBlockPool(num_blocks * block_size, block_size), **more)
    pool = (PrefixCachingBlockPool if caching else BlockPool)(num_blocks, block_size)
    return LLMEngine(MODEL, pool=pool, **more)


def registered(pool: Any) -> set[Any]:
    """What a caching pool has registered: one hash, or one prefix, for each block."""
    return set(contents(pool.tree) if isinstance(pool, RadixBlockPool) else pool.hash_to_block)


def assert_drained(engine: Any) -> None:
    assert (list(engine.waiting), engine.running) == ([], [])
    assert engine.pool.num_free == engine.pool.num_blocks
    engine.pool.check_invariants()


def drain(engine: Any) -> dict[int, list[int]]:
    """Step until nothing is left; outputs by request id."""
    outputs: dict[int, list[int]] = {}
    while engine.waiting or engine.running:
        outputs |= {request.request_id: request.output_token_ids for request in engine.step()}
        assert len(engine.step_log) < 2000, "the engine makes no progress"
    assert_drained(engine)
    return outputs


def total(engine: Any, name: str) -> int:
    return sum(entry[name] for entry in engine.step_log)


def before_each(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, action: Callable[..., Any]) -> None:
    """Call action with the arguments of each call of owner's function, before it."""
    function = getattr(owner, name)

    def acting(*args):
        action(*args)
        return function(*args)

    monkeypatch.setattr(owner, name, acting)


each_cache = pytest.mark.parametrize("caching", ["blocks", "tree"])
each_pool = pytest.mark.parametrize("caching", [False, "blocks", "tree"], ids=["plain", "blocks", "tree"])
