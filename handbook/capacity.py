"""How much cache? LRU's hits for every capacity in one pass, and the most that any policy could reach.

A request is the list of its blocks' ids, where equal id means equal whole prefix; capacities and hits are in blocks.
Only a leading run of cached blocks hits. Requests come one after another, and each renews its blocks from the last to
the first, so that a child is older than its parent.

The idea: then nobody needs to follow single blocks. Whoever uses a block again uses all before it, too, so the blocks
that a request was the last to use are always a run, up to its end: one number says how many are left. LRU stacks these
runs by request, the latest on top, and a block hits if and only if the capacity is at least its place in the stack
(a stack algorithm: Mattson and others, 1970). The offline optimum keeps the runs whose next use is soonest
(Belady, 1966), and drops the others from their ends.

Invariants: hits never fall with the capacity; LRU <= optimum <= an unlimited cache.
What it leaves out: requests that run side by side pin their blocks, and generated tokens have no ids in most traces.
"""

# Woven from notebooks/zh/05_hit_rates.ipynb by make build: edit it there.

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from typing import NamedTuple


class Reuse(NamedTuple):
    """`request` uses again what `last_user` was the last to use: the blocks at positions first to stop - 1 of both."""

    request: int
    last_user: int
    first: int
    stop: int


@dataclass(frozen=True)
class History:
    """Who reuses what, in order: all that the questions below need to know of a trace."""

    sizes: list[int]  # the number of blocks of each request
    reuses: list[Reuse]

    @classmethod
    def of(cls, requests: Iterable[Sequence[Hashable]]) -> History:
        """Read requests once; they may come from a generator. Memory: about 100 bytes for each different block."""
        last_user: dict[Hashable, int] = {}
        sizes: list[int] = []
        reuses: list[Reuse] = []
        for request, blocks in enumerate(requests):
            position, size = 0, len(blocks)
            while position < size and (user := last_user.get(blocks[position])) is not None:
                first, position = position, position + 1
                while position < size and last_user.get(blocks[position]) == user:
                    position += 1
                reuses.append(Reuse(request, user, first, position))
            last_user.update(dict.fromkeys(blocks, request))
            sizes.append(size)
        return cls(sizes, reuses)

    @property
    def num_blocks(self) -> int:
        """Block references: what hits are counted against."""
        return sum(self.sizes)

    @property
    def max_hits(self) -> int:
        """What an unlimited cache finds."""
        return sum(reuse.stop - reuse.first for reuse in self.reuses)


class Stack:
    """A Fenwick tree over requests in order of time, which grows: how many blocks each was the last to use."""

    def __init__(self) -> None:
        self.sums = [0]  # sums[i]: requests i - (i & -i) to i - 1
        self.total = 0

    def push(self, num_blocks: int) -> None:
        """A new request on top, the last to use num_blocks blocks."""
        place, step = len(self.sums), 1
        self.total += num_blocks
        while step < place & -place:
            num_blocks += self.sums[place - step]
            step *= 2
        self.sums.append(num_blocks)

    def above(self, request: int) -> int:
        """Blocks last used by requests later than this one."""
        place, below = request + 1, 0
        while place > 0:
            below += self.sums[place]
            place &= place - 1
        return self.total - below

    def take(self, request: int, num_blocks: int) -> None:
        """A later request uses num_blocks of its blocks."""
        place = request + 1
        self.total -= num_blocks
        while place < len(self.sums):
            self.sums[place] -= num_blocks
            place += place & -place


class LRUCurve:
    """The hits of LRU for every capacity: a line with bends, at capacity bends[i] hits[i], from there slopes[i]."""

    def __init__(self, history: History) -> None:
        changes: dict[int, int] = {}  # of the slope
        stack = Stack()
        num_pushed = 0
        for reuse in history.reuses:
            for request in range(num_pushed, reuse.request):
                stack.push(history.sizes[request])
            num_pushed = reuse.request
            # What this request has taken already, its positions before `first`, stood higher up when it came.
            above, length = stack.above(reuse.last_user) + reuse.first, reuse.stop - reuse.first
            changes[above] = changes.get(above, 0) + 1
            changes[above + length] = changes.get(above + length, 0) - 1
            stack.take(reuse.last_user, length)
        self.bends = sorted({0, *changes})
        self.slopes = list(accumulate(changes.get(bend, 0) for bend in self.bends))
        self.hits = [0]
        for (bend, end), slope in zip(pairwise(self.bends), self.slopes, strict=False):
            self.hits.append(self.hits[-1] + slope * (end - bend))

    def at(self, capacity: int) -> int:
        """Hits with this capacity."""
        if capacity < 0:
            raise ValueError(f"a capacity is a number of blocks, 0 or more; got {capacity}.")
        index = bisect_right(self.bends, capacity) - 1
        return self.hits[index] + self.slopes[index] * (capacity - self.bends[index])

    def needed(self, hits: float) -> int:
        """The least capacity with at least so many hits; ValueError if none has."""
        if hits > self.hits[-1]:
            raise ValueError(f"{hits:g} hits cannot be had: an unlimited cache finds {self.hits[-1]}.")
        return bisect_left(range(self.bends[-1]), hits, key=self.at)


def optimum(history: History, capacity: int) -> int:
    """The most hits that any policy can reach with this capacity, the future known: Belady's rule with prefixes.

    After each request, of the cache and the request together those blocks are kept whose next use is soonest; of
    equals the later ones of a request go first. What is kept for one next use is a run of its beginning, so a heap over
    next users is enough.
    """
    if capacity < 0:
        raise ValueError(f"a capacity is a number of blocks, 0 or more; got {capacity}.")
    next_uses: list[list[Reuse]] = [[] for _ in history.sizes]
    for reuse in history.reuses:
        next_uses[reuse.last_user].append(reuse)
    first, stop = [0] * len(next_uses), [0] * len(next_uses)  # of the run kept for each request, until it comes
    farthest: list[int] = []  # the requests that a run is kept for, negative: the head is the farthest
    hits = size = 0
    for request, uses in enumerate(next_uses):
        hits += stop[request]
        size -= stop[request]
        for reuse in uses:
            if first[reuse.request] == stop[reuse.request]:
                stop[reuse.request] = reuse.stop
                heappush(farthest, -reuse.request)
            first[reuse.request] = reuse.first
            size += reuse.stop - reuse.first
        while size > capacity:
            loser = -farthest[0]
            num_dropped = min(size - capacity, stop[loser] - first[loser])
            stop[loser] -= num_dropped
            size -= num_dropped
            if first[loser] == stop[loser]:
                heappop(farthest)
    return hits
