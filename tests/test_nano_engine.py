"""The engine: whatever the mix, each request's tokens are those of plain greedy decoding, and no block stays held."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from handbook import prefix_cache
from handbook.mini_llm import Qwen3Config, Transformer, generate
from handbook.nano_engine import LLMEngine
from handbook.paged import BlockPool
from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.radix import RadixBlockPool
from handbook.request import SamplingParams
from handbook.scheduling import FCFS, DFSWeight, HighestResponseRatioNext, LongestPrefixMatch, RandomOrder
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


@torch.inference_mode()
def test_no_choice_of_the_reference_is_a_close_one_and_its_text_is_not_monotonous():
    """What differs between two ways to compute a logit is some 1e-6, so equality of tokens cannot flake."""
    for prompt, tokens in zip(PROMPTS, EXPECTED, strict=True):
        best = MODEL(torch.tensor([prompt + tokens]))[0, len(prompt) - 1 : -1].topk(2).values
        assert (best[:, 0] - best[:, 1]).min() > 2e-3
        assert len(set(tokens)) >= 4


# ---- every mix


@st.composite
def mixes(draw: st.DrawFn) -> dict[str, Any]:
    """Requests with their arrivals, and an engine that is just able to run each of them, or has a little more."""
    block_size = draw(st.sampled_from([1, 4, 16]))
    request = st.tuples(st.integers(0, len(PROMPTS) - 1), st.integers(1, LONGEST), st.sampled_from([0, 1, 0, 2, 6]))
    requests = draw(st.lists(request, min_size=3, max_size=6))  # prompt, max_tokens, steps since the one before
    smallest = max(-(-(len(PROMPTS[i]) + max_tokens - 1) // block_size) for i, max_tokens, _ in requests)
    return {
        "requests": requests,
        "num_blocks": smallest + draw(st.integers(0, 32 // block_size)),
        "block_size": block_size,
        "caching": draw(st.sampled_from(["blocks", "tree", False])),
        "max_num_seqs": draw(st.sampled_from([6, 2, 3, 1])),
        "max_num_batched_tokens": draw(st.sampled_from([100, 32, 13, 8, 5, 3, 1])),
        "eos_token_id": draw(st.none() | st.sampled_from([tokens[k] for tokens in EXPECTED[:3] for k in (0, 3)])),
        "policy": draw(st.none() | st.sampled_from([LongestPrefixMatch, DFSWeight, RandomOrder]).map(lambda p: p())),
    }


def check_step(engine: Any, running_before: set[int]) -> set[int]:
    """What must hold after every step; the requests that it preempted."""
    engine.pool.check_invariants()
    entry = engine.step_log[-1]
    assert entry["num_tokens"] == entry["num_prefill"] + entry["num_decode"]
    assert entry["num_tokens"] <= engine.max_num_batched_tokens
    assert entry["num_decode"] <= len(running_before) or engine.pool.enable_caching
    assert len(engine.running) <= engine.max_num_seqs
    held = sum(len(request.block_table) for request in engine.running)
    assert sum(engine.pool.ref_cnt) == held, "blocks are held by the block tables of running requests alone"
    running, waiting = ([r.request_id for r in queue] for queue in (engine.running, engine.waiting))
    if engine.policy is None:
        assert running + waiting == sorted(running + waiting), "the oldest first, and running ones before waiting ones"
    return running_before & set(waiting)


@given(mixes())
@settings(max_examples=120)
def test_each_request_of_any_mix_gets_the_tokens_of_generate(mix):
    requests, caching = mix.pop("requests"), mix["caching"]
    eos_token_id = mix["eos_token_id"]
    engine = make_engine(**mix)
    wanted: dict[int, list[int]] = {}
    outputs: dict[int, list[int]] = {}
    preempted: set[int] = set()
    arrivals = list(itertools.accumulate(gap for _, _, gap in requests))
    while len(outputs) < len(requests):
        for (index, max_tokens, _), arrival in zip(requests, arrivals, strict=True):
            if arrival == len(engine.step_log):
                request_id = engine.add_request(PROMPTS[index], greedy(max_tokens))
                wanted[request_id] = expected(index, max_tokens, eos_token_id)
        running = {request.request_id for request in engine.running}
        outputs |= {request.request_id: request.output_token_ids for request in engine.step()}
        preempted |= check_step(engine, running)
        assert len(engine.step_log) < 2000, "the engine makes no progress"
    assert outputs == wanted
    assert_drained(engine)
    # Each token but a request's last is computed or found; more than once only after a preemption.
    needed = sum(len(PROMPTS[index]) + len(wanted[i]) - 1 for i, (index, _, _) in enumerate(requests))
    worked = total(engine, "num_tokens") + total(engine, "num_cached")
    assert worked == needed if not preempted else worked > needed
    if caching:
        assert engine.pool.num_queries == sum(len(PROMPTS[index]) - 1 for index, _, _ in requests)
        assert engine.pool.num_hits <= total(engine, "num_cached")
        assert preempted or engine.pool.num_hits == total(engine, "num_cached")
    else:
        assert total(engine, "num_cached") == 0


@each_pool
@pytest.mark.parametrize(("block_size", "num_blocks"), [(1, 43), (4, 12), (16, 4)])
def test_a_pool_just_large_enough_for_one_request_runs_many_by_preempting_them(caching, block_size, num_blocks):
    engine = make_engine(caching, num_blocks, block_size)
    assert engine.generate(PROMPTS, greedy()) == EXPECTED
    assert_drained(engine)
    needed = sum(len(prompt) + LONGEST - 1 for prompt in PROMPTS)
    assert total(engine, "num_tokens") + total(engine, "num_cached") > needed, "nobody was preempted"


def test_preemption_takes_the_youngest():
    engine = make_engine(False, 9, 4)
    unfinished = [engine.add_request(PROMPTS[7], greedy()) for _ in range(4)]
    num_running = []
    while unfinished:
        for request in engine.step():
            unfinished.remove(request.request_id)
        num_running.append(len(engine.running))
        assert [request.request_id for request in engine.running] == unfinished[: num_running[-1]]
    assert num_running[0] == 4
    assert set(num_running[: LONGEST - 1]) == {4, 3}


@each_pool
def test_the_output_of_a_preempted_request_is_kept(caching):
    """Recomputed, not chosen again: it goes on where it was."""
    engine = make_engine(caching, 6, 4)
    for index in (7, 5):
        engine.add_request(PROMPTS[index], greedy())
    kept: list[int] = []
    while engine.running or engine.waiting:
        engine.step()
        if engine.waiting and not kept:
            kept = list(engine.waiting[0].output_token_ids)
    assert len(kept) > 1
    assert kept == EXPECTED[5][: len(kept)]


@each_cache
@pytest.mark.parametrize("block_size", [1, 4, 16])
def test_caching_saves_exactly_the_tokens_that_it_hits(block_size, caching):
    engines = [make_engine(each, 300, block_size) for each in (False, caching)]
    for engine in engines:
        assert engine.generate(PROMPTS[:1], greedy()) == EXPECTED[:1]
        assert engine.generate(PROMPTS[1:], greedy()) == EXPECTED[1:]
    off, on = engines
    assert total(off, "num_tokens") - total(on, "num_tokens") == on.pool.num_hits == total(on, "num_cached")
    shared = [0 for _ in PROMPTS[1:]]
    for i, prompt in enumerate(PROMPTS[1:]):
        for n, (ours, first) in enumerate(zip(prompt[:-1], PROMPTS[0] + EXPECTED[0][:-1], strict=False), 1):
            if ours != first:
                break
            shared[i] = n
    assert on.pool.num_hits == sum(n // block_size * block_size for n in shared) > 0


@pytest.mark.parametrize("name", ["keys", "values"])
@pytest.mark.parametrize("index", range(4))
@each_cache
def test_a_damaged_block_shows_in_the_output_of_the_request_that_hits_it(name, index, caching):
    """The negative control of every equality here: hits are really used."""
    engine = make_engine(caching, 64, 4)
    engine.generate([PROMPTS[0]], greedy())
    block = engine.pool.lookup(PROMPTS[0])[index]
    getattr(engine.kv_cache, name)[:, block] = 0
    (output,) = engine.generate([PROMPTS[1]], greedy())
    assert total(engine, "num_cached") == 16
    assert output != EXPECTED[1]


@each_cache
def test_the_model_computes_what_the_log_says(monkeypatch, caching):
    seen: list[int] = []
    before_each(monkeypatch, MODEL, "hidden_states", lambda input_ids, *rest: seen.append(input_ids.numel()))
    engine = make_engine(caching, 12, 4, max_num_batched_tokens=7)
    engine.generate(PROMPTS, greedy())
    assert seen == [entry["num_tokens"] for entry in engine.step_log]


# ---- what a step packs


def test_a_long_prompt_is_prefilled_in_chunks_of_the_budget():
    engine = make_engine(False, 64, 4, max_num_batched_tokens=8)
    assert engine.generate([PROMPTS[3]], greedy(3)) == [EXPECTED[3][:3]]
    assert [entry["num_prefill"] for entry in engine.step_log] == [8, 8, 8, 8, 1, 0, 0]
    assert [entry["num_decode"] for entry in engine.step_log] == [0, 0, 0, 0, 0, 1, 1]


def test_decodes_come_first_and_prefill_takes_what_the_budget_leaves():
    engine = make_engine(False, 64, 4, max_num_batched_tokens=8)
    for index in (6, 6, 3):
        engine.add_request(PROMPTS[index], greedy())
    for _ in range(4):
        engine.step()
    assert [entry["num_prefill"] for entry in engine.step_log] == [8, 7, 7, 6]
    assert [entry["num_decode"] for entry in engine.step_log] == [0, 1, 1, 2]
    assert {0: EXPECTED[6], 1: EXPECTED[6], 2: EXPECTED[3]} == drain(engine)


def test_a_budget_smaller_than_the_decodes_serves_the_oldest():
    engine = make_engine(False, 64, 4, max_num_batched_tokens=4)
    ids = [engine.add_request(PROMPTS[8], greedy()) for _ in range(6)]
    engine.step()
    engine.max_num_batched_tokens = 2
    engine.step()
    assert [len(request.output_token_ids) for request in engine.running] == [2, 2, 1, 1]
    assert drain(engine) == dict.fromkeys(ids, EXPECTED[8])


def test_no_more_requests_run_than_max_num_seqs():
    engine = make_engine(False, 64, 4, max_num_seqs=2)
    for _ in range(5):
        engine.add_request(PROMPTS[8], greedy(3))
    counts = []
    while engine.waiting or engine.running:
        counts.append(len(engine.step() or engine.running))
    assert max(counts) == 2


@each_cache
def test_a_step_without_requests_computes_nothing(caching):
    engine = make_engine(caching, 4, 4)
    assert engine.step() == []
    assert engine.step_log == [{"num_tokens": 0, "num_prefill": 0, "num_decode": 0, "num_cached": 0}]


# ---- hits


@each_cache
def test_a_prompt_of_whole_blocks_that_is_all_cached_computes_its_last_block(caching):
    """nano-vllm #114; vllm PRs #11186, #17999: nothing left to compute, or a broken chain of hashes."""
    engine, cold = make_engine(caching, 32, 4), make_engine(caching, 32, 4)
    assert engine.generate([PROMPTS[6]], greedy(5)) == engine.generate([PROMPTS[6]], greedy(5)) == [EXPECTED[6][:5]]
    assert [entry["num_cached"] for entry in engine.step_log if entry["num_prefill"]] == [0, 4]
    assert [entry["num_prefill"] for entry in engine.step_log if entry["num_prefill"]] == [8, 4]
    cold.generate([PROMPTS[6]], greedy(5))
    assert registered(engine.pool) == registered(cold.pool)


