"""Measuring the engine: seconds to the first token, beside the least that they could be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter

import torch

from handbook.nano_engine import LLMEngine
from handbook.paged import PagedBatch, Span
from handbook.request import SamplingParams


def medians(measure: Mapping[str, Callable[[int], float]], repeats: int) -> dict[str, float]:
    """Call each function with 0 .. repeats - 1 in turns, so that a busy machine disturbs all alike; medians by name."""
    runs = [{name: function(repeat) for name, function in measure.items()} for repeat in range(repeats)]
    return {name: median(run[name] for run in runs) for name in measure}


def time_to_first_token(engine: LLMEngine, prompt: list[int]) -> float:
    """Seconds from handing the engine a prompt to its first token."""
    start = perf_counter()
    engine.generate([prompt], SamplingParams(max_tokens=1))
    return perf_counter() - start


@torch.inference_mode()
def bare_prefill(engine: LLMEngine, prompt: list[int], cached: list[int]) -> float:
    """Seconds of one forward pass over the tokens behind the `cached` blocks, without scheduling: the honest ideal."""
    num_cached = len(cached) * engine.pool.block_size
    scratch = engine.pool.allocate(-(-(len(prompt) - num_cached) // engine.pool.block_size))
    if scratch is None:
        raise ValueError(f"the pool has {engine.pool.num_free} free blocks, too few for {len(prompt)} tokens.")
    start = perf_counter()
    batch = PagedBatch(engine.kv_cache, [Span(cached + scratch, num_cached, len(prompt))])
    hidden = engine.model.hidden_states(torch.tensor([prompt[num_cached:]]), batch.positions, batch)
    engine.model.logits(hidden[0, -1]).argmax().item()
    seconds = perf_counter() - start
    engine.pool.free(scratch)
    return seconds
