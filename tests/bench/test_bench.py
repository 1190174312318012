"""The benchmarks do the work they say, on the streams they say; how long it takes is not asserted."""

from __future__ import annotations

import json

import pytest

from handbook.lab import counting
from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.radix_tree import Node, RadixCache
from tests.bench import __main__, blocks, scheduler, streams, tree
from tests.bench.measure import Row, in_turns
from tests.naive.plain_block_pool import PlainBlockPool
from tests.naive.plain_radix import PlainNode, PlainRadixCache


def hit_rate(stream: streams.Stream, num_blocks: int) -> float:
    pool = PrefixCachingBlockPool(num_blocks, 16)
    return blocks.serve(pool, [(tokens, tokens[:-1]) for tokens in stream]) * 16 / sum(map(len, stream))


def test_the_workloads_are_drawn_as_the_table_of_hit_rates_wants_them():
    rates = {name: round(hit_rate(stream, 30_000) * 100, 1) for name, stream in streams.workloads().items()}
    assert rates == {"shared system prompt": 88.8, "multi-turn": 78.6, "few-shot": 87.8, "parallel sampling": 84.2}


def test_the_other_streams_have_the_lengths_and_the_sharing_they_promise():
    big, small, growth = streams.big(60), streams.small(300), streams.growth(50)
    assert all(3900 <= len(tokens) <= 4100 for tokens in big)
    assert {len(tokens) for tokens in small} == {256}
    assert {len(tokens) for tokens in growth} == {64}
    for stream, num_shared, num_prefixes in ((big, 2000, 40), (small, 128, 200), (growth, 32, 1)):
        prefixes = {tuple(tokens[:num_shared]) for tokens in stream}
        assert len({tokens[0] for tokens in stream}) == len(prefixes) <= num_prefixes
    assert len({tuple(tokens[-32:]) for tokens in growth}) == 50
    assert 1000 <= min(min(tokens) for tokens in big) < max(max(tokens) for tokens in big) < 150_000


def test_both_contestants_serve_a_bounded_stream_with_the_same_hits():
    work = [(tokens, tokens[:-1]) for tokens in streams.small(400)]
    hits = blocks.serve(PrefixCachingBlockPool(600, 16), work), blocks.serve_plainly(PlainBlockPool(600, 16), work)
    assert hits[0] == hits[1] > 0


def test_both_trees_serve_a_bounded_stream_with_the_same_hits():
    work = tree.work_of(streams.small(400))
    hits = tree.serve(RadixCache(), work, 9000), tree.serve(PlainRadixCache(), work, 9000)
    assert hits[0] == hits[1] > 0


def test_comparisons_and_visits_are_counted_for_both_trees():
    for cache, node in ((RadixCache(), Node), (PlainRadixCache(), PlainNode)):
        cache.insert([counting.CountingToken(token) for token in range(5)], range(5))
        key = [counting.CountingToken(token) for token in range(5)]
        assert counting.comparisons(cache.match_prefix, key) >= 5
        assert counting.visits(node, cache.match_prefix, key) >= 1
        assert counting.visits(node, cache.evict, 1) >= 1


@pytest.mark.parametrize(
    "row",
    [
        lambda: blocks.stream_row("tiny", streams.growth(20), 100, rounds=2),
        lambda: blocks.growth_row(30, rounds=2, num_timed=10),
        lambda: blocks.decode_row(40, rounds=2),
        lambda: tree.stream_row("tiny", streams.growth(20), 900, "2 times", rounds=2),
        lambda: tree.growth_row(30, "2 us", rounds=2, num_timed=10),
        lambda: tree.deep_path_row(rounds=2, num_requests=4),
        lambda: tree.decode_row(40, rounds=2, num_new=10),
    ],
    ids=["stream", "growth", "decode", "tree stream", "tree growth", "tree deep path", "tree decode"],
)
def test_a_row_holds_the_times_of_both(row):
    assert row().microseconds.keys() == {"plain", "handbook"}
    assert (row().times_faster or 0) > 0


@pytest.mark.parametrize("kind", scheduler.POOLS)
def test_a_row_of_the_scheduler_holds_its_time_and_the_lines_of_a_step(kind):
    small = {"num_blocks": 900, "num_running": 2, "num_tokens": 20}
    few, more = scheduler.pool_rows(kind, {"few": small, "more wait": {**small, "num_waiting": 20}}, rounds=2)
    assert (list(few.microseconds), few.name) == (["handbook"], f"{kind}, few")
    assert 0 < few.facts["lines"] < more.facts["lines"]


def test_contestants_take_turns_and_only_their_run_counts_as_one():
    order: list[str] = []

    def contestant(name):
        def prepare():
            order.append(f"prepare {name}")
            return lambda: order.append(f"run {name}")

        return prepare

    times = in_turns({"a": contestant("a"), "b": contestant("b")}, rounds=2)
    assert order == ["prepare a", "run a", "prepare b", "run b"] * 2
    assert times.keys() == {"a", "b"}


def test_the_results_are_printed_and_written_with_the_facts_of_the_machine(monkeypatch, tmp_path, capsys):
    row = Row("blocks", "some work", "request", {"plain": 30.0, "handbook": 10.0}, "1.0 times", {"requests": 7})
    monkeypatch.setattr(__main__, "SUBJECTS", {"blocks": lambda: iter([row])})
    monkeypatch.setattr(__main__, "OUTPUT", tmp_path / "build" / "bench.json")
    __main__.main([])
    written = json.loads((tmp_path / "build" / "bench.json").read_text(encoding="utf-8"))
    assert written["rows"][0]["times_faster"] == 3.0
    assert {"processor", "cores", "python"} <= written["machine"].keys()
    output = capsys.readouterr().out
    assert "some work" in output
    assert "3.00" in output


def test_an_unknown_subject_is_named(capsys):
    with pytest.raises(SystemExit):
        __main__.main(["trees"])
    assert "no subject 'trees'" in capsys.readouterr().err
