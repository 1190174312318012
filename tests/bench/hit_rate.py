"""The LRU curve of a trace in one pass, against one simulation of every block for each of ten capacities."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from handbook.capacity import History, LRUCurve
from handbook.lab import traces
from handbook.lab.trace_sources import generate
from tests.bench.measure import Row, in_turns

CAPACITIES = [200 * 2**power for power in range(10)]  # in blocks


def plain_lru(requests: list[list[int]], capacity: int) -> int:
    """The simulation that everybody writes first: an ordered dict of blocks, for one capacity."""
    cached: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for request in requests:
        missed = False
        for block in request:
            missed = missed or block not in cached
            hits += not missed
        for block in reversed(request):
            cached[block] = None
            cached.move_to_end(block)
        while len(cached) > capacity:
            cached.popitem(last=False)
    return hits


def curve_row(name: str, requests: list[list[int]], to_reach: str, rounds: int) -> Row:
    """From requests to the hits at all capacities."""

    def handbook() -> list[int]:
        curve = LRUCurve(History.of(requests))
        return [curve.at(capacity) for capacity in CAPACITIES]

    def plain() -> list[int]:
        return [plain_lru(requests, capacity) for capacity in CAPACITIES]

    hits = handbook()
    assert hits == plain(), "the two did different work"
    times = in_turns({"plain": lambda: plain, "handbook": lambda: handbook}, rounds)
    num_blocks = sum(map(len, requests))
    facts = {"requests": len(requests), "blocks": num_blocks, "best hit rate": round(hits[-1] / num_blocks, 3)}
    microseconds = {contestant: time / len(requests) * 1e6 for contestant, time in times.items()}
    return Row("hit rate", name, "request", microseconds, to_reach, facts)


def rows(rounds: int = 3) -> Iterator[Row]:
    drawn = [request.hash_ids for request in generate(12_000)]
    yield curve_row("LRU curve, made-up conversations", drawn, "25 us", rounds)
    if folder := os.environ.get("HANDBOOK_TRACES"):
        recorded = traces.load(Path(folder) / "mooncake_conversation.jsonl.gz", 512)
        yield curve_row("LRU curve, recorded conversations", [r.hash_ids for r in recorded], "25 us", rounds)
