"""`python -m handbook hitrate`: what it prints, in words and as JSON, what it draws, how it fails."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from handbook.__main__ import main
from handbook.capacity import History, LRUCurve, optimum
from handbook.lab import traces
from handbook.lab.models import EMBEDDED
from handbook.lab.trace_sources import Traffic, generate
from handbook.lab.traces import TraceRequest

BLOCK_SIZE = 64


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("traces") / "trace.jsonl"
    traces.write(path, generate(600, BLOCK_SIZE, traffic=Traffic(gap=40, user_length=600, system_length=400)))
    return path


@pytest.fixture(scope="module")
def history(trace):
    return History.of(request.hash_ids for request in traces.load(trace, BLOCK_SIZE))


@pytest.fixture
def hitrate(capsys):
    """Run the command; its exit status, standard output and standard error."""

    def run(*arguments):
        try:
            status: object = main(["hitrate", *map(str, arguments)])
        except SystemExit as stop:
            status = stop.code
        return status, *capsys.readouterr()

    return run


def test_json_holds_the_numbers_of_the_trace(hitrate, trace, history):
    status, output, _ = hitrate(trace, "--block-size", BLOCK_SIZE, "--json")
    found, curve = json.loads(output), LRUCurve(history)
    assert status == 0
    assert (found["num_requests"], found["num_blocks"]) == (600, history.num_blocks)
    assert found["unlimited"] == history.max_hits / history.num_blocks
    for row in found["rows"]:
        capacity = row["capacity_tokens"] // BLOCK_SIZE
        assert row["lru"] == curve.at(capacity) / history.num_blocks
        assert row["optimum"] == optimum(history, capacity) / history.num_blocks
        assert row["capacity_bytes"] is None
    assert [need["share"] for need in found["needs"]] == [0.5, 0.9, 0.99]
    assert found["needs"][1]["capacity_tokens"] == curve.needed(0.9 * history.max_hits) * BLOCK_SIZE


def test_capacities_go_from_the_longest_request_to_where_lru_has_all_hits(hitrate, trace, history):
    rows = json.loads(hitrate(trace, "--block-size", BLOCK_SIZE, "--json")[1])["rows"]
    capacities = [row["capacity_tokens"] for row in rows]
    assert len(rows) > 3
    assert capacities[0] / 2.5 < max(history.sizes) * BLOCK_SIZE <= capacities[0]
    assert {str(capacity).rstrip("0") for capacity in capacities} <= {"1", "2", "5"}
    assert rows[-2]["lru"] < rows[-1]["lru"] == history.max_hits / history.num_blocks


def test_a_model_turns_tokens_into_bytes(hitrate, trace):
    found = json.loads(hitrate(trace, "--block-size", BLOCK_SIZE, "--json", "--model", EMBEDDED / "config.json")[1])
    assert found["bytes_per_token"] == 2 * 5 * 2 * 32 * 2
    for each in found["rows"] + found["needs"]:
        assert each["capacity_bytes"] == each["capacity_tokens"] * 1280


def test_the_words_say_how_much_is_needed_for_most_of_the_hits(hitrate, trace, history):
    status, output, _ = hitrate(trace, "--block-size", BLOCK_SIZE, "--model", EMBEDDED)
    tokens = LRUCurve(history).needed(0.9 * history.max_hits) * BLOCK_SIZE
    assert status == 0
    assert f"LRU has 90% of the possible hits with {tokens:,} tokens, {tokens * 1280 / 1e9:,.1f} GB." in output
    assert f"an unlimited cache hits {history.max_hits / history.num_blocks:.1%}" in output
    assert "GB" not in hitrate(trace, "--block-size", BLOCK_SIZE)[1]


def test_a_trace_that_shares_nothing_is_told_so(hitrate, tmp_path):
    traces.write(tmp_path / "t", [TraceRequest(0, 4, 0, [0]), TraceRequest(0, 4, 0, [1])])
    status, output, _ = hitrate(tmp_path / "t", "--block-size", 4, "--plot", tmp_path / "p.png")
    assert status == 0
    assert "No block is used twice: no cache would help." in output


def test_the_plot_says_its_finding_in_the_title(hitrate, trace, history, tmp_path):
    status, *_ = hitrate(trace, "--block-size", BLOCK_SIZE, "--plot", tmp_path / "curve.svg")
    drawing = (tmp_path / "curve.svg").read_text(encoding="utf-8")
    tokens = LRUCurve(history).needed(0.9 * history.max_hits) * BLOCK_SIZE
    assert status == 0
    assert f"LRU has 90% of the possible hits with {tokens / 1e6:,.2f}M tokens" in drawing


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--block-size", "0"], "'0' is no whole number of at least 1"),
        (["--block-size", "many"], "'many' is no whole number of at least 1"),
        ([], "--block-size"),
        (["--block-size", "64", "--plot", "curve.doc"], "cannot draw curve.doc: name a .png, .svg or .pdf file"),
        (["--block-size", "64", "--plot", "nowhere/curve.png"], "in a folder that exists"),
        (["--block-size", "64", "--model", "nowhere.json"], "cannot open nowhere.json: No such file or directory"),
    ],
)
def test_a_wrong_call_has_status_2_and_a_sentence(hitrate, trace, arguments, reason):
    status, output, error = hitrate(trace, *arguments)
    assert (status, output) == (2, "")
    assert reason in error


def test_a_trace_that_does_not_exist_has_status_2(hitrate):
    status, _, error = hitrate("nowhere.jsonl", "--block-size", 64)
    assert status == 2
    assert "cannot open nowhere.jsonl: No such file or directory." in error


def test_a_model_that_cannot_be_counted_has_status_2(hitrate, trace, tmp_path):
    (tmp_path / "config.json").write_text('{"kv_lora_rank": 512}', encoding="utf-8")
    status, _, error = hitrate(trace, "--block-size", 64, "--model", tmp_path)
    assert status == 2
    assert "not every layer keeps K and V" in error


@pytest.mark.parametrize(("content", "reason"), [("{\n", "line 1 is no JSON"), ("", "it has no requests")])
def test_a_wrong_trace_has_status_1_and_names_file_and_line(hitrate, tmp_path, content, reason):
    (tmp_path / "t").write_text(content, encoding="utf-8")
    status, output, error = hitrate(tmp_path / "t", "--block-size", 64)
    assert (status, output) == (1, "")
    assert error.startswith(f"{tmp_path / 't'}: {reason}")


def test_a_wrong_block_size_is_told_the_right_one(hitrate, trace):
    status, _, error = hitrate(trace, "--block-size", 16)
    assert status == 1
    assert "A block size of 64 would fit." in error


def test_on_a_terminal_a_bar_shows_how_much_of_the_file_is_read(hitrate, trace, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    status, _, error = hitrate(trace, "--block-size", BLOCK_SIZE)
    assert status == 0
    assert "reading:   0%" in error
    assert f"/{trace.stat().st_size / 1000:.0f}k" in error


def test_from_a_pipe_it_prints_the_same(hitrate, trace):
    _, output, _ = hitrate(trace, "--block-size", BLOCK_SIZE, "--json")
    command = [sys.executable, "-m", "handbook", "hitrate", "-", "--block-size", str(BLOCK_SIZE), "--json"]
    done = subprocess.run(command, input=trace.read_bytes(), capture_output=True, check=True)
    assert done.stdout.decode() == output
    assert done.stderr == b"", "a progress bar is for terminals"
