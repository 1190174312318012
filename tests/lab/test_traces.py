"""Mooncake's format: what is read, what is refused and in which words, what is written and made up."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pytest

from handbook.capacity import History, LRUCurve
from handbook.hit_rate import workloads
from handbook.lab import models, traces
from handbook.lab.trace_sources import Traffic, from_tokens, generate
from handbook.lab.traces import TraceError, TraceRequest
from tests.traces import recorded

GOOD = [TraceRequest(0, 5, 7, [0, 1]), TraceRequest(20, 7, 1, [0, 2]), TraceRequest(20, 4, 0, [0])]  # blocks of 4


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.jsonl"


def line(**changes):
    return json.dumps({"timestamp": 0, "input_length": 5, "output_length": 7, "hash_ids": [0, 1]} | changes)


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_what_is_written_is_read_again(tmp_path, name):
    traces.write(tmp_path / name, GOOD)
    assert traces.load(tmp_path / name, 4) == GOOD


def test_a_name_that_ends_in_gz_is_packed_and_any_packed_file_is_unpacked(tmp_path):
    traces.write(tmp_path / "trace.gz", GOOD)
    packed = (tmp_path / "trace.gz").read_bytes()
    assert gzip.decompress(packed).count(b"\n") == len(GOOD)
    (tmp_path / "odd name").write_bytes(packed)
    assert traces.load(tmp_path / "odd name", 4) == GOOD


def test_a_dash_is_standard_input(monkeypatch, path):
    traces.write(path, GOOD)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(path.read_bytes()))))
    assert traces.load("-", 4) == GOOD


def test_requests_come_one_by_one(path):
    path.write_text(line() + "\nnonsense\n", encoding="utf-8")
    with traces.opened(path) as file:
        requests = traces.read(file, 4)
        assert next(requests) == GOOD[0]
        with pytest.raises(TraceError, match="line 2"):
            next(requests)


def test_blank_lines_count_and_say_nothing(path):
    path.write_text(f"\n{line()}\n\n{line(output_length=-1)}\n", encoding="utf-8")
    with pytest.raises(TraceError, match="line 4: output_length"):
        traces.load(path, 4)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "line 1 is no JSON: Expecting property name"),
        ("\ufffd", "line 1 is no JSON"),
        ("[1, 2]", r"line 1 is no JSON object but \[1, 2\]"),
        (
            '{"timestamp": 0}',
            "line 1 lacks 'input_length'; a line has timestamp, input_length, output_length, hash_ids",
        ),
        (line(hash_ids=[]), r"line 1: hash_ids must be a list of whole numbers, at least one; got \[\]"),
        (line(hash_ids=[0, True]), r"hash_ids must be a list of whole numbers, at least one; got \[0, true\]"),
        (line(hash_ids=["x" * 99]), r"got \[\"x{50,60}\.\.\."),
        (line(input_length=0), "line 1: input_length must be a whole number, at least 1; got 0"),
        (line(input_length=4.5), "input_length must be a whole number, at least 1; got 4.5"),
        (line(timestamp="now"), 'timestamp must be a whole number, at least 0; got "now"'),
        (line(output_length=True), "output_length must be a whole number, at least 0; got true"),
        (line(timestamp=float("inf")), "timestamp must be a whole number, at least 0; got Infinity"),
    ],
)
def test_a_malformed_line_is_an_error_with_number_and_reason(path, text, reason):
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(TraceError, match=reason):
        traces.load(path, 4)


def test_a_number_written_as_a_fraction_is_whole_if_its_value_is(path):
    path.write_text(line(timestamp=27482.0), encoding="utf-8")
    assert traces.load(path, 4)[0].timestamp == 27482


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ([3, 1], "line 2: id 1 comes after 3 here, and after 0 in an earlier place"),
        ([1, 4], "line 2: id 1 comes after nothing here, and after 0"),
        ([5, 5], "line 2: id 5 comes after 5 here, and after nothing"),
    ],
)
def test_an_id_with_two_prefixes_is_an_error(path, second, reason):
    path.write_text(line() + "\n" + line(hash_ids=second), encoding="utf-8")
    with pytest.raises(TraceError, match=reason):
        traces.load(path, 4)


def test_damaged_gzip_data_are_an_error(path):
    packed = gzip.compress("\n".join([line()] * 1000).encode())
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(TraceError, match="gzip data are damaged"):
        traces.load(path, 4)


@pytest.mark.parametrize("wrong", [2, 8, 63, 65, 511, 1024])
def test_a_wrong_block_size_is_told_which_one_would_fit(path, wrong):
    traces.write(path, generate(400, 64, traffic=Traffic(user_length=2000)))
    with pytest.raises(
        TraceError, match=rf"blocks of {wrong}, hash_ids .* but it has \d+\. A block size of 64 would fit\."
    ):
        traces.load(path, wrong)


@pytest.mark.parametrize(
    ("lengths", "reason"),
    [
        (
            [(10, 2)],
            "line 1: for 10 tokens in blocks of 16, hash_ids should have length 1, but it has 2. A block size of 8",
        ),
        ([(13, 2)], "A block size of 8 would fit"),  # of 7 to 12 that is the power of two
        ([(6, 2), (10, 2)], "A block size of 5 would fit"),
        ([(12, 2), (18, 2)], "A block size of 9 to 11 would fit"),
        ([(100, 2), (5, 2)], "No block size fits this line and those after it"),
    ],
)
def test_which_sizes_fit_is_what_the_lines_agree_on(path, lengths, reason):
    ids = [[2 * number + block for block in range(count)] for number, (_, count) in enumerate(lengths)]
    traces.write(path, [TraceRequest(0, length, 0, i) for (length, _), i in zip(lengths, ids, strict=True)])
    with pytest.raises(TraceError, match=reason):
        traces.load(path, 16)


def test_a_block_size_of_nothing_is_an_error(path):
    path.write_text(line(), encoding="utf-8")
    with pytest.raises(ValueError, match="at least one token; got block size 0"):
        traces.load(path, 0)


def test_prompts_become_a_trace_whose_ids_share_as_they_share():
    requests = list(from_tokens([[1, 2, 3, 4, 5], [1, 2, 3], [1, 2, 3, 4, 9], [3, 4]], 2, [0, 5, 9, 9], [7, 7, 7, 1]))
    assert [request.hash_ids for request in requests] == [[0, 1, 2], [0, 3], [0, 1, 4], [5]]
    assert [request.input_length for request in requests] == [5, 3, 5, 2]
    assert [(request.timestamp, request.output_length) for request in requests] == [(0, 7), (5, 7), (9, 7), (9, 1)]


def test_the_trace_of_a_workload_hits_as_its_prompts_do(path):
    prompts = workloads()["few-shot"]
    traces.write(path, from_tokens(prompts, 16))
    history = History.of(request.hash_ids for request in traces.load(path, 16))
    assert round(history.max_hits * 16 / sum(map(len, prompts)), 3) == 0.878  # as in the table


def test_dialogues_become_a_trace_by_a_chat_template():
    llm = models.load(models.EMBEDDED)
    first = [{"role": "system", "content": "Be brief. " * 20}, {"role": "user", "content": "Hello"}]
    second = [first[0], {"role": "user", "content": "Good morning"}]
    requests = list(from_tokens(map(llm.chat_messages, [first, second]), 16))
    assert requests[0].input_length == len(llm.chat_messages(first))
    assert History.of(request.hash_ids for request in requests).max_hits > 1


@pytest.mark.parametrize(("prompts", "size", "reason"), [([[]], 4, "without tokens"), ([[1]], 0, "got block size 0")])
def test_prompts_and_sizes_of_nothing_are_errors(prompts, size, reason):
    with pytest.raises(ValueError, match=reason):
        list(from_tokens(prompts, size))


def rate(traffic, **arguments):
    history = History.of(request.hash_ids for request in generate(3000, traffic=traffic, **arguments))
    return history.max_hits / history.num_blocks


def test_made_up_traffic_is_decided_by_its_seed(path):
    assert list(generate(300, seed=1)) == list(generate(300, seed=1)) != list(generate(300, seed=2))


def test_made_up_traffic_is_a_valid_trace(path):
    requests = list(generate(500))
    traces.write(path, requests)
    assert traces.load(path, 512) == requests


def test_more_conversations_that_continue_share_more():
    rates = [rate(Traffic(continues=share)) for share in (0.0, 0.3, 0.6)]
    assert rates == sorted(rates)
    assert rates[0] < 0.2 < 0.4 < rates[2]


def test_longer_gaps_ask_for_a_larger_cache():
    needed = []
    for gap in (20, 100, 400):
        curve = LRUCurve(History.of(request.hash_ids for request in generate(3000, traffic=Traffic(gap=gap))))
        needed.append(curve.needed(curve.hits[-1] / 2))
    assert needed[0] * 8 < needed[1] * 2 < needed[2]


def test_more_skew_makes_one_system_prompt_more_common():
    def most_common(skew):
        first_ids = [request.hash_ids[0] for request in generate(2000, traffic=Traffic(skew=skew, continues=0))]
        return max(first_ids.count(each) for each in set(first_ids)) / len(first_ids)

    assert most_common(0) < 0.08 < 0.2 < most_common(1) < 0.5 < most_common(2)


@pytest.mark.parametrize("wrong", [{"continues": 1.0}, {"gap": 0}, {"num_systems": 0}, {"user_length": 0}])
def test_impossible_traffic_is_an_error(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        Traffic(**wrong)


@pytest.mark.parametrize("name", ["mooncake_conversation.jsonl.gz", "mooncake_synthetic.jsonl.gz"])
def test_the_recorded_traces_have_blocks_of_512_and_no_others(name):
    path = recorded(name)
    assert len(traces.load(path, 512)) == {"c": 12_031, "s": 3_993}[name[9]]
    with pytest.raises(TraceError, match="A block size of 512 would fit"):
        traces.load(path, 256)