@each_cache
def test_a_block_of_one_token_leaves_the_last_token_to_compute(caching):
    engine = make_engine(caching, 64, 1)
    for _ in range(2):
        assert engine.generate([PROMPTS[6]], greedy(2)) == [EXPECTED[6][:2]]
    assert [entry["num_prefill"] for entry in engine.step_log] == [8, 0, 1, 0]


@each_cache
def test_two_equal_prompts_in_one_step_are_both_computed_and_registered_once(caching):
    engine = make_engine(caching, 64, 4)
    assert engine.generate([PROMPTS[2]] * 2, greedy()) == [EXPECTED[2]] * 2
    assert engine.step_log[0]["num_prefill"] == 2 * len(PROMPTS[2])
    assert engine.pool.num_hits == 0
    assert len(registered(engine.pool)) == (len(PROMPTS[2]) + LONGEST - 1) // 4


@each_cache
def test_a_request_added_one_step_later_hits_what_is_still_running(caching):
    engine = make_engine(caching, 64, 4)
    engine.add_request(PROMPTS[2], greedy())
    engine.step()
    engine.add_request(PROMPTS[2], greedy())
    engine.step()
    assert engine.step_log[1] == {"num_tokens": 5, "num_prefill": 4, "num_decode": 1, "num_cached": 16}
    assert drain(engine) == {0: EXPECTED[2], 1: EXPECTED[2]}


