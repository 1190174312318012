"""The engine on a model of Qwen3-0.6B's shape, random weights, float32: a decode step, six prompts, the first token.

Here "plain" is what the row's name compares with: the same engine with plain products, transformers, a bare forward
pass. Times are those on the clock, since torch computes with several threads.
"""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

import torch
import transformers

from handbook.attention import ContiguousKVCache, KVCache
from handbook.mini_llm import Qwen3Config, Transformer
from handbook.nano_engine import LLMEngine
from handbook.paged import PagedBatch, Span
from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.reordered import reorder_weights
from handbook.request import SamplingParams
from tests.bench.measure import Row, in_turns

ROOT = Path(__file__).parents[2]
QWEN3_06B = Qwen3Config(151_936, 1024, 3072, 28, 16, 8, 128)
PROMPT_LENGTHS = (123, 126, 126, 126, 128, 132)  # the course's six requests
NEW_TOKENS = 16


def prompts(lengths: tuple[int, ...], num_shared: int, seed: int) -> list[list[int]]:
    """Prompts of these lengths that begin with the same num_shared tokens."""
    random = Random(seed)
    shared = [random.randrange(1000, 1900) for _ in range(num_shared)]
    return [shared + [random.randrange(1000, 1900) for _ in range(length - num_shared)] for length in lengths]


def params(max_tokens: int) -> SamplingParams:
    return SamplingParams(max_tokens, ignore_eos=True)


def decoding(model: Transformer, num_sequences: int, context: int) -> LLMEngine:
    """An engine with requests that have just been prefilled, and have many tokens to go."""
    engine = LLMEngine(model, num_blocks=num_sequences * (context // 16 + 8))
    for prompt in prompts((context,) * num_sequences, 0, seed=1):
        engine.add_request(prompt, params(100))
    while not engine.running or engine.running[-1].num_uncomputed > 1 or engine.waiting:
        engine.step()
    return engine


def decode_row(plain: Transformer, swift: Transformer, context: int, rounds: int) -> Row:
    """A step of five against a step of one with plain products: both read all weights once."""
    one, plain_five, five = decoding(plain, 1, context), decoding(plain, 5, context), decoding(swift, 5, context)
    contestants = {"plain": lambda: one.step, "plain five": lambda: plain_five.step, "handbook": lambda: five.step}
    times = in_turns(contestants, rounds, perf_counter)
    assert [engine.step_log[-1]["num_decode"] for engine in (one, plain_five, five)] == [1, 5, 5]
    return Row(
        "engine",
        f"decode of 5 behind {context:,}; plain: of 1",
        "step",
        {contestant: times[contestant] * 1e6 for contestant in ("plain", "handbook")},
        "0.67 times",
        {"ms, plain, of 5": round(1000 * times["plain five"])},
    )


def of_transformers(model: Transformer, attention: str) -> Any:
    """Theirs, with our weights."""
    settings: dict[str, Any] = {**vars(model.config), "attn_implementation": attention}
    config = transformers.Qwen3Config(**settings)
    with torch.device("meta"):
        theirs = transformers.Qwen3ForCausalLM(config)
    weights = {f"model.{name}": weight.detach() for name, weight in model.state_dict().items()}
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    theirs.load_state_dict(weights, assign=True)
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(config)  # its buffers are in no state dict
    return theirs.eval()


def their_generate(theirs: Any, batch: list[list[int]], num_new: int) -> torch.Tensor:
    longest = max(map(len, batch))
    input_ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in batch])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in batch])
    return theirs.generate(
        input_ids, attention_mask=mask, max_new_tokens=num_new, min_new_tokens=num_new, do_sample=False
    )


def six_prompts_row(plain: Transformer, swift: Transformer, num_new: int, rounds: int) -> Row:
    """Six prompts to their last new token, without caching, against transformers' batch with its better attention."""
    batch = prompts(PROMPT_LENGTHS, 0, seed=2)
    theirs = {name: of_transformers(plain, name) for name in ("sdpa", "eager")}
    assert their_generate(theirs["sdpa"], batch, num_new).shape[1] == max(PROMPT_LENGTHS) + num_new

    def handbook() -> Callable[[], object]:
        engine = LLMEngine(swift)
        return lambda: engine.generate(batch, params(num_new))

    def transformers_with(attention: str) -> Callable[[], Callable[[], object]]:
        return lambda: lambda: their_generate(theirs[attention], batch, num_new)

    contestants = {attention: transformers_with(attention) for attention in theirs}
    times = in_turns(contestants | {"handbook": handbook}, rounds, perf_counter)
    best = min(theirs, key=lambda name: times[name])
    tokens = len(batch) * num_new
    microseconds = {"plain": times[best] / tokens * 1e6, "handbook": times["handbook"] / tokens * 1e6}
    facts = {f"tokens/s, {name}": round(tokens / seconds, 1) for name, seconds in times.items()}
    name = f"{num_new} tokens of 6; plain: transformers"
    return Row("engine", name, "new token", microseconds, "2 times" if num_new > 1 else "", facts)


def overhead_row(swift: Transformer, rounds: int) -> Row:
    """What of a decode step of six is spent outside the model."""
    engine = decoding(swift, 6, 128)
    inside = [0.0]

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            start = perf_counter()
            result = function(*args)
            inside[0] += perf_counter() - start
            return result

        return call

    engine.model = copy.copy(swift)
    for name in ("hidden_states", "logits"):
        object.__setattr__(engine.model, name, timed(getattr(swift, name)))
    start = perf_counter()
    for _ in range(rounds):
        engine.step()
    whole = perf_counter() - start
    facts = {"% outside the model": round(100 * (1 - inside[0] / whole), 2)}
    return Row("engine", "decode, 6 sequences", "step", {"handbook": whole / rounds * 1e6}, "under 3 %", facts)


