"""What is measured, not how long it takes."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from handbook.lab.timing import bare_prefill, medians, time_to_first_token
from handbook.mini_llm import Qwen3Config, Transformer
from handbook.nano_engine import LLMEngine
from handbook.prefix_cache import PrefixCachingBlockPool


@pytest.fixture
def engine():
    model = Transformer.random(Qwen3Config(64, 16, 32, 1, 2, 1, 8), seed=0)
    return LLMEngine(model, pool=PrefixCachingBlockPool(8, 4))


def test_functions_are_called_in_turns_and_their_medians_are_taken():
    calls = []

    def measure(name, values):
        def call(repeat):
            calls.append((name, repeat))
            return values[repeat]

        return call

    result = medians({"a": measure("a", [3.0, 1.0, 100.0]), "b": measure("b", [5.0, 4.0, 6.0])}, repeats=3)
    assert calls == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert result == {"a": 3.0, "b": 5.0}


def test_the_time_to_the_first_token_is_that_of_one_whole_prefill(engine):
    assert time_to_first_token(engine, list(range(10))) > 0
    assert [step["num_tokens"] for step in engine.step_log] == [10]


def test_a_bare_prefill_computes_what_is_not_cached_and_gives_its_blocks_back(engine, monkeypatch):
    prompt = list(range(10))
    time_to_first_token(engine, prompt)
    cached = engine.pool.lookup(prompt[:-1])
    hidden_states = Mock(wraps=engine.model.hidden_states)
    monkeypatch.setattr(engine.model, "hidden_states", hidden_states)
    assert bare_prefill(engine, prompt, cached) > 0
    assert [call.args[0].tolist() for call in hidden_states.call_args_list] == [[[8, 9]]]
    assert engine.pool.num_free == 8
    engine.pool.check_invariants()


def test_a_pool_without_room_for_a_bare_prefill_is_an_error(engine):
    with pytest.raises(ValueError, match="8 free blocks"):
        bare_prefill(engine, list(range(40)), [])