@each_cache
def test_generated_tokens_are_hit_too(caching):
    engine = make_engine(caching, 64, 4)
    engine.generate([PROMPTS[7]], greedy())
    follow_up = PROMPTS[7] + EXPECTED[7] + [1, 2]
    (output,) = engine.generate([follow_up], greedy(4))
    assert engine.pool.num_hits == (len(PROMPTS[7]) + LONGEST - 1) // 4 * 4 == 12
    assert output == generate(MODEL, torch.tensor([follow_up]), 4)[0].tolist()


@each_cache
def test_a_chunk_is_registered_before_the_prompt_is_done(caching):
    engine = make_engine(caching, 64, 4, max_num_batched_tokens=8)
    engine.add_request(PROMPTS[3], greedy())
    engine.step()
    assert len(engine.pool.lookup(PROMPTS[3])) == 2


@each_cache
def test_nothing_is_registered_before_it_is_computed(monkeypatch, caching):
    engine = make_engine(caching, 64, 4)
    engine.add_request(PROMPTS[3], greedy())
    found: list[list[int]] = []
    before_each(monkeypatch, MODEL, "hidden_states", lambda *args: found.append(engine.pool.lookup(PROMPTS[3])))
    engine.step()
    assert found == [[]]


@each_cache
def test_statistics_of_a_request_are_recorded_once_however_often_it_is_preempted(caching):
    """vllm #25780: preempted requests hit their own blocks, and random prompts showed a hit rate of 32%."""
    engine = make_engine(caching, 7, 4)
    prompts = [PROMPTS[7], [5, 6, 7, 8, 9, 10]]
    engine.generate(prompts, greedy())
    assert total(engine, "num_cached") > 0, "nobody was preempted and found its own blocks again"
    assert (engine.pool.num_hits, engine.pool.num_queries) == (0, sum(len(prompt) - 1 for prompt in prompts))


