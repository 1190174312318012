"""A discrete-event model of workers that prefill: when each request gets its first token, and what their caches save.

The idea: between two events, an arrival and the end of a step, nothing happens, so time jumps from one to the next.
A worker computes its queue in steps. A step takes a fixed time, and that of its tokens which are not cached when it
starts; at its end they are, and each of its requests has its first token.

Invariants: a worker with a queue is never idle; what ends at some time ends before what arrives then.
What it leaves out: decoding, which shares the steps; long prompts in chunks; blocks pinned by running requests, and
those of answers. So it compares policies, and predicts no seconds.
"""

# Woven from notebooks/zh/06_scheduling.ipynb by make build: edit it there.

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain, groupby, pairwise
from math import ceil, inf
from random import Random
from typing import NamedTuple, Protocol

from handbook.waiting import Policy, Waiting, ordered


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request: when it comes, in seconds, and the ids of its prompt's blocks; equal id means equal whole prefix."""

    time: float
    blocks: list[Hashable]
    num_tokens: int
    max_tokens: int = 1


@dataclass(frozen=True, slots=True)
class Served:
    """What became of a request. The first token is there when its step ends."""

    arrival: Arrival
    worker: int
    start: float
    end: float
    num_cached: int  # tokens

    @property
    def ttft(self) -> float:
        return self.end - self.arrival.time


@dataclass(frozen=True)
class Cost:
    """What a step takes: fixed seconds, and its uncached tokens at a rate of tokens a second."""

    fixed: float
    rate: float

    @classmethod
    def for_load(cls, arrivals: Sequence[Arrival], load: float, num_workers: int = 1, fixed: float = 0.02) -> Cost:
        """Of workers that would be busy for `load` of the time of the arrivals with their tokens, without a cache."""
        seconds = load * num_workers * (arrivals[-1].time - arrivals[0].time)
        if seconds <= 0:
            raise ValueError(f"a load is work in some time, and both are above 0; got {load} in {seconds} s.")
        return cls(fixed, sum(arrival.num_tokens for arrival in arrivals) / seconds)


class BlockCache:
    """The blocks of at most `capacity` that were used last; None is no limit. Only a leading run hits."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = inf if capacity is None else capacity
        self.lru: OrderedDict[Hashable, None] = OrderedDict()  # the least recently used first

    def match(self, blocks: Sequence[Hashable]) -> int:
        """How many leading blocks are held. Changes nothing."""
        for position, block in enumerate(blocks):
            if block not in self.lru:
                return position
        return len(blocks)

    def use(self, blocks: Sequence[Hashable]) -> tuple[list[Hashable], list[Hashable]]:
        """Hold all blocks as the most recent, a parent after its children, then forget the oldest: added, removed."""
        added = [block for block in blocks if block not in self.lru]
        for block in reversed(blocks):
            self.lru[block] = None
            self.lru.move_to_end(block)
        removed = []
        while len(self.lru) > self.capacity:
            removed.append(self.lru.popitem(last=False)[0])
        return added, removed


class Queued(NamedTuple):
    """A request in a worker's queue."""

    number: int  # of those before it, which orders them by arrival
    arrival: Arrival
    came: int  # tokens that the worker had computed by then


class Worker:
    """One engine: a queue, a cache, and a step at a time of at least one request, and of more up to `budget` tokens.

    Without a policy it is first come, first served. budget 0: one request at a time.
    """

    def __init__(
        self,
        cost: Cost,
        cache_blocks: int | None = None,
        block_size: int = 512,
        *,
        policy: Policy | None = None,
        budget: int = 0,
    ) -> None:
        self.cost, self.block_size, self.policy, self.budget = cost, block_size, policy, budget
        self.cache = BlockCache(cache_blocks)
        self.queue: deque[Queued] = deque()
        self.num_added = 0
        self.running: list[tuple[Arrival, int]] = []  # with the tokens found cached
        self.num_computed = 0  # tokens
        self.busy = 0.0  # seconds

    def add(self, arrival: Arrival) -> None:
        """A request joins the queue."""
        self.queue.append(Queued(self.num_added, arrival, self.num_computed))
        self.num_added += 1

    def num_cached(self, queued: Queued) -> int:
        """Tokens of a request that it would not compute now. The last one is always computed."""
        found = self.cache.match(queued.arrival.blocks) * self.block_size
        return min(found, queued.arrival.num_tokens - 1)

    def start(self) -> float:
        """Begin a step with the head of the queue, in the policy's order; the seconds that it takes."""
        if self.policy is not None:
            self.queue = deque(ordered([self._view(queued) for queued in sorted(self.queue)], self.policy))
        num_uncached = 0
        while self.queue:
            arrival, num_cached = self.queue[0].arrival, self.num_cached(self.queue[0])
            num_tokens = arrival.num_tokens - num_cached
            if self.running and num_uncached + num_tokens > self.budget:
                break
            num_uncached += num_tokens
            self.running.append((arrival, num_cached))
            self.queue.popleft()
        self.num_computed += num_uncached
        seconds = self.cost.fixed + num_uncached / self.cost.rate
        self.busy += seconds
        return seconds

    def _view(self, queued: Queued) -> Waiting:
        arrival, waited = queued.arrival, self.num_computed - queued.came
        return Waiting(
            queued, arrival.blocks, arrival.num_tokens, arrival.max_tokens, waited, self.num_cached, self.block_size
        )


