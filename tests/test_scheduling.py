"""Scheduling policies: the order that each promises, and what the orders do to hit rate and waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handbook.scheduling import (
    FCFS,
    DFSWeight,
    HighestResponseRatioNext,
    LongestOutputFirst,
    LongestPrefixMatch,
    RandomOrder,
    ShortestUncachedFirst,
    WithPatience,
    brought_by_others,
    hot_and_cold,
    questions,
)
from handbook.simulation import Arrival, Cost, Worker, at_random_times, simulate
from handbook.waiting import Policy, Waiting, ordered
from tests.traces import requests

POLICIES: dict[str, Callable[[], Policy]] = {
    "FCFS": FCFS,
    "LPM": LongestPrefixMatch,
    "DFS weight": DFSWeight,
    "longest output": LongestOutputFirst,
    "shortest uncached": ShortestUncachedFirst,
    "HRRN": HighestResponseRatioNext,
    "random": RandomOrder,
    "LPM with patience": lambda: WithPatience(LongestPrefixMatch(), 10),
}
each_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())


def waiting(name, key="", cached=0, num_tokens=100, max_tokens=1, waited=0):
    return Waiting(name, list(key), num_tokens, max_tokens, waited, lambda name: cached)


def names(policy, *queue):
    return "".join(ordered(list(queue), policy))


def unasked(request):
    raise AssertionError("the cache was asked")


queues = st.lists(
    st.builds(
        lambda key, cached, waited, longest: waiting(None, key, min(cached, len(key)), 9, longest, waited),
        st.text("ab", max_size=6),
        st.integers(0, 6),
        st.integers(0, 20),
        st.integers(1, 3),
    ),
    max_size=8,
)

# ---- the order of each


@each_policy
@given(queue=queues)
def test_an_order_has_each_waiting_request_once_and_leaves_the_queue_alone(policy, queue):
    before = list(queue)
    order = policy().order(queue)
    assert len(order) == len(queue) and set(order) == set(queue)
    assert queue == before


@pytest.mark.parametrize("policy", [p for name, p in POLICIES.items() if name != "random"])
def test_equals_are_served_in_order_of_arrival(policy):
    assert names(policy(), *(waiting(name) for name in "abcdef")) == "abcdef"


def test_longest_prefix_match_goes_by_what_is_cached():
    assert names(LongestPrefixMatch(), waiting("a", cached=40), waiting("b", cached=60), waiting("c")) == "bac"


@pytest.mark.parametrize("policy", [LongestPrefixMatch, HighestResponseRatioNext])
def test_up_to_128_waiting_are_sorted_and_above_the_cache_is_not_even_asked(policy):
    late = waiting("late", cached=90, waited=5)
    assert policy().order([waiting(n, waited=1) for n in range(127)] + [late])[0] is late
    longer = [Waiting(n, [n], 100, 1, 0, unasked) for n in range(129)]
    assert policy().order(longer) == longer


def test_in_batch_a_request_waits_for_the_one_that_brings_32_tokens_of_its_prefix():
    def shares(num_tokens, cached=0):
        return waiting("b", "x" * num_tokens + "b" * 40, cached)

    first = waiting("a", "x" * 32 + "a" * 40)
    assert brought_by_others([first, b := shares(32)]) == {b}
    assert brought_by_others([first, shares(31)]) == set()
    assert brought_by_others([first, b := shares(32, cached=32)]) == {b}
    assert brought_by_others([first, shares(32, cached=33)]) == set()
    assert names(LongestPrefixMatch(), first, shares(32, cached=10), waiting("c")) == "acb"
    assert names(LongestPrefixMatch(in_batch=False), first, shares(32, cached=10), waiting("c")) == "bac"


def test_in_batch_one_that_is_put_off_brings_nothing():
    keys = {"a": "x" * 32, "b": "x" * 32 + "y" * 32, "c": "z" * 8, "d": "x" * 32 + "y" * 32}
    queue = [waiting(name, key) for name, key in keys.items()]
    assert {w.request for w in brought_by_others(queue)} == {"b", "d"}
    assert {w.request for w in brought_by_others(queue[1:])} == {"d"}


def test_dfs_weight_visits_the_heaviest_branch_first_and_a_node_after_what_is_below_it():
    queue = [
        waiting("a", "pq", 1),  # p
        waiting("b", "xyz", 3),  # xyz
        waiting("c", "x", 1),  # x
        waiting("d", "pqr", 2),  # pq
        waiting("e", "xyw", 3),  # xyw
        waiting("f", "xyz", 3),  # xyz
        waiting("g", "k", 0),  # the root
    ]
    assert names(DFSWeight(), *queue) == "bfecdag"


@given(queues)
def test_dfs_weight_keeps_all_together_that_wait_under_one_cached_prefix(queue):
    order = ["".join(map(str, w.key[: w.num_cached])) for w in DFSWeight().order(queue)]
    for prefix in set(order):
        places = [place for place, each in enumerate(order) if each.startswith(prefix)]
        assert places == list(range(places[0], places[0] + len(places)))


def test_longest_output_and_shortest_uncached_first():
    queue = [waiting("a", cached=10, max_tokens=5), waiting("b", cached=30), waiting("c", cached=9, num_tokens=20)]
    assert names(LongestOutputFirst(), *queue) == "abc"
    assert names(ShortestUncachedFirst(), *queue) == "cba"


def test_the_response_ratio_weighs_the_wait_against_what_there_is_to_compute():
    queue = [waiting("a", waited=150), waiting("b", cached=90, waited=20), waiting("c", cached=50, waited=49)]
    assert names(HighestResponseRatioNext(), *queue) == "bac"  # 1.5, 2, 0.98


def test_a_random_order_is_its_seeds():
    queue = [waiting(name) for name in "abcdefghij"]
    drawn = {seed: names(RandomOrder(seed), *queue) for seed in (1, 2)}
    assert drawn[1] == names(RandomOrder(1), *queue) != drawn[2]
    policy = RandomOrder(1)
    assert names(policy, *queue) != names(policy, *queue)


def test_patience_lets_the_overdue_go_first_in_order_of_arrival():
    queue = [
        waiting("a", waited=30),
        waiting("b", cached=9, waited=21),
        waiting("c", waited=20),
        waiting("d", cached=5),
    ]
    assert names(WithPatience(LongestPrefixMatch(), 20), *queue) == "abdc"


def test_a_policy_that_loses_or_doubles_a_request_is_refused():
    class Loses(FCFS):
        def order(self, queue):
            return [queue[0], queue[0]]

    with pytest.raises(
        ValueError, match=r"Loses\.order .* exactly once: given 3, it returned a list of 2 with 1 of them"
    ):
        ordered([waiting(name) for name in "abc"], Loses())


# ---- what the orders do


def served(arrivals, policy, cost=None, **more):
    cost = cost or Cost(0.02, 4000.0)
    return simulate(arrivals, [Worker(cost, policy=policy, **more)])


@pytest.mark.parametrize("policy", [LongestPrefixMatch, DFSWeight])
@given(requests=requests())
def test_depth_first_with_a_cache_for_the_longest_request_hits_as_an_unlimited_one_does(policy, requests):
    """Theorem 3.1 of SGLang's paper (arXiv 2312.07104)."""
    arrivals = [Arrival(0.0, blocks, 100 * len(blocks) + 1) for blocks in requests]
    longest = max(map(len, requests), default=0)
    bounded, unlimited = (
        served(arrivals, policy(), cache_blocks=capacity, block_size=100) for capacity in (longest, None)
    )
    everything = served(arrivals, None, block_size=100)
    hits = [sum(s.num_cached for s in outcome.served) for outcome in (bounded, unlimited, everything)]
    assert hits[0] == hits[1] == hits[2]


