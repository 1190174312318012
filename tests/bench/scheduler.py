"""What the engine itself adds to a decode step: the model is a stub that costs nothing, so its own work is left.

It should grow with the running requests alone. Each row changes one thing that must not matter, or their number; rows
of one pool take turns. A block of the tree is one token, of the others sixteen. Attention is the model's: what is done
only when a layer asks for K and V is not in these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from handbook.lab import counting
from handbook.mini_llm import Qwen3Config
from handbook.nano_engine import LLMEngine
from handbook.paged import BlockPool
from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.radix import RadixBlockPool
from handbook.request import SamplingParams
from tests.bench.measure import Row, in_turns

POOLS: dict[str, Callable[[int], BlockPool]] = {
    "plain": BlockPool,
    "blocks": PrefixCachingBlockPool,
    "tree": RadixBlockPool,
}
FOREVER = SamplingParams(max_tokens=120)
NUM_STEPS = 16  # in which each request fills exactly one block of sixteen


class FreeModel:
    """Any token will do; it is always token 0."""

    config = Qwen3Config(200_000, 1, 1, 1, 1, 1, 2)
    embed_tokens = SimpleNamespace(weight=torch.zeros(1))

    def hidden_states(self, input_ids: Tensor, positions: Tensor, kv_cache: Any) -> Tensor:
        return torch.zeros(1, input_ids.shape[1], 1)

    def logits(self, hidden: Tensor) -> Tensor:
        return torch.zeros(len(hidden), 2)


def decoding_engine(
    kind: str,
    num_blocks: int = 200_000,
    num_running: int = 8,
    num_tokens: int = 100,
    num_finished: int = 10,
    num_waiting: int = 0,
) -> LLMEngine:
    """An engine that decodes num_running requests of num_tokens each, after num_finished others.

    With num_waiting, one more request waits, whose first num_waiting tokens are cached: the rest of it does not fit.
    """
    pool = POOLS[kind](num_blocks)
    engine = LLMEngine(FreeModel(), pool=pool)  # type: ignore[arg-type]
    engine.generate([[1000 + n, 1, 2] for n in range(num_finished)], SamplingParams(max_tokens=1))
    prompts = [[n, *range(1000, 1000 + num_tokens - 1)] for n in range(num_running)]
    for prompt in prompts:
        engine.add_request(prompt, FOREVER)
    while not engine.running or engine.waiting or not all(request.is_decoding for request in engine.running):
        engine.step()
    if num_waiting:
        left_for_decodes = 2 + num_running * FOREVER.max_tokens // pool.block_size
        pool.allocate(pool.num_free - left_for_decodes)
        rest = (left_for_decodes + 1) * pool.block_size
        engine.add_request(prompts[0][:num_waiting] + [7] * rest, SamplingParams(max_tokens=1))
    return engine


def decode(engine: LLMEngine, num_steps: int = NUM_STEPS) -> None:
    """As many steps, each of one token for each running request."""
    for _ in range(num_steps):
        engine.step()


# What differs from 8 requests of 100 tokens in 200,000 blocks, after 10 others.
WORK: dict[str, dict[str, int]] = {
    "8 running, 2,000 blocks": {"num_blocks": 2000},
    "8 running, 200,000 blocks": {},
    "after 10,000 finished": {"num_finished": 10_000},
    "sequences of 10,000 tokens": {"num_tokens": 10_000},
    "64 running": {"num_running": 64},
    "a prompt of 100 waits": {"num_waiting": 100},
    "a prompt of 10,000 waits": {"num_waiting": 10_000, "num_tokens": 10_000},
}
TO_REACH = {"64 running": "8 times", "a prompt of 10,000 waits": "one look-up more"}


def pool_rows(kind: str, work: dict[str, dict[str, int]], rounds: int) -> Iterator[Row]:
    """The same pool in each situation of `work`."""
    engines = {name: decoding_engine(kind, **situation) for name, situation in work.items()}
    num_lines = {name: counting.lines(decode, engine) / NUM_STEPS for name, engine in engines.items()}

    def steps(engine: LLMEngine) -> Callable[[], Callable[[], object]]:
        return lambda: lambda: decode(engine)

    times = in_turns({name: steps(engine) for name, engine in engines.items()}, rounds)
    for name, engine in engines.items():
        step = engine.step_log[-1]
        assert step["num_decode"] == step["num_tokens"] == len(engine.running), "this was no decode step"
        facts = {"lines": round(num_lines[name])}  # of the handbook's code, executed in a step
        microseconds = {"handbook": times[name] / NUM_STEPS * 1e6}
        yield Row("scheduler", f"{kind}, {name}", "step", microseconds, TO_REACH.get(name, "flat"), facts)


def rows(rounds: int = 5) -> Iterator[Row]:
    for kind in POOLS:
        yield from pool_rows(kind, WORK, rounds)