class Router(Protocol):
    """Who serves a request: the interface of problem 130, whose tokens are ids of blocks here.

    One that also has `observe(worker, added, removed)` is told what enters and leaves the workers' caches.
    """

    def route(self, tokens: list[Hashable]) -> int:
        """The worker for a request with this prompt."""

    def finish(self, worker: int) -> None:
        """A request that was routed to the worker has its first token."""


@dataclass(frozen=True)
class Outcome:
    """What a simulation measures. TTFT in seconds."""

    served: list[Served]  # in order of time
    busy: list[float]  # seconds that each worker computed

    @property
    def hit_rate(self) -> float:
        """Tokens found cached, of all."""
        return sum(each.num_cached for each in self.served) / sum(each.arrival.num_tokens for each in self.served)

    @property
    def balance(self) -> float:
        """The most work of a worker over their mean: 1 is even, the number of workers is all on one."""
        return max(self.busy) * len(self.busy) / sum(self.busy)

    @property
    def mean_ttft(self) -> float:
        return sum(each.ttft for each in self.served) / len(self.served)

    def ttft(self, share: float) -> float:
        """What `share` of the requests stay within: 0.5 is the median, 0.99 the p99, 1 the worst."""
        return sorted(each.ttft for each in self.served)[max(0, ceil(share * len(self.served)) - 1)]


def simulate(
    arrivals: Iterable[Arrival], workers: Sequence[Worker], router: Router | None = None, delay: float = 0.0
) -> Outcome:
    """Serve arrivals, which come in order of time, on new workers; without a router all go to the first.

    A router learns at once which requests end, and one that observes, `delay` seconds later, what happened to a cache.
    """
    arrivals = list(arrivals)
    for one, next_one in pairwise(arrivals):
        if next_one.time < one.time:
            raise ValueError(f"an arrival at {next_one.time} s comes after one at {one.time} s: sort them by time.")
    observe = getattr(router, "observe", None)
    served: list[Served] = []
    ends: list[tuple[float, int, float]] = []  # a heap: when a step ends, whose, and when it began
    news: deque[tuple[float, int, list[Hashable], list[Hashable]]] = deque()  # on the way to the router

    def start(number: int, now: float) -> None:
        heappush(ends, (now + workers[number].start(), number, now))

    for now, arriving in chain(groupby(arrivals, key=lambda arrival: arrival.time), [(inf, iter(()))]):
        while ends and ends[0][0] <= now:
            end, number, begin = heappop(ends)
            worker = workers[number]
            for arrival, num_cached in worker.running:
                served.append(Served(arrival, number, begin, end, num_cached))
                changes = worker.cache.use(arrival.blocks)
                if router is not None:
                    router.finish(number)
                if observe is not None:
                    news.append((end + delay, number, *changes))
            worker.running = []
            if worker.queue:
                start(number, end)
        while news and news[0][0] <= now and observe is not None:
            observe(*news.popleft()[1:])
        for arrival in arriving:
            number = 0 if router is None else router.route(arrival.blocks)
            if not 0 <= number < len(workers):
                raise ValueError(f"there is no worker {number}: a router's route returns 0 to {len(workers) - 1}.")
            workers[number].add(arrival)
        for number, worker in enumerate(workers):
            if worker.queue and not worker.running:
                start(number, now)
    return Outcome(served, [worker.busy for worker in workers])


def at_random_times(arrivals: Iterable[Arrival], interval: float, seed: int) -> list[Arrival]:
    """The same requests in the same order, as a Poisson process with `interval` seconds between two on average."""
    random, time, result = Random(seed), 0.0, []
    for arrival in arrivals:
        time += random.expovariate(1 / interval)
        result.append(replace(arrival, time=time))
    return result
