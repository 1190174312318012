"""Bounded caches said plainly: every block by itself, lists searched and sorted at each step. Oracles and baseline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from handbook.eviction import Policy, Use

Requests = Sequence[Sequence[int]]


def leading_run(request: Sequence[int], cached: Collection[int]) -> int:
    """How many blocks hit: those before the first that is not cached."""
    for position, block in enumerate(request):
        if block not in cached:
            return position
    return len(request)


def lru_hits(requests: Requests, capacity: int) -> int:
    """A list of blocks, the least recently used first; a request's blocks are renewed from the last to the first."""
    cached: list[int] = []
    hits = 0
    for request in requests:
        hits += leading_run(request, cached)
        for block in reversed(request):
            if block in cached:
                cached.remove(block)
            cached.append(block)
        cached = cached[max(0, len(cached) - capacity) :]
    return hits


def policy_hits(requests: Requests, capacity: int, policy: Policy) -> int:
    """What `handbook.eviction.replay` promises, with a search for the lowest rank at each eviction."""
    cached: dict[int, Use] = {}
    hits = 0
    for now, request in enumerate(requests):
        hits += leading_run(request, cached)
        newcomers = [block for block in request if block not in cached]
        for position, block in enumerate(request):
            old = cached.get(block, Use(now, now, position, 0))
            cached[block] = Use(old.entered, now, position, old.count + 1)
            cached[block].rank = policy.rank(cached[block])
        while len(cached) > capacity:
            lowest = min(cached, key=lambda block: cached[block].rank)
            if policy.protects(cached[lowest], now) and newcomers:
                lowest = newcomers.pop()
            cached.pop(lowest, None)
    return hits


def optimum_by_rule(requests: Requests, capacity: int) -> int:
    """After each request keep the blocks whose next use is soonest; of equals the later in a request goes first."""
    cached: set[int] = set()
    hits = 0
    for now, request in enumerate(requests):
        hits += leading_run(request, cached)

        def next_use(block: int, now: int = now) -> tuple[int, int]:
            for later in range(now + 1, len(requests)):
                if block in requests[later]:
                    return later, requests[later].index(block)
            return len(requests), 0

        cached = set(sorted(cached | set(request), key=next_use)[:capacity])
    return hits


def optimum_by_trying(requests: Requests, capacity: int) -> int:
    """The most hits of all ways to choose what to keep after each request."""
    outcomes = {frozenset[int](): 0}  # the most hits so far by what is cached
    for request in requests:
        following: dict[frozenset[int], int] = {}
        for cached, hits in outcomes.items():
            hits += leading_run(request, set(cached))
            candidates = cached | set(request)
            for kept in combinations(sorted(candidates), min(capacity, len(candidates))):
                following[frozenset(kept)] = max(hits, following.get(frozenset(kept), 0))
        outcomes = following
    return max(outcomes.values())
