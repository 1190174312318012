"""The radix tree: whole requests, the cost of evicting as it grows, a deep path, and registering one more token.

Beside the times stand counts, the same on every machine: nodes visited and tokens compared (`handbook.lab.counting`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from typing import Any

from handbook.lab.counting import CountingToken, comparisons, visits
from handbook.radix import RadixBlockPool
from handbook.radix_tree import Node, RadixCache
from tests.bench import streams
from tests.bench.measure import Row, in_turns
from tests.bench.streams import Stream
from tests.naive.plain_radix import PlainNode, PlainRadixCache

Work = list[tuple[list[int], list[int], list[int]]]
CONTESTANTS: dict[str, tuple[type, type]] = {"plain": (PlainRadixCache, PlainNode), "handbook": (RadixCache, Node)}


def work_of(stream: Stream) -> Work:
    """Each request, the same without its last token, and a slot for each token."""
    return [(token_ids, token_ids[:-1], list(range(len(token_ids)))) for token_ids in stream]


def serve(tree: Any, work: Work, capacity: int) -> int:
    """Match each request without its last token and lock, evict what is missing, insert and unlock; the tokens hit."""
    num_hits = 0
    for token_ids, but_the_last, slots in work:
        hits, node = tree.match_prefix(but_the_last)
        tree.inc_lock_ref(node)
        missing = tree.total_size() + len(token_ids) - len(hits) - capacity
        if missing > 0:
            tree.evict(missing)
        tree.insert(token_ids, slots)
        tree.dec_lock_ref(node)
        num_hits += len(hits)
    return num_hits


def counts(stream: Stream, capacity: int) -> dict[str, float]:
    """Visits of nodes, and comparisons of tokens in the first requests, each per request."""
    first = stream[:200]
    found: dict[str, float] = {}
    for name, (cache, node) in CONTESTANTS.items():
        found[f"visits {name}"] = round(visits(node, serve, cache(), work_of(stream), capacity) / len(stream))
        work = work_of([[CountingToken(token) for token in token_ids] for token_ids in first])
        found[f"compared {name}"] = round(comparisons(serve, cache(), work, capacity) / len(first))
    return found


def stream_row(name: str, stream: Stream, capacity: int, to_reach: str, rounds: int) -> Row:
    """All requests of a stream through fresh trees that may hold capacity tokens."""
    work = work_of(stream)
    num_hits = {name: serve(cache(), work, capacity) for name, (cache, _) in CONTESTANTS.items()}
    assert num_hits["handbook"] == num_hits["plain"], "the two did different work"

    def prepare(cache: type) -> Callable[[], Callable[[], object]]:
        return lambda: partial(serve, cache(), work, capacity)

    times = in_turns({name: prepare(cache) for name, (cache, _) in CONTESTANTS.items()}, rounds)
    microseconds = {name: time / len(stream) * 1e6 for name, time in times.items()}
    facts = {"hit rate": round(num_hits["plain"] / sum(map(len, stream)), 3), **counts(stream, capacity)}
    return Row("tree", name, "request", microseconds, to_reach, facts)


def growth_row(num_leaves: int, to_reach: str, rounds: int, num_timed: int = 100, num_timed_plain: int = 3) -> Row:
    """Evicting one leaf of num_leaves: flat if eviction is."""
    stream = streams.growth(num_leaves + rounds * num_timed)
    timed = {"plain": num_timed_plain, "handbook": num_timed}
    trees: dict[str, Any] = {name: cache() for name, (cache, _) in CONTESTANTS.items()}
    for name, tree in trees.items():
        serve(tree, work_of(stream[: num_leaves + rounds * timed[name]]), 64 * len(stream))

    def evict(tree: Any, times: int) -> None:
        for _ in range(times):
            tree.evict(1)

    def prepare(name: str) -> Callable[[], Callable[[], object]]:
        return lambda: lambda: evict(trees[name], timed[name])

    times = in_turns({name: prepare(name) for name in CONTESTANTS}, rounds)
    microseconds = {name: time / timed[name] * 1e6 for name, time in times.items()}
    facts = {f"visits {name}": visits(node, trees[name].evict, 1) for name, (_, node) in CONTESTANTS.items()}
    return Row("tree", f"growth, evict 1 of {num_leaves:,} leaves", "leaf", microseconds, to_reach, facts)


def deep_path_row(rounds: int, num_requests: int = 256, num_timed: int = 10) -> Row:
    """Requests each 64 tokens longer than the last; then the longest is matched."""
    key = streams.Drawn(4).tokens(64 * num_requests)
    again = [int(str(token)) for token in key]  # other objects, which Python must compare
    requests = [key[:length] for length in accumulate([64] * num_requests)]
    trees: dict[str, Any] = {name: cache() for name, (cache, _) in CONTESTANTS.items()}
    for tree in trees.values():
        serve(tree, work_of(requests), 64 * num_requests)

    def match(tree: Any) -> None:
        for _ in range(num_timed):
            tree.match_prefix(again)

    def prepare(tree: Any) -> Callable[[], Callable[[], object]]:
        return lambda: lambda: match(tree)

    times = in_turns({name: prepare(tree) for name, tree in trees.items()}, rounds)
    microseconds = {name: time / num_timed * 1e6 for name, time in times.items()}
    facts = {f"visits {name}": visits(node, trees[name].match_prefix, again) for name, (_, node) in CONTESTANTS.items()}
    return Row("tree", f"deep path, match {len(key):,} tokens", "match", microseconds, "200 to 440 us", facts)


def decode_row(num_tokens: int, rounds: int, num_new: int = 1000, num_new_plain: int = 10) -> Row:
    """One more token after num_tokens, registered: by the pool, and by inserting the sequence into the plain tree."""

    def handbook() -> Callable[[], object]:
        pool = RadixBlockPool(num_tokens + num_new)
        token_ids = list(range(num_tokens))
        table = pool.cache_blocks(token_ids, pool.allocate(pool.num_free) or [], num_tokens)

        def decode() -> None:
            for token in range(num_new):
                token_ids.append(token)
                pool.cache_blocks(token_ids, table, len(token_ids))

        return decode

    def plain() -> Callable[[], object]:
        tree = PlainRadixCache()
        token_ids = list(range(num_tokens))
        tree.insert(token_ids, token_ids)

        def decode() -> None:
            for token in range(num_new_plain):
                token_ids.append(token)
                tree.insert(token_ids, token_ids)

        return decode

    times = in_turns({"plain": plain, "handbook": handbook}, rounds)
    per_token = {"plain": times["plain"] / num_new_plain * 1e6, "handbook": times["handbook"] / num_new * 1e6}
    return Row("tree", f"decode, one more token after {num_tokens:,}", "token", per_token, "flat", {})


def rows(rounds: int = 7) -> Iterator[Row]:
    """The small ones first: large ones leave memory in pieces, and tokens that lie scattered are slow for everybody."""
    reached = ("7.3 to 7.9 times", "2.5 to 4.7 times", "3.7 to 5.2 times", "1.0 to 2.9 times")
    for (name, stream), to_reach in zip(streams.workloads().items(), reached, strict=True):
        yield stream_row(name, stream, sum(map(len, stream)), to_reach, rounds)
    yield deep_path_row(rounds)
    for num_tokens in (1000, 4000, 16_000):
        yield decode_row(num_tokens, rounds)
    yield stream_row("big, 2,000,000 tokens fit", streams.big(), 2_000_000, "5.4 to 5.7 times", rounds)
    yield stream_row("small, 512,000 tokens fit", streams.small(), 512_000, "45 to 133 times", rounds)
    for num_leaves, to_reach in ((1000, "2 to 6 us"), (10_000, "2 to 6 us"), (100_000, "3 to 15 us")):
        yield growth_row(num_leaves, to_reach, rounds)
