"""Cache-aware routing: which of several workers serves a request, when each remembers other prefixes.

The idea: a prefix is worth going where it is cached, until the wait there costs more than computing it anew. So a
router weighs two things, what it believes that the workers hold, and how busy they are; the policies differ in where
the belief comes from, and in when they let go of it.

A request is the list of its blocks' ids, equal id meaning equal whole prefix; loads and matches are in requests and
blocks. Invariant: `loads` are the requests that were routed and have not finished.
Source: SGLang's router and smg (cache_aware.rs, prefix_hash); llm-d's scorer of KV events; power of two choices
(Mitzenmacher, 2001); consistent hashing with bounded loads (arXiv 1608.01350).
"""

# Woven from notebooks/zh/07_routing.ipynb by make build: edit it there.

from __future__ import annotations

from bisect import bisect
from collections.abc import Hashable, Iterable, Sequence
from hashlib import sha256
from math import inf
from random import Random

from handbook.simulation import BlockCache

Blocks = Sequence[Hashable]


class LoadBalancer:
    """What all routers count. A policy is a class with its own `choose`; here it is the least load."""

    def __init__(self, num_workers: int) -> None:
        if num_workers < 1:
            raise ValueError(f"a router needs at least one worker; got {num_workers}.")
        self.loads, self.num_requests = [0] * num_workers, [0] * num_workers

    def choose(self, blocks: Blocks) -> int:
        """The worker for a request. Changes nothing that `route` counts."""
        return self.least(range(len(self.loads)))

    def least(self, workers: Iterable[int]) -> int:
        """The least loaded of workers; of equals the one that was given the fewest so far, then the first.

        Without the second rule, a cluster with time to spare sends everything to worker 0.
        """
        return min(workers, key=lambda worker: (self.loads[worker], self.num_requests[worker], worker))

    def route(self, blocks: Blocks) -> int:
        """The worker for a request, which counts towards its load until `finish`."""
        worker = self.choose(blocks)
        self.loads[worker] += 1
        self.num_requests[worker] += 1
        return worker

    def finish(self, worker: int) -> None:
        """A request that was routed to worker has ended; ValueError if it has none."""
        if self.loads[worker] == 0:
            raise ValueError(f"worker {worker} has no request left to finish.")
        self.loads[worker] -= 1


class LeastLoad(LoadBalancer):
    """The fewest unfinished requests."""


class RoundRobin(LoadBalancer):
    """One after another."""

    def choose(self, blocks: Blocks) -> int:
        return sum(self.num_requests) % len(self.loads)


class RandomWorker(LoadBalancer):
    """Any."""

    def __init__(self, num_workers: int, seed: int = 0) -> None:
        LoadBalancer.__init__(self, num_workers)
        self.random = Random(seed)

    def choose(self, blocks: Blocks) -> int:
        return self.random.randrange(len(self.loads))


class PowerOfTwoChoices(RandomWorker):
    """The less loaded of two drawn at random: nearly the least load, without asking everybody."""

    def choose(self, blocks: Blocks) -> int:
        return self.least(self.random.sample(range(len(self.loads)), min(2, len(self.loads))))


class PrefixHash(LoadBalancer):
    """Consistent hashing: the first `depth` blocks name a place on a ring, and the next worker there serves.

    No index is kept, and a worker that comes or goes moves few prefixes. bound: a worker with that many times the mean
    load is passed by (1.25 in smg); inf never lets go.
    """

    def __init__(self, num_workers: int, depth: int = 1, bound: float = 1.25, num_places: int = 64) -> None:
        LoadBalancer.__init__(self, num_workers)
        if bound < 1:
            raise ValueError(f"with a bound of {bound} times the mean load all may be over it: give 1 or more.")
        self.depth, self.bound = depth, bound
        self.ring = sorted((place((worker, n)), worker) for worker in range(num_workers) for n in range(num_places))

    def choose(self, blocks: Blocks) -> int:
        most = self.bound * (sum(self.loads) + 1) / len(self.loads)
        first = bisect(self.ring, (place(tuple(blocks[: self.depth])), inf))
        for _, worker in self.ring[first:] + self.ring[:first]:
            if self.loads[worker] < most:
                return worker
        raise AssertionError("the least loaded worker is never over the bound")


