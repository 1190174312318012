"""Cache-aware scheduling: who is admitted next, when some of the waiting find their prefix cached and others do not.

The idea: whoever comes while its prefix is still cached saves work, for itself and so for all behind it. Ordering the
queue by what is cached therefore raises the hit rate; and lets those wait whose prefix nobody else uses.

Invariants: a policy only orders, whatever it is given comes back once; ties are served in order of arrival.
Source: SGLang 0.5.23, `SchedulePolicy` (srt/managers/schedule_policy.py), where FCFS is the default today; highest
response ratio next is Brinch Hansen's (1971).
"""

# Woven from notebooks/zh/06_scheduling.ipynb by make build: edit it there.

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from random import Random

from handbook.radix_tree import Node, RadixCache
from handbook.simulation import Arrival
from handbook.waiting import Policy, Waiting

LONGEST_SORTED = 128  # waiting requests; SGLang looks up no more prefixes than that for a step
SHARED = 32  # tokens; below that a prefix is not worth waiting for


class FCFS:
    """First come, first served."""

    def order(self, queue: Sequence[Waiting]) -> list[Waiting]:
        return list(queue)


class LongestPrefixMatch:
    """Most cached tokens first; in a long queue first come, first served.

    in_batch: of several that share what is not cached yet, all but the first are put off, so that they hit.
    """

    def __init__(self, longest: int = LONGEST_SORTED, in_batch: bool = True) -> None:
        self.longest, self.in_batch = longest, in_batch

    def order(self, queue: Sequence[Waiting]) -> list[Waiting]:
        if len(queue) > self.longest:
            return list(queue)
        put_off = brought_by_others(queue) if self.in_batch else set()
        return sorted(queue, key=lambda waiting: (waiting in put_off, -waiting.num_cached))


def brought_by_others(queue: Sequence[Waiting], least: int = SHARED) -> set[Waiting]:
    """Those with little cached now, whose first `least` tokens or more one before them is about to compute.

    The tree is one of the waiting, without memory behind it (SGLang's in-batch prefix caching).
    """
    tree, found = RadixCache(), set()
    for waiting in queue:
        if waiting.num_cached <= least:
            if tree.find(waiting.key)[2] * waiting.block_size >= least:
                found.add(waiting)
            else:
                tree.insert(waiting.key, range(len(waiting.key)))
    return found


class DFSWeight:
    """Depth first through the tree of what is cached, the child under which most requests wait before its siblings."""

    def order(self, queue: Sequence[Waiting]) -> list[Waiting]:
        tree = RadixCache()
        prefixes = [waiting.key[: waiting.num_cached // waiting.block_size] for waiting in queue]
        for prefix in prefixes:
            tree.insert(prefix, range(len(prefix)))
        waiting_at: dict[Node, list[Waiting]] = defaultdict(list)
        weights: Counter[Node] = Counter()
        for waiting, prefix in zip(queue, prefixes, strict=True):
            node = tree.find(prefix)[0]
            waiting_at[node].append(waiting)
            weights.update(tree.path(node))

        def visit(node: Node) -> Iterator[Waiting]:
            for child in sorted(node.children.values(), key=lambda child: -weights[child]):
                yield from visit(child)
            yield from waiting_at[node]

        return list(visit(tree.root))


class LongestOutputFirst:
    """The longest answer first, so that it does not run alone in the end."""

    def order(self, queue: Sequence[Waiting]) -> list[Waiting]:
        return sorted(queue, key=lambda waiting: -waiting.max_tokens)


class ShortestUncachedFirst:
    """The least to compute first: short waits for most, at the price of those with much to compute."""

    def order(self, queue: Sequence[Waiting]) -> list[Waiting]:
        return sorted(queue, key=lambda waiting: waiting.num_uncached)


class HighestResponseRatioNext:
    """The longest wait for what there is to compute first; in a long queue first come, first served.

    A cached prefix helps, and so does patience: everybody's ratio grows until it is the highest.
    """

    def __init__(self, longest: int = LONGEST_SORTED) -> None:
        self.longest = longest

    def order(self, queue: Sequence[Waiting]) -> list[Waiting]:
        if len(queue) > self.longest:
            return list(queue)
        return sorted(queue, key=lambda waiting: -waiting.waited / waiting.num_uncached)


class RandomOrder:
    """Any order, drawn anew for each step."""

    def __init__(self, seed: int = 0) -> None:
        self.random = Random(seed)

    def order(self, queue: Sequence[Waiting]) -> list[Waiting]:
        return self.random.sample(queue, len(queue))


class WithPatience:
    """Another policy's order, but whoever has waited for more than `patience` tokens of others goes before all."""

    def __init__(self, policy: Policy, patience: int) -> None:
        self.policy, self.patience = policy, patience

    def order(self, queue: Sequence[Waiting]) -> list[Waiting]:
        overdue = [waiting for waiting in queue if waiting.waited > self.patience]
        return overdue + self.policy.order([waiting for waiting in queue if waiting.waited <= self.patience])


def questions(
    num_requests: int, num_documents: int, document_blocks: int, skew: float = 0.0, seed: int = 0, block_size: int = 512
) -> list[Arrival]:
    """Questions about documents drawn at random, one a second: each a document and less than a block of its own.

    skew is Zipf's exponent: at 0 all documents are asked about equally often.
    """
    random, arrivals = Random(seed), []
    popularity = list(accumulate((rank + 1) ** -skew for rank in range(num_documents)))
    for time in range(num_requests):
        (document,) = random.choices(range(num_documents), cum_weights=popularity)
        blocks = [(document, position) for position in range(document_blocks)]
        num_tokens = document_blocks * block_size + random.randint(32, block_size - 1)
        arrivals.append(Arrival(float(time), [*blocks, ("question", time)], num_tokens, random.randint(16, 512)))
    return arrivals


def hot_and_cold(num_hot: int, interval: float, document_blocks: int = 8, block_size: int = 512) -> list[Arrival]:
    """A stream of questions about one document, and behind the second of them one request about something else."""
    document: list[object] = [("hot", position) for position in range(document_blocks)]
    num_tokens = document_blocks * block_size + block_size // 2
    hot = [Arrival(n * interval, [*document, ("question", n)], num_tokens) for n in range(num_hot)]
    cold = Arrival(interval, [("cold", position) for position in range(document_blocks + 1)], num_tokens)
    return [*hot[:2], cold, *hot[2:]]
