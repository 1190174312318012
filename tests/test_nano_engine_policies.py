"""A policy decides who is admitted next: less is computed, and no token changes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from handbook.mini_llm import generate
from handbook.scheduling import FCFS, DFSWeight, HighestResponseRatioNext, LongestPrefixMatch
from tests.engines import EXPECTED, MODEL, PROMPTS, assert_drained, drain, each_pool, greedy, make_engine, total

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
