"""The benchmark of the LRU curve does the same work twice; how long it takes is not asserted."""

from __future__ import annotations

import pytest

from tests.bench import hit_rate
from tests.naive.plain_eviction import lru_hits

REQUESTS = [[0, 1, 2], [0, 3], [0, 1, 2], [4], [0, 3]]


def test_the_plain_contestant_is_lru_too():
    assert [hit_rate.plain_lru(REQUESTS, c) for c in range(6)] == [lru_hits(REQUESTS, c) for c in range(6)]


def test_a_row_holds_the_times_of_both_and_the_size_of_the_work():
    row = hit_rate.curve_row("tiny", REQUESTS, "25 us", rounds=2)
    assert row.microseconds.keys() == {"plain", "handbook"}
    assert row.facts == {"requests": 5, "blocks": 11, "best hit rate": 0.545}


def test_contestants_that_disagree_are_no_benchmark(monkeypatch):
    monkeypatch.setattr(hit_rate, "plain_lru", lambda requests, capacity: 0)
    with pytest.raises(AssertionError, match="different work"):
        hit_rate.curve_row("tiny", REQUESTS, "25 us", rounds=2)
