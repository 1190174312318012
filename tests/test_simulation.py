"""The simulations' clockwork: against a plain recursion, a cache of lists, and the recorded traces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handbook.lab import traces
from handbook.simulation import Arrival, BlockCache, Cost, Outcome, Served, Worker, at_random_times, simulate
from tests.naive.plain_eviction import leading_run, lru_hits
from tests.traces import recorded, requests

BLOCK = 4  # tokens
COST = Cost(fixed=1.0, rate=2.0)


def arrivals_of(requests, times):
    return [Arrival(time, blocks, max(1, len(blocks) * BLOCK)) for time, blocks in zip(times, requests, strict=False)]


@st.composite
def workloads(draw):
    drawn = draw(requests())
    gaps = draw(st.lists(st.integers(0, 9), min_size=len(drawn), max_size=len(drawn)))
    return arrivals_of(drawn, [float(sum(gaps[: i + 1])) for i in range(len(gaps))])


class InTurn:
    """Routes to the workers given, whatever they are asked."""

    def __init__(self, workers):
        self.workers = list(reversed(workers))
        self.finished: list[int] = []

    def route(self, tokens):
        return self.workers.pop()

    def finish(self, worker):
        self.finished.append(worker)


@given(workloads(), st.integers(0, 8), st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_one_at_a_time_each_starts_when_it_is_there_and_the_one_before_it_has_ended(arrivals, capacity, workers):
    free_at, expected = [0.0] * 3, []
    cached: list[list[object]] = [[], [], []]
    for arrival, worker in zip(arrivals, workers, strict=False):
        hits = min(leading_run(arrival.blocks, cached[worker]) * BLOCK, arrival.num_tokens - 1)
        start = max(arrival.time, free_at[worker])
        end = free_at[worker] = start + 1.0 + (arrival.num_tokens - hits) / 2.0
        for block in reversed(arrival.blocks):
            cached[worker] = [other for other in cached[worker] if other != block] + [block]
        cached[worker] = cached[worker][max(0, len(cached[worker]) - capacity) :]
        expected.append((arrival.time, worker, start, end, hits))
    router = InTurn(workers)
    outcome = simulate(arrivals, [Worker(COST, capacity, BLOCK) for _ in range(3)], router)
    found = [(s.arrival.time, s.worker, s.start, s.end, s.num_cached) for s in outcome.served]
    assert sorted(found) == sorted(expected)
    assert [s.end for s in outcome.served] == sorted(s.end for s in outcome.served)
    assert router.finished == [s.worker for s in outcome.served]
    assert outcome.busy == [sum(e - s for _, w, s, e, _ in expected if w == worker) for worker in range(3)]


@given(requests(), st.integers(0, 12))
def test_a_block_cache_hits_as_a_list_does_and_tells_what_enters_and_leaves(requests, capacity):
    cache, hits = BlockCache(capacity), 0
    told: set[object] = set()
    for blocks in requests:
        hits += cache.match(blocks)
        added, removed = cache.use(blocks)
        told = (told | set(added)) - set(removed)
        assert told == set(cache.lru) and len(told) <= capacity
    assert hits == lru_hits(requests, capacity)


@pytest.mark.parametrize(
    ("name", "capacity", "share"),
    [("conversation", 1, 0.0533), ("conversation", 3, 0.1361), ("synthetic", 1, 0.1424), ("synthetic", 3, 0.3094)],
)
def test_on_the_recorded_traces_a_block_cache_hits_what_independent_simulators_found(name, capacity, share):
    cache, hits, references = BlockCache(capacity * 1_000_000 // 512), 0, 0
    for request in traces.load(recorded(f"mooncake_{name}.jsonl.gz"), 512):
        hits += cache.match(request.hash_ids)
        references += len(request.hash_ids)
        cache.use(request.hash_ids)
    assert round(hits / references, 4) == share


def test_a_step_takes_more_requests_up_to_its_budget_and_their_prefixes_are_cached_at_its_end():
    arrivals = arrivals_of([[0, 1], [0, 2], [0, 3], [0, 4]], [0.0] * 4)
    outcome = simulate(arrivals, [Worker(COST, None, BLOCK, budget=16)])
    assert [(s.start, s.end, s.num_cached) for s in outcome.served] == [
        *[(0.0, 9.0, 0)] * 2,  # 16 tokens; the third does not fit
        *[(9.0, 14.0, 4)] * 2,
    ]


def test_a_request_above_the_budget_is_a_step_of_its_own():
    arrivals = arrivals_of([[0, 1, 2, 3, 4, 5], [6]], [0.0, 0.0])
    assert [s.end for s in simulate(arrivals, [Worker(COST, None, BLOCK, budget=4)]).served] == [13.0, 16.0]


def test_a_policy_sees_all_that_came_at_once_and_what_was_computed_since():
    seen = []

    class Spy:
        def order(self, queue):
            seen.append([(w.request.arrival.time, w.waited, w.num_cached, w.block_size) for w in queue])
            return list(queue)

    arrivals = arrivals_of([[0, 1], [0, 2], [3]], [0.0, 0.0, 2.0])
    simulate(arrivals, [Worker(COST, None, BLOCK, policy=Spy())])
    assert seen == [[(0, 0, 0, 4), (0, 0, 0, 4)], [(0, 8, 4, 4), (2, 0, 0, 4)], [(2, 4, 0, 4)]]


def test_a_policy_is_asked_in_order_of_arrival_whatever_it_answered_before():
    class Backwards:
        def order(self, queue):
            seen.append([w.request.arrival.blocks[0] for w in queue])
            return list(reversed(queue))

    seen: list[object] = []
    arrivals = arrivals_of([["a"], ["b"], ["c"], ["d"]], [0.0, 0.0, 0.0, 1.0])
    simulate(arrivals, [Worker(COST, policy=Backwards())])
    assert seen == [["a", "b", "c"], ["a", "b", "d"], ["a", "b"], ["a"]]


def test_without_a_cache_the_order_changes_no_work():
    class Backwards:
        def order(self, queue):
            return list(reversed(queue))

    arrivals = arrivals_of([[n] * (n % 3 + 1) for n in range(20)], [float(n) for n in range(20)])
    both = [simulate(arrivals, [Worker(COST, 0, BLOCK, policy=policy)]) for policy in (None, Backwards())]
    assert both[0].busy == both[1].busy and both[0].served[-1].end == both[1].served[-1].end


def test_what_ends_at_some_time_ends_before_what_arrives_then():
    class Watching(InTurn):
        def route(self, tokens):
            finished.append(len(self.finished))
            return 0

    finished: list[int] = []
    simulate(arrivals_of([[0], [1], [2]], [0.0, 3.0, 5.5]), [Worker(COST, None, BLOCK)], Watching([]))
    assert finished == [0, 1, 1]


def test_what_happened_to_a_cache_is_told_after_the_delay():
    class Listener(InTurn):
        def observe(self, worker, added, removed):
            told.append((len(self.workers), worker, added, removed))

    told: list[object] = []
    arrivals = arrivals_of([[0], [1], [2], [3]], [0.0, 3.0, 8.0, 20.0])  # each ends 3.0 after it came
    simulate(arrivals, [Worker(COST, 1, BLOCK)], Listener([0] * 4), delay=4.0)
    assert told == [(2, 0, [0], []), (1, 0, [1], [0]), (1, 0, [2], [1]), (0, 0, [3], [2])]


def test_figures_of_an_outcome():
    blocks: list[object] = [0]
    served = [Served(Arrival(10.0, blocks, 100), 0, 10.0, 10.0 + n, n) for n in range(1, 101)]
    outcome = Outcome(served, [30.0, 10.0])
    assert (outcome.ttft(0.5), outcome.ttft(0.99), outcome.ttft(1), outcome.mean_ttft) == (50.0, 99.0, 100.0, 50.5)
    assert (outcome.hit_rate, outcome.balance) == (0.505, 1.5)


def test_a_load_of_one_is_as_many_tokens_a_second_as_come():
    arrivals = [Arrival(float(n), [n], 300) for n in range(11)]
    assert Cost.for_load(arrivals, load=1.0).rate == 330.0
    assert Cost.for_load(arrivals, load=0.5, num_workers=4).rate == 165.0
    with pytest.raises(ValueError, match=r"both are above 0; got 1.0 in 0.0 s"):
        Cost.for_load(arrivals[:1], load=1.0)


def test_random_times_keep_the_order_and_the_mean_interval():
    arrivals = at_random_times([Arrival(0.0, [n], 1) for n in range(4000)], 0.3, seed=1)
    assert [arrival.blocks for arrival in arrivals] == [[n] for n in range(4000)]
    assert [a.time for a in arrivals] == sorted(a.time for a in arrivals)
    assert arrivals[-1].time / 4000 == pytest.approx(0.3, rel=0.05)
    assert arrivals == at_random_times(arrivals, 0.3, seed=1) != at_random_times(arrivals, 0.3, seed=2)


def test_arrivals_out_of_order_and_workers_that_do_not_exist_are_refused():
    arrivals = arrivals_of([[0], [1]], [5.0, 4.0])
    with pytest.raises(ValueError, match=r"an arrival at 4.0 s comes after one at 5.0 s: sort them"):
        simulate(arrivals, [Worker(COST)])
    with pytest.raises(ValueError, match=r"no worker -1: .* returns 0 to 1"):
        simulate(arrivals[:1], [Worker(COST), Worker(COST)], InTurn([-1]))