@torch.inference_mode()
def bare_pass(model: Transformer, own: torch.Tensor, positions: torch.Tensor, kv_cache: KVCache, last: Any) -> None:
    """The least that first tokens cost: one pass over the tokens that were not found, and the best of each logits."""
    hidden = model.hidden_states(own, positions, kv_cache)
    model.logits(hidden[last]).argmax(-1).tolist()


def first_token_row(swift: Transformer, rounds: int, num_shared: int = 1024, num_own: int = 48) -> Row:
    """Five requests behind a cached prefix, to the first token of all, against the better of two bare passes."""
    first, *later = prompts((num_shared + num_own,) * 6, num_shared, seed=3)
    own = torch.tensor([prompt[num_shared:] for prompt in later])
    positions = torch.arange(num_shared, num_shared + num_own)[None]
    prefix = ContiguousKVCache()
    with torch.inference_mode():
        swift.hidden_states(torch.tensor([first[:num_shared]]), None, prefix)
    layers = {n: (k.repeat(5, 1, 1, 1), v.repeat(5, 1, 1, 1)) for n, (k, v) in prefix._layers.items()}

    def warm_engine() -> tuple[LLMEngine, PrefixCachingBlockPool]:
        pool = PrefixCachingBlockPool(num_blocks=128)
        engine = LLMEngine(swift, pool=pool)
        engine.generate([first], params(1))
        return engine, pool

    def contiguous() -> Callable[[], object]:
        kept = ContiguousKVCache()
        kept._layers = dict(layers)
        return lambda: bare_pass(swift, own, positions, kept, (slice(None), -1))

    def paged() -> Callable[[], object]:
        engine, pool = warm_engine()
        found = pool.lookup(first[:num_shared])
        tables = [found + (pool.allocate(-(-num_own // 16)) or []) for _ in later]
        spans = [Span(table, num_shared, num_shared + num_own) for table in tables]
        last = (0, [num_own * (n + 1) - 1 for n in range(len(later))])
        return lambda: bare_pass(
            swift, own.view(1, -1), positions.repeat(1, 5), PagedBatch(engine.kv_cache, spans), last
        )

    def handbook() -> Callable[[], object]:
        engine, _ = warm_engine()

        def run() -> None:
            engine.generate(later, params(1))
            assert engine.step_log[-1]["num_tokens"] == own.numel()

        return run

    times = in_turns({"contiguous": contiguous, "paged": paged, "handbook": handbook}, rounds, perf_counter)
    microseconds = {"plain": min(times["contiguous"], times["paged"]) * 1e6, "handbook": times["handbook"] * 1e6}
    facts = {f"ms, {name}": round(1000 * seconds) for name, seconds in times.items()}
    return Row("engine", "5 first tokens; plain: a bare pass", "step", microseconds, "0.83 times", facts)


# In a process of its own: what Python and torch need is in it, too.
MEASURE = """
import resource, sys
from tests.bench.engine import NEW_TOKENS, PROMPT_LENGTHS, QWEN3_06B, params, prompts
from handbook.mini_llm import Transformer
from handbook.nano_engine import LLMEngine
from handbook.reordered import reorder_weights
model = Transformer.random(QWEN3_06B, seed=0)
reorder_weights(model)
engine = LLMEngine(model, num_blocks=1024)
engine.generate(prompts(PROMPT_LENGTHS, 0, seed=2), params(NEW_TOKENS))
weights = 2 * sum(weight.nbytes for weight in model.parameters())
kv = engine.kv_cache.keys.nbytes + engine.kv_cache.values.nbytes
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(peak, weights, kv)
"""


def memory_row() -> Row:
    """The peak of a process that serves the six prompts, and how much of it is neither weights nor K and V."""
    start = perf_counter()
    run = subprocess.run([sys.executable, "-c", MEASURE], cwd=ROOT, capture_output=True, check=True, text=True)
    peak, weights, kv = (int(size) / 1e9 for size in run.stdout.split())
    facts = {"peak GB": round(peak, 2), "weights, twice, GB": round(weights, 2), "K and V, GB": round(kv, 2)}
    facts["rest GB"] = round(peak - weights - kv, 2)
    microseconds = {"handbook": (perf_counter() - start) * 1e6}
    return Row("engine", "memory", "process", microseconds, "rest 1 GB", facts)


def rows(rounds: int = 5) -> Iterator[Row]:
    yield memory_row()
    plain = Transformer.random(QWEN3_06B, seed=0)
    swift = copy.deepcopy(plain)
    start = perf_counter()
    num_matrices = reorder_weights(swift)
    facts = {"matrices": num_matrices}
    yield Row("engine", "reordering the weights", "model", {"handbook": (perf_counter() - start) * 1e6}, "", facts)
    yield decode_row(plain, swift, 128, 3 * rounds)
    yield decode_row(plain, swift, 1024, 3 * rounds)
    yield overhead_row(swift, 3 * rounds)
    yield first_token_row(swift, rounds)
    for num_new in (1, NEW_TOKENS):  # the prefill alone, and with the decodes
        yield six_prompts_row(plain, swift, num_new, rounds=3)
