"""The judge's benchmark runs the judge and reads what it took; how long that was is not asserted."""

from __future__ import annotations

import pytest

from tests.bench import judge


def test_a_row_holds_the_time_and_the_memory_of_the_judge_alone():
    row = judge.judge_row("tiny", "wrong/list_for_tuple.py", 1, "0.5 s", rounds=1)
    assert row.microseconds.keys() == {"handbook"} and row.times_faster is None
    assert row.microseconds["handbook"] > 10_000
    assert 5 < row.facts["peak MB"] < 100


def test_a_judge_that_says_something_else_is_no_benchmark():
    with pytest.raises(AssertionError, match="ended with 1"):
        judge.judge_row("tiny", "wrong/list_for_tuple.py", 0, "0.5 s", rounds=1)