@each_cache
def test_a_request_that_waits_for_blocks_records_nothing_until_it_is_admitted(caching):
    engine = make_engine(caching, 6, 4)
    engine.add_request(PROMPTS[2], greedy(1))
    engine.add_request(PROMPTS[5], greedy(4))
    engine._schedule()
    for _ in range(3):
        engine._schedule()
    assert engine.pool.num_queries == len(PROMPTS[2]) - 1
    assert drain(engine) == {0: EXPECTED[2][:1], 1: EXPECTED[5][:4]}
    assert engine.pool.num_queries == len(PROMPTS[2]) + len(PROMPTS[5]) - 2


@pytest.mark.parametrize("num_blocks", [300, 12], ids=["room for all", "preemption"])
def test_hashes_are_computed_once_for_each_block_of_a_request(monkeypatch, num_blocks):
    hashed: list[Any] = []
    before_each(monkeypatch, prefix_cache, "hash_block", lambda *block: hashed.append(block))
    engine = make_engine("blocks", num_blocks, 4, max_num_batched_tokens=16)
    engine.generate(PROMPTS, greedy())
    assert 0 < len(hashed) <= sum((len(prompt) + LONGEST) // 4 for prompt in PROMPTS)


# ---- which requests are refused


def test_a_request_is_refused_for_its_size_exactly_when_it_could_never_fit():
    grid = itertools.product([1, 2, 7, 8, 9], [1, 2, 5], [1, 2, 4], [1, 2, 3, 4, 8])
    for num_prompt, max_tokens, block_size, num_blocks in grid:
        engine = LLMEngine(MODEL, num_blocks=num_blocks, block_size=block_size)
        needed = -(-(num_prompt + max_tokens - 1) // block_size)
        if needed <= num_blocks:
            engine.add_request(SHARED[:num_prompt], greedy(max_tokens))
        else:
            numbers = f"{num_prompt} tokens.*max_tokens={max_tokens}.*{needed} blocks of {block_size}.*has {num_blocks}"
            with pytest.raises(ValueError, match=numbers):
                engine.add_request(SHARED[:num_prompt], greedy(max_tokens))
            assert not engine.waiting


@each_pool
@pytest.mark.parametrize(("block_size", "num_blocks"), [(1, 25), (4, 7), (16, 2), (25, 1)])
def test_the_largest_request_that_is_taken_runs(caching, block_size, num_blocks):
    engine = make_engine(caching, num_blocks, block_size)
    for _ in range(2):
        assert engine.generate([PROMPTS[0]], greedy()) == [EXPECTED[0]]
    assert_drained(engine)


def state(engine: Any) -> Any:
    queues = [[(r.request_id, r.token_ids, r.block_table) for r in q] for q in (engine.waiting, engine.running)]
    return pickle.dumps((queues, engine.pool, engine.step_log, engine._next_id))


WRONG_CALLS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "an empty prompt": (lambda e: e.add_request([], greedy()), ValueError, "prompt is empty"),
    "a token beyond the vocabulary": (lambda e: e.add_request([1, 61], greedy()), ValueError, "token 61.*0 to 60"),
    "a negative token": (lambda e: e.add_request([1, -1], greedy()), ValueError, "token -1"),
    "half a token": (lambda e: e.add_request([1, 0.5], greedy()), TypeError, "float"),
    "a text": (lambda e: e.add_request("Hi", greedy()), TypeError, "str"),
    "no params": (lambda e: e.add_request([1], None), TypeError, "SamplingParams; got None"),
    "too large a prompt": (lambda e: e.add_request([1] * 40, greedy()), ValueError, "40 tokens"),
    "a batch with one prompt too large": (lambda e: e.generate([[1], [1] * 40], greedy()), ValueError, "40 tokens"),
    "a batch with an empty prompt": (lambda e: e.generate([[1], []], greedy()), ValueError, "prompt is empty"),
    "a batch with a token beyond the vocabulary": (lambda e: e.generate([[1], [99]], greedy()), ValueError, "token 99"),
    "a batch with no params for one": (lambda e: e.generate([[1], [2]], [greedy(), None]), TypeError, "got None"),
    "more prompts than params": (lambda e: e.generate([[1], [2]], [greedy()]), ValueError, "2 prompts but 1"),
    "more params than prompts": (lambda e: e.generate([[1]], [greedy()] * 3), ValueError, "1 prompts but 3"),
    "aborting an unknown request": (lambda e: e.abort(77), ValueError, "request 77"),
    "aborting by another name": (lambda e: e.abort("0"), ValueError, "request '0'"),
    "aborting a finished request": (lambda e: e.abort(0), ValueError, "request 0.*finished"),
}


@pytest.mark.parametrize("what", WRONG_CALLS)
@each_cache
def test_a_wrong_call_names_what_is_wrong_and_changes_nothing(what, caching):
    call, error, message = WRONG_CALLS[what]
    engine = make_engine(caching, 10, 4)
    engine.generate([PROMPTS[8]], greedy(2))
    engine.add_request(PROMPTS[6], greedy())
    engine.step()
    engine.add_request(PROMPTS[7], greedy())
    before = state(engine)
    with pytest.raises(error, match=message):
        call(engine)
    assert state(engine) == before
    assert drain(engine) == {1: EXPECTED[6], 2: EXPECTED[7]}


@pytest.mark.parametrize("name", ["max_num_seqs", "max_num_batched_tokens"])
def test_an_engine_that_could_run_nothing_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1; got 0"):
        make_engine(False, 8, 4, **{name: 0})


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


# ---- interrupts


def interrupt(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, nth_call: int) -> None:
    """Make the nth call of owner's method raise KeyboardInterrupt, and all others do what they did."""
    calls = itertools.count(1)

    def interrupt_once(*args: Any) -> None:
        if next(calls) == nth_call:
            raise KeyboardInterrupt

    before_each(monkeypatch, owner, name, interrupt_once)


interrupts = pytest.mark.parametrize(
    ("name", "nth_call"),
    [("hidden_states", n) for n in (1, 2, 7)] + [("logits", 3)] + [("cache_blocks", n) for n in (*range(1, 9), 20)],
)


def interrupted_engine(monkeypatch: pytest.MonkeyPatch, caching: str, name: str, nth_call: int) -> Any:
    engine = make_engine(caching, 16, 4, max_num_batched_tokens=20)
    owner = engine.pool if hasattr(engine.pool, name) else MODEL
    interrupt(monkeypatch, owner, name, nth_call)
    return engine


@each_cache
@interrupts
def test_an_interrupted_generate_leaves_nothing_of_its_own_behind(monkeypatch, name, nth_call, caching):
    engine = interrupted_engine(monkeypatch, caching, name, nth_call)
    queued = engine.add_request(PROMPTS[7], greedy())
    with pytest.raises(KeyboardInterrupt):
        engine.generate([PROMPTS[i] for i in (8, 6, 2, 3)], [greedy(n) for n in (1, 2, 10, 10)])
    assert [r.request_id for q in (engine.running, engine.waiting) for r in q] == [queued]
    assert drain(engine) == {queued: EXPECTED[7]}
    assert engine.generate(PROMPTS[:4], greedy()) == EXPECTED[:4]
    assert_drained(engine)


@each_cache
@interrupts
def test_an_interrupted_step_can_be_called_again(monkeypatch, name, nth_call, caching):
    engine = interrupted_engine(monkeypatch, caching, name, nth_call)
    wanted = {engine.add_request(PROMPTS[i], greedy(n)): expected(i, n) for i, n in ((8, 1), (6, 2), (2, 10), (3, 10))}
    outputs: dict[int, list[int]] = {}
    num_interrupts = 0
    for _ in range(200):
        try:
            outputs |= {request.request_id: request.output_token_ids for request in engine.step()}
        except KeyboardInterrupt:
            num_interrupts += 1
    assert (num_interrupts, outputs) == (1, wanted)
    assert_drained(engine)


# ---- pools that others use, too


@each_pool
def test_blocks_held_outside_stop_an_admission_with_an_error_until_they_are_free(caching):
    engine = make_engine(caching, 8, 4)
    outside = engine.pool.allocate(4)
    engine.add_request(PROMPTS[2], greedy())
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"request 0 .*4 of 8 blocks.*held outside"):
            engine.step()
    engine.pool.free(outside)
    assert drain(engine) == {0: EXPECTED[2]}