def place(key: tuple[Hashable, ...]) -> int:
    """Where key lies on the ring, in every process; Python's own hash of bytes differs from one to the next."""
    return int.from_bytes(sha256(repr(key).encode()).digest()[:8], "big")


class Indexed(LoadBalancer):
    """A router that remembers for each worker which blocks it sent there; `most` blocks each, None is all."""

    def __init__(self, num_workers: int, most: int | None = None) -> None:
        LoadBalancer.__init__(self, num_workers)
        self.indexes = [BlockCache(most) for _ in range(num_workers)]

    def matches(self, blocks: Blocks) -> list[int]:
        """Leading blocks that each worker is believed to hold."""
        return [index.match(blocks) for index in self.indexes]

    def route(self, blocks: Blocks) -> int:
        worker = LoadBalancer.route(self, blocks)
        self.indexes[worker].use(blocks)
        return worker


class CacheAware(Indexed):
    """The best match if it is long enough, unless the loads are too uneven; the rules of problem 130.

    SGLang's router has two sets of defaults: 0.5, 32, 1.1 in its Rust code, 0.3, 64, 1.5 at its command line.
    """

    def __init__(
        self,
        num_workers: int,
        most: int | None = None,
        match_threshold: float = 0.5,
        balance_abs: int = 32,
        balance_rel: float = 1.1,
    ) -> None:
        Indexed.__init__(self, num_workers, most)
        self.match_threshold, self.balance_abs, self.balance_rel = match_threshold, balance_abs, balance_rel

    def choose(self, blocks: Blocks) -> int:
        low, high = min(self.loads), max(self.loads)
        if high - low > self.balance_abs and high > self.balance_rel * low:
            return LoadBalancer.choose(self, blocks)
        matches = self.matches(blocks)
        best = max(matches)
        if best > self.match_threshold * len(blocks):
            return self.least(worker for worker, match in enumerate(matches) if match == best)
        return LoadBalancer.choose(self, blocks)


class StickyUntilSaturated(Indexed):
    """The best match among the workers that have at most `slack` requests more than the least loaded."""

    def __init__(self, num_workers: int, most: int | None = None, slack: int = 1) -> None:
        Indexed.__init__(self, num_workers, most)
        self.slack = slack

    def choose(self, blocks: Blocks) -> int:
        most, matches = min(self.loads) + self.slack, self.matches(blocks)
        free = [worker for worker, load in enumerate(self.loads) if load <= most]
        best = max(matches[worker] for worker in free)
        return self.least(worker for worker in free if matches[worker] == best)


class Scored(Indexed):
    """The least work before the first token: its own unmatched blocks, and load_weight blocks for each request ahead.

    load_weight 0 is the longest match whatever the load, and a large one the least load whatever the match.
    """

    def __init__(self, num_workers: int, most: int | None = None, load_weight: float = 8.0) -> None:
        Indexed.__init__(self, num_workers, most)
        self.load_weight = load_weight

    def choose(self, blocks: Blocks) -> int:
        pairs = zip(self.loads, self.matches(blocks), strict=True)
        costs = [self.load_weight * load - match for load, match in pairs]
        lowest = min(costs)
        return self.least(worker for worker, cost in enumerate(costs) if cost == lowest)


class Precise(Scored):
    """`Scored` by what the workers really hold, as far as their KV events have told; it believes nothing else."""

    def __init__(self, num_workers: int, load_weight: float = 8.0) -> None:
        Scored.__init__(self, num_workers, None, load_weight)

    def observe(self, worker: int, added: Blocks, removed: Blocks) -> None:
        """Blocks that entered a worker's cache, and then those that left it."""
        index = self.indexes[worker].lru
        index.update(dict.fromkeys(added))
        for block in removed:  # some of them were added for a moment only
            index.pop(block, None)

    def route(self, blocks: Blocks) -> int:
        return LoadBalancer.route(self, blocks)


class PreciseAndPending(Precise):
    """`Precise`, and what it has sent itself counts as held at once: no event can tell of it before it is computed."""

    def route(self, blocks: Blocks) -> int:
        return Indexed.route(self, blocks)
