"""Eviction policies in a bounded cache with prefix semantics: who goes when there is no room.

A request is the list of its blocks' ids, equal id meaning equal whole prefix; a capacity is in blocks. Only a leading
run of cached blocks hits. After a request all its blocks are cached, and then the cache shrinks to its capacity.

The idea: at each use of a block a policy ranks it anew by what is known of its uses, and the lowest rank is evicted
first. It may protect even that one; then a newcomer goes in its place. So it decides who leaves, and who may enter.

Invariants: the cache never holds more than its capacity between requests; a policy sees the past alone.
Source: Lease is a simple member of the family that refuses newcomers, as TinyLFU (arXiv 1512.00727) and the bimodal
insertion of CPU caches (Qureshi and others, ISCA 2007) do.
"""

# Woven from notebooks/zh/05_hit_rates.ipynb by make build: edit it there.

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Any, Protocol


@dataclass(slots=True)
class Use:
    """What a policy may know of a cached block. Times are numbers of requests."""

    entered: int  # when it was cached
    last: int  # when it was used last
    position: int  # of the block in its request: 0 is the first
    count: int  # uses since it was cached, that one included
    rank: Any = None


class Policy(Protocol):
    """Who is evicted first; one object for one replay."""

    def rank(self, use: Use) -> Any:
        """Called at each use of a block. What orders blocks: the lowest is evicted first."""

    def protects(self, use: Use, now: int) -> bool:
        """Whether the block of the lowest rank stays all the same, so that a block of the request `now` is refused."""
        return False


class LRU(Policy):
    """The least recently used goes first; of one request the last block, so that a child goes before its parent."""

    def rank(self, use: Use) -> Any:
        return use.last, -use.position


class FIFO(Policy):
    """The one that was cached first goes first, however often it was used."""

    def rank(self, use: Use) -> Any:
        return use.entered, -use.position


class LFU(Policy):
    """The one with the fewest uses goes first; of equals the least recently used."""

    def rank(self, use: Use) -> Any:
        return use.count, use.last, -use.position


class RandomEviction(Policy):
    """Any block goes, even a parent before its child, which nobody can reach then."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)

    def rank(self, use: Use) -> Any:
        return self.random.random()


class Lease(LRU):
    """LRU, but a block may stay for `length` requests after each use: until then newcomers are refused.

    LRU gives all blocks the same life, and if that is shorter than the time until they are used again, none of them
    hits. A lease lets some live long enough, at the price of the others. With room for all it is LRU.
    """

    def __init__(self, length: int) -> None:
        self.length = length

    def protects(self, use: Use, now: int) -> bool:
        return now - use.last < self.length


def replay(requests: Iterable[Sequence[Hashable]], capacity: int, policy: Policy) -> int:
    """Serve requests one after another with a cache of `capacity` blocks; the blocks that hit."""
    if capacity < 0:
        raise ValueError(f"a capacity is a number of blocks, 0 or more; got {capacity}.")
    cached: dict[Hashable, Use] = {}
    ranking: list[tuple[Any, int, Hashable]] = []  # a heap of ranks, outdated ones among them
    num_hits = num_ranked = 0
    for now, request in enumerate(requests):
        newcomers: list[Hashable] = []
        for position, block in enumerate(request):
            if use := cached.get(block):
                num_hits += not newcomers
                use.last, use.position, use.count = now, position, use.count + 1
            else:
                newcomers.append(block)
                use = cached[block] = Use(now, now, position, 1)
            use.rank = policy.rank(use)
            heappush(ranking, (use.rank, num_ranked, block))
            num_ranked += 1
        while len(cached) > capacity:
            rank, _, block = ranking[0]
            lowest = cached.get(block)
            if lowest is None or lowest.rank != rank:
                heappop(ranking)
            elif newcomers and policy.protects(lowest, now):
                cached.pop(newcomers.pop(), None)
            else:
                del cached[block]
    return num_hits
