"""Policies in a bounded cache: a plain simulation, a small story for each, and what Lease is worth."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handbook.capacity import History, LRUCurve, optimum
from handbook.eviction import FIFO, LFU, LRU, Lease, Policy, RandomEviction, replay
from handbook.lab import traces
from handbook.lab.trace_sources import generate
from tests.naive.plain_eviction import lru_hits, policy_hits
from tests.traces import recorded, requests

POLICIES = {"LRU": LRU, "FIFO": FIFO, "LFU": LFU, "random": RandomEviction, "lease": lambda: Lease(3)}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@settings(max_examples=60)
@given(requests=requests(), capacity=st.integers(0, 8))
def test_a_replay_hits_what_a_plain_simulation_hits(policy, requests, capacity):
    assert replay(requests, capacity, policy()) == policy_hits(requests, capacity, policy())


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@settings(max_examples=30)
@given(requests=requests(), capacity=st.integers(0, 8))
def test_no_policy_hits_more_than_the_optimum(policy, requests, capacity):
    assert replay(requests, capacity, policy()) <= optimum(History.of(requests), capacity)


@given(requests(), st.integers(0, 8))
def test_lru_forgets_the_least_recently_used_and_children_before_parents(requests, capacity):
    assert replay(requests, capacity, LRU()) == lru_hits(requests, capacity)


@pytest.mark.parametrize(
    ("policy", "survivors"),
    [(LRU(), {1, 3}), (FIFO(), {2, 3}), (LFU(), {1, 3}), (Lease(9), {1, 2}), (Lease(0), {1, 3})],
    ids=["LRU", "FIFO", "LFU", "long lease", "no lease"],
)
def test_who_is_left_when_1_was_used_twice_and_3_comes_last(policy, survivors):
    story = [[1], [2], [1], [3]]
    assert {
        block for block in (1, 2, 3) if replay([*story, [block]], 2, policy) > replay(story, 2, policy)
    } == survivors


def test_lfu_keeps_what_was_used_often_over_what_was_used_last():
    story = [[1], [1], [2], [3], [1]]
    assert (replay(story, 2, LFU()), replay(story, 2, LRU())) == (2, 1)


def test_a_lease_ends_and_then_newcomers_enter():
    story = [[1], [2], [2], [2], [2]]
    assert [replay(story, 1, Lease(length)) for length in (1, 2, 3, 4)] == [3, 2, 1, 0]


def test_only_a_leading_run_hits():
    class ParentsFirst(Policy):
        def rank(self, use):
            return use.last, use.position

    assert replay([[0, 1, 2], [0, 1, 2]], 2, ParentsFirst()) == 0
    assert replay([[0, 1, 2], [0, 1, 2]], 2, LRU()) == 2


def test_a_seed_decides_what_random_eviction_does():
    drawn = [request.hash_ids for request in generate(400, 2048)]
    hits = [replay(drawn, 300, RandomEviction(seed)) for seed in (0, 0, 1)]
    assert hits[0] == hits[1] != hits[2]


def test_a_policy_may_refuse_newcomers_that_it_would_evict_first_anyway():
    class Odd(LFU):
        def protects(self, use, now):
            return now % 2 == 1

    drawn = [request.hash_ids for request in generate(100, 2048)]
    assert replay(drawn, 50, Odd()) == policy_hits(drawn, 50, Odd())


def test_a_negative_capacity_is_an_error():
    with pytest.raises(ValueError, match="0 or more; got -1"):
        replay([], -1, LRU())


def test_on_the_recorded_conversations_a_lease_beats_lru_at_one_and_at_three_million_tokens():
    path = recorded("mooncake_conversation.jsonl.gz")
    drawn = [request.hash_ids for request in traces.load(path, 512)]
    curve = LRUCurve(History.of(drawn))
    gains = [replay(drawn, m * 1_000_000 // 512, Lease(400)) / curve.at(m * 1_000_000 // 512) for m in (1, 3)]
    assert [round(gain, 2) for gain in gains] == [1.64, 1.13]


def test_a_lease_loses_where_blocks_are_used_again_soon():
    drawn = [request.hash_ids for request in traces.load(recorded("mooncake_synthetic.jsonl.gz"), 512)]
    assert replay(drawn, 1_000_000 // 512, Lease(400)) < LRUCurve(History.of(drawn)).at(1_000_000 // 512)
