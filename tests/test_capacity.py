"""LRU at every capacity and the offline optimum, against plain simulations and against the recorded traces."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handbook.capacity import History, LRUCurve, Reuse, Stack, optimum
from handbook.lab import traces
from handbook.lab.trace_sources import Traffic, generate
from tests.naive.plain_eviction import leading_run, lru_hits, optimum_by_rule, optimum_by_trying
from tests.traces import recorded, requests

BLOCK_SIZE = 512  # of the recorded traces


@pytest.fixture(scope="module", params=["conversation", "synthetic"])
def trace(request):
    """The name of a recorded trace, and its history."""
    path = recorded(f"mooncake_{request.param}.jsonl.gz")
    return request.param, History.of(each.hash_ids for each in traces.load(path, BLOCK_SIZE))


@given(requests())
def test_reuses_are_the_leading_runs_of_blocks_seen_before_by_their_last_users(requests):
    expected = []
    last_user: dict[int, int] = {}
    for now, blocks in enumerate(requests):
        expected += [(now, last_user[block], i) for i, block in enumerate(blocks) if block in last_user]
        last_user.update(dict.fromkeys(blocks, now))
    found = History.of(requests)
    assert [(r.request, r.last_user, i) for r in found.reuses for i in range(r.first, r.stop)] == expected
    assert found.sizes == [len(blocks) for blocks in requests]


def test_a_request_may_reuse_blocks_of_several():
    history = History.of([[0, 1, 2, 3], [0, 1, 4], [0, 5], [0, 1, 2, 6]])
    assert history.reuses[-3:] == [Reuse(3, 2, 0, 1), Reuse(3, 1, 1, 2), Reuse(3, 0, 2, 3)]
    assert (history.num_blocks, history.max_hits) == (13, 6)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=40))
def test_the_stack_counts_the_blocks_above_each_request_as_a_list_does(steps):
    stack, plain = Stack(), []
    for size, taken in steps:
        stack.push(size)
        plain.append(size)
        request = taken * (len(plain) - 1) // 3
        taken = min(taken, plain[request])
        stack.take(request, taken)
        plain[request] -= taken
        assert [stack.above(each) for each in range(len(plain))] == [sum(plain[i + 1 :]) for i in range(len(plain))]


@settings(max_examples=150)
@given(requests())
def test_the_lru_curve_is_exact_at_every_capacity(requests):
    curve = LRUCurve(History.of(requests))
    most = len({block for blocks in requests for block in blocks})
    assert [curve.at(c) for c in range(most + 2)] == [lru_hits(requests, c) for c in range(most + 2)]


@given(requests(), st.floats(0, 1))
def test_the_capacity_needed_is_the_least_that_has_the_hits(requests, share):
    curve = LRUCurve(History.of(requests))
    wanted = share * curve.hits[-1]
    needed = curve.needed(wanted)
    assert curve.at(needed) >= wanted
    assert needed == 0 or curve.at(needed - 1) < wanted


def test_more_hits_than_an_unlimited_cache_has_are_an_error():
    curve = LRUCurve(History.of([[0, 1], [0, 1]]))
    with pytest.raises(ValueError, match="3 hits cannot be had: an unlimited cache finds 2"):
        curve.needed(3)


@settings(max_examples=150)
@given(requests(), st.integers(0, 12))
def test_the_optimum_keeps_what_the_rule_keeps(requests, capacity):
    assert optimum(History.of(requests), capacity) == optimum_by_rule(requests, capacity)


@settings(max_examples=60)
@given(requests(max_requests=5, max_blocks=3), st.integers(0, 4))
def test_no_choice_of_what_to_keep_hits_more_than_the_optimum(requests, capacity):
    assert optimum(History.of(requests), capacity) == optimum_by_trying(requests, capacity)


def test_lru_optimum_and_the_unlimited_cache_agree_with_plain_ones_on_longer_traffic():
    traffic = Traffic(gap=15, system_length=200, user_length=300)
    drawn = [request.hash_ids for request in generate(150, 64, seed=5, traffic=traffic)]
    history = History.of(drawn)
    curve = LRUCurve(history)
    for capacity in (20, 60, 200):
        assert curve.at(capacity) == lru_hits(drawn, capacity) > 0
        assert optimum(history, capacity) == optimum_by_rule(drawn, capacity) > curve.at(capacity)
    seen: set[int] = set()
    unlimited = 0
    for blocks in drawn:
        unlimited += leading_run(blocks, seen)
        seen |= set(blocks)
    assert history.max_hits == curve.at(10**9) == optimum(history, 10**9) == unlimited


@pytest.mark.parametrize("hits", [lambda c: LRUCurve(History.of([[0]])).at(c), lambda c: optimum(History.of([[0]]), c)])
def test_a_negative_capacity_is_an_error(hits):
    with pytest.raises(ValueError, match="0 or more; got -1"):
        hits(-1)


def test_no_requests_have_no_hits():
    history = History.of([])
    assert (LRUCurve(history).at(5), LRUCurve(history).needed(0), optimum(history, 5)) == (0, 0, 0)


def test_an_unlimited_cache_hits_what_is_known_of_the_recorded_traces(trace):
    name, history = trace
    assert round(history.max_hits / history.num_blocks, 4) == {"conversation": 0.3664, "synthetic": 0.6396}[name]


def test_lru_hits_what_is_known_of_the_recorded_traces(trace):
    name, history = trace
    known = {
        "conversation": {1: 0.0533, 3: 0.1361, 10: 0.2852, 50: 0.3635},
        "synthetic": {1: 0.1424, 3: 0.3094, 10: 0.5666},
    }[name]
    curve = LRUCurve(history)
    assert {m: round(curve.at(m * 1_000_000 // BLOCK_SIZE) / history.num_blocks, 4) for m in known} == known


def test_the_optimum_is_what_is_known_of_the_recorded_traces(trace):
    name, history = trace
    known = {"conversation": {1: 0.2527, 3: 0.3532, 5: 0.3664}, "synthetic": {1: 0.3756, 3: 0.5500}}[name]
    found = {m: optimum(history, m * 1_000_000 // BLOCK_SIZE) / history.num_blocks for m in known}
    assert {m: round(rate, 4) for m, rate in found.items()} == known