@each_pool
def test_blocks_held_outside_stop_a_running_request_with_an_error_until_they_are_free(caching):
    engine = make_engine(caching, 8, 4)
    outside = engine.pool.allocate(3)
    for index in (2, 6):
        engine.add_request(PROMPTS[index], greedy())
    with pytest.raises(RuntimeError, match=r"request 0 .*0 of 8 blocks.*held outside"):
        for _ in range(20):
            engine.step()
    assert len(engine.running[0].output_token_ids) > 0
    engine.pool.free(outside)
    assert drain(engine) == {0: EXPECTED[2], 1: EXPECTED[6]}


@each_pool
def test_a_generate_that_blocks_held_outside_stop_gives_back_all_it_had(caching):
    engine = make_engine(caching, 8, 4)
    outside = engine.pool.allocate(3)
    with pytest.raises(RuntimeError, match="held outside"):
        engine.generate([PROMPTS[2], PROMPTS[6]], greedy())
    engine.pool.free(outside)
    assert_drained(engine)
    assert engine.generate([PROMPTS[2]], greedy()) == [EXPECTED[2]]


@each_cache
def test_hits_that_somebody_holds_are_not_counted_as_free(caching):
    engine = make_engine(caching, 8, 4)
    engine.generate([PROMPTS[0]], greedy(1))
    outside = engine.pool.lookup(PROMPTS[0])
    engine.pool.touch(outside)
    assert engine.generate([PROMPTS[1]], greedy()) == [EXPECTED[1]]
    assert engine.pool.num_free == 4
    engine.pool.free(outside)
    assert_drained(engine)


