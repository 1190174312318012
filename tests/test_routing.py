"""Routers: the rule of each, and what the rules do to hit rate, balance and TTFT."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import ceil, inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handbook.lab import traces
from handbook.lab.trace_sources import Traffic, generate
from handbook.routing import (
    CacheAware,
    LeastLoad,
    LoadBalancer,
    PowerOfTwoChoices,
    Precise,
    PreciseAndPending,
    PrefixHash,
    RandomWorker,
    RoundRobin,
    Scored,
    StickyUntilSaturated,
)
from handbook.simulation import Arrival, Cost, Router, Worker, at_random_times, simulate
from practice.grader.catalogue import Solution
from practice.grader.problems import load
from tests.traces import recorded, requests

PROBLEM = load(130)
CacheAwareRouter = Solution(PROBLEM.folder / "reference.py", PROBLEM.class_name, "AC").make()

ROUTERS: dict[str, Callable[[int], LoadBalancer]] = {
    "round robin": RoundRobin,
    "random": RandomWorker,
    "least load": LeastLoad,
    "power of two": PowerOfTwoChoices,
    "hash": PrefixHash,
    "cache-aware": CacheAware,
    "sticky": StickyUntilSaturated,
    "scored": Scored,
    "precise": Precise,
    "precise and pending": PreciseAndPending,
}
each_router = pytest.mark.parametrize("router", ROUTERS.values(), ids=ROUTERS.keys())


def routes(router, prompts):
    return [router.route(list(prompt)) for prompt in prompts]


# ---- the rule of each


@each_router
@given(steps=st.lists(st.text("ab", min_size=1, max_size=3) | st.integers(0, 9), max_size=30))
def test_every_router_names_a_worker_and_counts_what_is_unfinished(router, steps):
    router, running = router(3), []
    total: Counter[int] = Counter()
    for step in steps:
        if isinstance(step, str):
            running.append(router.route(list(step)))
            total[running[-1]] += 1
        elif running:
            router.finish(running.pop(step % len(running)))
        assert router.loads == [running.count(worker) for worker in range(3)]
        assert router.num_requests == [total[worker] for worker in range(3)]


@each_router
def test_one_worker_gets_everything(router):
    assert routes(router(1), ["a", "ab", "b"]) == [0, 0, 0]


def test_a_request_that_nobody_has_cannot_finish():
    router = LeastLoad(2)
    router.route([1])
    with pytest.raises(ValueError, match="worker 1 has no request left to finish"):
        router.finish(1)
    with pytest.raises(ValueError, match="needs at least one worker; got 0"):
        RoundRobin(0)


@pytest.mark.parametrize("name", ["least load", "cache-aware", "sticky", "scored", "precise", "precise and pending"])
@pytest.mark.parametrize("finishes", [False, True], ids=["while all are running", "each after the one before"])
def test_strangers_are_spread_over_all_workers(name, finishes):
    router, chosen = ROUTERS[name](8), set()
    for n in range(8):
        worker = router.route([n])
        chosen.add(worker)
        if finishes:
            router.finish(worker)
    assert len(chosen) == 8


def test_round_robin_takes_turns_whoever_has_finished():
    router = RoundRobin(3)
    assert routes(router, "aaaa") == [0, 1, 2, 0]
    router.finish(0)
    assert routes(router, "aa") == [1, 2]


def test_two_choices_take_the_less_loaded_of_two_and_all_are_drawn():
    router = PowerOfTwoChoices(3, seed=1)
    router.loads = [5, 0, 9]
    assert {router.choose([1]) for _ in range(50)} == {0, 1}


@pytest.mark.parametrize("router", [RandomWorker, PowerOfTwoChoices])
def test_chance_is_its_seeds(router):
    drawn = [routes(router(4, seed), [[n] for n in range(40)]) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.sampled_from([1, 1.25, 2]))
def test_a_hash_with_a_bound_never_puts_more_than_that_on_a_worker(prefixes, bound):
    router = PrefixHash(4, bound=bound)
    for prefix in prefixes:
        worker = router.route([prefix])
        assert router.loads[worker] <= ceil(bound * sum(router.loads) / 4)


def test_a_hash_goes_by_the_first_blocks_alone_and_without_a_bound_never_lets_go():
    router = PrefixHash(4, depth=2, bound=inf)
    assert len(set(routes(router, [[1, 2, n] for n in range(50)]))) == 1
    assert len(set(routes(router, [[1, n] for n in range(50)]))) == 4
    with pytest.raises(ValueError, match=r"bound of 0.9 .* give 1 or more"):
        PrefixHash(4, bound=0.9)


def test_a_new_worker_takes_over_its_share_of_the_prefixes_and_moves_no_other():
    before, after = (routes(PrefixHash(n, bound=inf), [[p] for p in range(400)]) for n in (4, 5))
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {4} and 40 < len(moved) < 140


@given(
    st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6) | st.integers(0, 9), max_size=40),
    st.sampled_from([{}, {"match_threshold": 0.25, "balance_abs": 1, "balance_rel": 1.5}, {"balance_abs": 3}]),
    st.integers(0, 7),
)
def test_cache_aware_routing_is_problem_130_on_ids_of_blocks(steps, parameters, most):
    ours, theirs = CacheAware(3, most, **parameters), CacheAwareRouter(3, block_size=1, index_blocks=most, **parameters)
    running: list[int] = []
    for step in steps:
        if isinstance(step, list):
            blocks = [sum(2**i * (bit + 1) for i, bit in enumerate(step[: end + 1])) for end in range(len(step))]
            running.append(ours.route(blocks))
            assert running[-1] == theirs.route(blocks)
        elif running:
            worker = running.pop(step % len(running))
            ours.finish(worker)
            theirs.finish(worker)


def test_sticky_leaves_a_worker_that_has_more_than_its_slack_above_the_idlest_and_then_knows_two():
    router = StickyUntilSaturated(3, slack=1)
    assert routes(router, ["ab", "ac", "ad", "ae", "af"]) == [0, 0, 1, 1, 2]


def test_a_score_weighs_blocks_against_requests_ahead():
    router = Scored(2, load_weight=2.0)
    assert router.route(list("abcde")) == 0
    assert router.route(list("abcdx")) == 0  # 2 × 1 - 4 < 0
    assert router.route(list("abcdy")) == 1  # 2 × 2 - 4 = 0, and the other was given fewer
    assert router.route(list("zz")) == 1


def test_a_precise_router_believes_events_alone_and_one_with_pending_what_it_sent_too():
    precise, pending = Precise(2, 0.5), PreciseAndPending(2, 0.5)
    assert routes(precise, ["ab", "ac"]) == [0, 1]
    assert routes(pending, ["ab", "ac"]) == [0, 0]
    for router in (precise, pending):
        router.observe(1, ["a", "b", "c"], [])
        assert router.route(list("abc")) == 1
        router.observe(1, ["x", "y"], ["b", "a", "c", "y"])  # y came and went
        assert router.indexes[1].lru.keys() == {"x"}


# ---- in the simulation


def outcome(arrivals, router, num_workers, cache_blocks, load=1.0, delay=0.0):
    cost = Cost.for_load(arrivals, load, num_workers)
    return simulate(arrivals, [Worker(cost, cache_blocks) for _ in range(num_workers)], router, delay)


def made_up(num_requests, num_systems, seed=0):
    trace = generate(num_requests, 512, seed, Traffic(num_systems=num_systems))
    return at_random_times([Arrival(0.0, [*r.hash_ids], r.input_length) for r in trace], 0.3, seed + 1)


ONE_SYSTEM = made_up(2000, num_systems=1)  # all share their first block
TWENTY_SYSTEMS = made_up(4000, num_systems=20)


@given(requests(), st.integers(0, 6))
def test_without_delay_a_precise_router_knows_what_the_workers_hold(requests, capacity):
    workers = [Worker(Cost(1.0, 300.0), capacity) for _ in range(2)]

    class Checked(Precise):
        def choose(self, blocks):
            assert [index.lru.keys() for index in self.indexes] == [worker.cache.lru.keys() for worker in workers]
            return Precise.choose(self, blocks)

    arrivals = [Arrival(float(time), blocks, 512 * len(blocks) + 1) for time, blocks in enumerate(requests)]
    assert len(simulate(arrivals, workers, Checked(2)).served) == len(requests)


def test_a_learners_router_runs_beside_the_others():
    theirs: Router = CacheAwareRouter(4, block_size=1, index_blocks=500)
    assert outcome(ONE_SYSTEM, theirs, 4, 500) == outcome(ONE_SYSTEM, CacheAware(4, 500), 4, 500)


@pytest.mark.parametrize("sticks", [lambda: PrefixHash(4, bound=inf), lambda: Scored(4, load_weight=0)])
def test_affinity_without_a_release_sends_all_that_share_a_first_block_to_one_worker(sticks):
    stuck = outcome(ONE_SYSTEM, sticks(), 4, 2000)
    assert stuck.balance == 4 and stuck.mean_ttft > 500
    for released in (PrefixHash(4), Scored(4), StickyUntilSaturated(4)):
        assert outcome(ONE_SYSTEM, released, 4, 2000).balance < 1.2


def test_ties_that_all_go_to_the_first_worker_leave_the_others_idle():
    class Naive(LeastLoad):
        def least(self, workers):
            return min(workers, key=lambda worker: self.loads[worker])

    assert outcome(ONE_SYSTEM, Naive(16), 16, 500, load=0.02).balance > 10
    assert outcome(ONE_SYSTEM, LeastLoad(16), 16, 500, load=0.02).balance < 2


def test_the_highest_hit_rate_is_not_the_lowest_ttft():
    by_slack = {
        slack: outcome(TWENTY_SYSTEMS, StickyUntilSaturated(16, 500, slack), 16, 500) for slack in (0, 1, 2, 4, 8)
    }
    hit_rates = [each.hit_rate for each in by_slack.values()]
    assert hit_rates == sorted(hit_rates)
    assert by_slack[8].mean_ttft > 1.5 * by_slack[1].mean_ttft


def test_an_index_that_never_forgets_loses_to_one_as_large_as_the_cache_which_nearly_equals_the_precise_one():
    forever, bounded, precise = (
        outcome(TWENTY_SYSTEMS, router, 16, 500) for router in (Scored(16, None), Scored(16, 500), Precise(16))
    )
    assert forever.mean_ttft > 1.08 * bounded.mean_ttft
    assert forever.ttft(0.99) > 1.15 * bounded.ttft(0.99)
    assert bounded.mean_ttft == pytest.approx(precise.mean_ttft, rel=0.05)
    assert bounded.hit_rate == pytest.approx(precise.hit_rate, rel=0.05)


def test_knowledge_that_comes_late_costs_hits_unless_what_was_sent_counts_at_once():
    late = {d: outcome(TWENTY_SYSTEMS, Precise(16), 16, 500, delay=d).hit_rate for d in (0.0, 10.0, 60.0)}
    pending = {d: outcome(TWENTY_SYSTEMS, PreciseAndPending(16), 16, 500, delay=d).hit_rate for d in late}
    assert late[0.0] > late[10.0] > 1.4 * late[60.0]
    assert pending[60.0] > 0.9 * pending[0.0]


# ---- on recorded traffic


@pytest.fixture(scope="module")
def conversation() -> list[Arrival]:
    trace = traces.load(recorded("mooncake_conversation.jsonl.gz"), 512)
    return [Arrival(r.timestamp / 1000, [*r.hash_ids], r.input_length) for r in trace]


# Hit rate and mean TTFT in seconds: what another simulator found, and how far ours may be from it.
FOUND: dict[tuple[int, int], dict[str, tuple[Callable[[int, int], Any], float, float]]] = {
    (4, 3_000_000): {
        "round robin": (lambda n, most: RoundRobin(n), 0.132, 9.5),
        "least load": (lambda n, most: LeastLoad(n), 0.131, 3.7),
        "hash": (lambda n, most: PrefixHash(n, bound=inf), 0.137, 4618),
        "cache-aware": (CacheAware, 0.291, 2.2),
        "sticky": (StickyUntilSaturated, 0.283, 1.75),
    },
    (16, 1_000_000): {
        "round robin": (lambda n, most: RoundRobin(n), 0.071, 48),
        "least load": (lambda n, most: LeastLoad(n), 0.071, 8.9),
        "hash": (lambda n, most: PrefixHash(n, bound=inf), 0.054, 26150),
        "cache-aware": (CacheAware, 0.313, 5.5),
        "sticky": (StickyUntilSaturated, 0.271, 4.1),
    },
}


@pytest.mark.parametrize(("num_workers", "capacity"), FOUND)
def test_on_the_conversation_trace_order_and_size_are_what_another_simulator_found(conversation, num_workers, capacity):
    most = capacity // 512
    found = FOUND[num_workers, capacity]
    ours = {
        name: outcome(conversation, make(num_workers, most), num_workers, most) for name, (make, *_) in found.items()
    }
    for name, (_, hit_rate, mean_ttft) in found.items():
        assert ours[name].hit_rate == pytest.approx(hit_rate, rel=0.1), name
        assert mean_ttft / 2 < ours[name].mean_ttft < mean_ttft * 2, name
    mean = {name: each.mean_ttft for name, each in ours.items()}
    assert max(mean["cache-aware"], mean["sticky"]) < mean["least load"] < mean["round robin"] < mean["hash"] / 100
    assert ours["hash"].balance == num_workers
    assert ours["sticky"].hit_rate < ours["cache-aware"].hit_rate


def test_on_the_synthetic_trace_an_index_that_never_forgets_waits_twice_as_long():
    trace = traces.load(recorded("mooncake_synthetic.jsonl.gz"), 512)
    arrivals = [Arrival(r.timestamp / 1000, [*r.hash_ids], r.input_length) for r in trace]
    forever, bounded, precise = (
        outcome(arrivals, router, 16, 488) for router in (CacheAware(16, None), CacheAware(16, 488), Precise(16))
    )
    assert forever.mean_ttft > 1.8 * bounded.mean_ttft
    assert bounded.mean_ttft < 1.1 * precise.mean_ttft
