"""An interrupt at any call loses no block, no request and no token."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.engines import (
    EXPECTED,
    MODEL,
    PROMPTS,
    assert_drained,
    before_each,
    drain,
    each_cache,
    expected,
    greedy,
    make_engine,
)


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