@each_cache
def test_hits_that_nobody_holds_are_not_handed_out_as_new_blocks(caching):
    """Two of three free blocks are hits, so that two more cannot be had, though three are free."""
    engine = make_engine(caching, 8, 4)
    engine.generate([SHARED[:8]], greedy(1))
    outside = engine.pool.allocate(5)
    engine.add_request(SHARED[:16], greedy(1))
    with pytest.raises(RuntimeError, match="3 of 8"):
        engine.step()
    engine.pool.free(outside)
    assert drain(engine) == {1: EXPECTED[0][:1]}


@each_cache
def test_a_caching_pool_serves_one_engine_only(caching):
    engine = make_engine(caching, 8, 4)
    with pytest.raises(ValueError, match="another engine"):
        LLMEngine(MODEL, pool=engine.pool)
    assert engine.generate([PROMPTS[6]], greedy()) == [EXPECTED[6]]


def test_an_engine_that_could_not_be_made_leaves_its_pool_free_for_another():
    pool = PrefixCachingBlockPool(8, 4)
    with pytest.raises(AttributeError):
        LLMEngine(None, pool=pool)  # type: ignore[arg-type]
    assert LLMEngine(MODEL, pool=pool).generate([PROMPTS[6]], greedy()) == [EXPECTED[6]]