def test_first_come_first_served_with_such_a_cache_may_find_nothing():
    arrivals = [Arrival(0.0, [n % 2, 2 + n], 201) for n in range(10)]
    compared = (FCFS, LongestPrefixMatch, DFSWeight)
    hits = {
        p: sum(s.num_cached for s in served(arrivals, p(), cache_blocks=2, block_size=100).served) for p in compared
    }
    assert hits == {FCFS: 0, LongestPrefixMatch: 800, DFSWeight: 800}


def cold_and_mean_hot_wait(num_hot, policy):
    """TTFT, with hot requests that come exactly as fast as they are served."""
    outcome = served(hot_and_cold(num_hot, interval=0.084), policy, cache_blocks=40)
    (cold,) = (s.ttft for s in outcome.served if s.arrival.blocks[0] == ("cold", 0))
    return cold, (sum(s.ttft for s in outcome.served) - cold) / num_hot


@pytest.mark.parametrize("policy", [LongestPrefixMatch, DFSWeight, ShortestUncachedFirst])
def test_a_stream_of_hits_holds_a_cold_request_back_for_as_long_as_it_lasts(policy):
    for num_hot in (100, 400, 1600):
        assert cold_and_mean_hot_wait(num_hot, policy())[0] > 0.084 * num_hot


