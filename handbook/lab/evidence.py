"""What chapters prove their claims with: requests run on an engine, logits taken again, blocks damaged on purpose."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from handbook.nano_engine import LLMEngine
from handbook.paged import PagedBatch, Span
from handbook.request import Request, SamplingParams

GREEDY = SamplingParams(max_tokens=16)


def run(engine: LLMEngine, prompts: Sequence[list[int]], params: SamplingParams = GREEDY) -> list[Request]:
    """All prompts at once; the finished requests in the order given."""
    ids = [engine.add_request(prompt, params) for prompt in prompts]
    done: dict[int, Request] = {}
    while len(done) < len(ids):
        done |= {request.request_id: request for request in engine.step()}
    return [done[request_id] for request_id in ids]


def computed(engine: LLMEngine) -> int:
    """Tokens that the engine has computed so far."""
    return sum(step["num_tokens"] for step in engine.step_log)


@torch.inference_mode()
def new_token_logits(engine: LLMEngine, request: Request, cached: Sequence[int]) -> Tensor:
    """Logits `[new tokens, vocab]` of a finished request, computed on top of the cached blocks given."""
    token_ids, block_size = request.token_ids[:-1], engine.pool.block_size
    start = len(cached) * block_size
    scratch = engine.pool.allocate(-(-len(token_ids) // block_size) - len(cached))
    assert scratch is not None, "the pool has no room for the tokens that are computed"
    batch = PagedBatch(engine.kv_cache, [Span([*cached, *scratch], start, len(token_ids))])
    hidden = engine.model.hidden_states(torch.tensor([token_ids[start:]]), batch.positions, batch)
    engine.pool.free(scratch)
    return engine.model.logits(hidden[0, request.num_prompt - 1 - start :])


def damage(engine: LLMEngine, block: int) -> None:
    """Zero the K and V of a block in every layer."""
    engine.kv_cache.keys[:, :, block] = 0
    engine.kv_cache.values[:, :, block] = 0


def largest_differences(logits: Sequence[Tensor], others: Sequence[Tensor]) -> list[float]:
    """For each request, how far its logits lie apart at most."""
    return [(a - b).abs().max().item() for a, b in zip(logits, others, strict=True)]


def smallest_gaps(logits: Sequence[Tensor]) -> list[float]:
    """For each request, how far its two best tokens lie apart at least."""
    best_two = [each.topk(2).values for each in logits]
    return [(values[:, 0] - values[:, 1]).min().item() for values in best_two]