def test_two_engines_share_a_plain_pool():
    pool = BlockPool(16, 4)
    engines = [LLMEngine(MODEL, pool=pool) for _ in range(2)]
    for engine, index in zip(engines, (2, 5), strict=True):
        engine.add_request(PROMPTS[index], greedy())
    outputs: list[Sequence[int]] = [[], []]
    for _ in range(LONGEST):
        for i, engine in enumerate(engines):
            for request in engine.step():
                outputs[i] = request.output_token_ids
        pool.check_invariants()
    assert outputs == [EXPECTED[2], EXPECTED[5]]
    assert pool.num_free == 16


# ---- where K and V live


def test_a_given_pools_own_sizes_win():
    engine = LLMEngine(MODEL, pool=BlockPool(5, 2), num_blocks=99, block_size=7)
    assert tuple(engine.kv_cache.keys.shape) == (2, 5, 2, 2, 10)


def test_k_and_v_have_the_dtype_of_the_model():
    engine = LLMEngine(Transformer.random(MODEL.config, 0, torch.bfloat16), num_blocks=16, block_size=4)
    assert engine.kv_cache.keys.dtype == engine.kv_cache.values.dtype == torch.bfloat16
    assert len(engine.generate([PROMPTS[5]], greedy(3))[0]) == 3


# ---- policies

# Questions about three beginnings, which take turns; two tokens each tell them apart.
TURNS = [[(7 * i * i + 3 + 11 * n) % 61 for i in range(24)] + [n, 30 + turn] for turn in range(5) for n in range(3)]


def run_turns(caching, policy):
    """Outputs, and tokens computed, where the pool has room for one prompt and a little more."""
    engine = make_engine(caching, 10, 4, max_num_seqs=1, policy=policy)
    outputs = engine.generate(TURNS, greedy(2))
    assert_drained(engine)
    return outputs, total(engine, "num_tokens"), engine.step_log


@pytest.mark.parametrize("caching", ["blocks", "tree"])
@pytest.mark.parametrize("policy", [LongestPrefixMatch, DFSWeight])
def test_in_a_small_pool_the_order_of_the_cache_computes_less_and_changes_no_token(caching, policy):
    outputs, first_come, _ = run_turns(caching, None)
    assert outputs == [generate(MODEL, torch.tensor([prompt]), 2)[0].tolist() for prompt in TURNS]
    assert first_come == 15 * 27, "nothing was found"
    again, by_cache, _ = run_turns(caching, policy())
    assert again == outputs
    assert by_cache == 15 * 27 - 12 * 24, "each beginning is computed once"


@each_pool
def test_first_come_first_served_as_a_policy_is_what_the_engine_does_without_one(caching):
    assert run_turns(caching, FCFS()) == run_turns(caching, None)


def test_a_policy_knows_how_much_was_computed_since_a_request_came():
    class Spy(HighestResponseRatioNext):
        def order(self, queue):
            seen.append([(w.request.request_id, w.waited, w.num_tokens, w.num_cached) for w in queue])
            return HighestResponseRatioNext.order(self, queue)

    seen: list[Any] = []
    engine = make_engine("blocks", 10, 4, max_num_seqs=1, policy=Spy())
    engine.add_request(PROMPTS[0], greedy(1))
    engine.add_request(PROMPTS[1], greedy(1))
    engine.step()
    engine.add_request(PROMPTS[6], greedy(1))
    drain(engine)
    assert seen == [[(0, 0, 16, 0), (1, 0, 21, 0)], [(1, 16, 21, 16), (2, 0, 8, 4)], [(2, 5, 8, 4)]]


def test_a_policy_that_loses_a_request_is_refused_and_the_request_stays():
    class Loses(FCFS):
        def order(self, queue):
            return list(queue)[1:]

    engine = make_engine("blocks", 10, 4, policy=Loses())
    engine.add_request(PROMPTS[0], greedy())
    with pytest.raises(ValueError, match=r"Loses\.order .* given 1, it returned a list of 0"):
        engine.step()
    engine.policy = None
    assert drain(engine) == {0: EXPECTED[0]}