@pytest.mark.parametrize(
    ("policy", "longest"),
    [
        (FCFS, 3),
        (RandomOrder, 10),
        (HighestResponseRatioNext, 20),
        (lambda: WithPatience(LongestPrefixMatch(), 8000), 5),
    ],
    ids=["FCFS", "random", "HRRN", "patience"],
)
def test_age_and_chance_bound_the_wait_of_a_cold_request(policy, longest):
    waits = {cold_and_mean_hot_wait(num_hot, policy())[0] for num_hot in (400, 1600)}
    assert len(waits) == 1 and waits.pop() < longest


def workload(load, num_extra=0, num_requests=2000):
    """Questions about 40 documents, and as many more as num_extra at one moment; a cache for 8 documents."""
    drawn = at_random_times(questions(num_requests + num_extra, 40, 16, seed=0), 1.0, seed=1)
    steady, extra = drawn[:num_requests], drawn[num_requests:]
    burst = [replace(arrival, time=steady[500].time) for arrival in extra]
    return sorted(steady + burst, key=lambda arrival: arrival.time), Cost.for_load(steady, load)


def test_ordering_by_the_cache_carries_a_load_under_which_first_come_first_served_falls_behind():
    arrivals, cost = workload(load=1.6)
    outcomes = {name: served(arrivals, p(), cost, cache_blocks=136) for name, p in POLICIES.items()}
    for name in ("LPM", "DFS weight", "HRRN", "shortest uncached"):
        assert outcomes[name].hit_rate > 0.37 and outcomes[name].mean_ttft < 15
    for name in ("FCFS", "random", "longest output"):
        assert outcomes[name].hit_rate < 0.25 and outcomes[name].mean_ttft > 200
    assert outcomes["shortest uncached"].ttft(0.5) < outcomes["LPM"].ttft(0.5) / 2
    assert outcomes["shortest uncached"].ttft(1) > 3 * outcomes["HRRN"].ttft(1)


def test_a_burst_past_the_limit_of_128_is_never_worked_off():
    def late(num_extra, policy):
        arrivals, cost = workload(1.6, num_extra, 3000)
        ttfts = [s.ttft for s in served(arrivals, policy, cost, cache_blocks=136).served if s.arrival.time > 2000]
        return sum(ttfts) / len(ttfts)

    assert late(100, LongestPrefixMatch()) < 15
    assert late(150, LongestPrefixMatch()) > 500
    assert late(150, LongestPrefixMatch(longest=10**9)) < 15


def test_in_batch_prefixes_are_computed_once_where_a_step_takes_many_requests():
    """Eight samples of each problem come at once, and a step has room for seven prompts."""
    arrivals = [
        Arrival(0.5 * problem, [*((problem, n) for n in range(4)), (problem, "sample", n)], 2148)
        for problem in range(100)
        for n in range(8)
    ]
    cost = Cost.for_load(arrivals, load=2.0)

    def hit_rate(policy, budget):
        return served(arrivals, policy, cost, cache_blocks=320, budget=budget).hit_rate

    assert hit_rate(LongestPrefixMatch(in_batch=False), 16_384) < 0.15
    assert hit_rate(LongestPrefixMatch(), 16_384) > 0.4
    assert hit_rate(LongestPrefixMatch(in_batch=False), 0) == hit_rate(LongestPrefixMatch(), 0) > 0.8
