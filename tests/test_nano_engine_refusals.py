"""What the engine refuses: it says what is wrong with which number, and nothing has changed."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from handbook.nano_engine import LLMEngine
from tests.engines import (
    EXPECTED,
    MODEL,
    PROMPTS,
    SHARED,
    assert_drained,
    drain,
    each_cache,
    each_pool,
    greedy,
    make_engine,
)


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
