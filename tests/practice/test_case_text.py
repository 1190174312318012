"""A case as Python source: what is written is read back as the same case."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from practice.grader.case_text import CaseError, calls, read, shown
from practice.grader.contract import Case, Step
from practice.grader.play import script
from tests.practice import tiny

numbers = st.integers(0, 30)
items = st.lists(numbers, min_size=1, max_size=4)


@st.composite
def cases(draw: Any) -> Case:
    steps: list[Step] = []
    held: list[int] = []
    for number in range(draw(st.integers(1, 8))):
        if held and draw(st.booleans()):
            steps.append(tiny.drop(number, held.pop()))
        else:
            tag = draw(st.dictionaries(st.just("tag"), numbers, max_size=1))
            steps.append(tiny.put(number, *draw(items), **tag))
            held.append(number)
    return Case("c", draw(st.dictionaries(st.just("limit"), st.integers(1, 60))), tuple(steps))


@given(cases())
def test_a_case_that_is_written_and_read_makes_the_same_calls(case: Case) -> None:
    problem = tiny.problem(Path("/nowhere"), texts=False)
    pairs = list(script(case, problem.rules))
    steps = [move.step for move, _ in pairs]
    again = read(problem, "; ".join(calls(problem, case.parameters, steps)))
    assert [(move.step.method, move.args, move.kwargs, value) for move, value in pairs] == [
        (move.step.method, move.args, move.kwargs, value) for move, value in script(again, problem.rules)
    ]
    assert dict(again.parameters) == dict(case.parameters)


def test_another_object_has_a_name_of_its_own() -> None:
    problem = tiny.problem(Path("/nowhere"), texts=False)
    steps = (
        tiny.put(0, 1),
        tiny.other(1, 5),
        replace(tiny.put(2, 3), on=1),
        replace(tiny.drop(3, 2), on=1),
        tiny.other(4, 6),
    )
    lines = calls(problem, {"limit": 9}, steps)
    assert lines == [
        "ledger = Ledger(limit=9)", "ledger.put([1])", "other = Ledger(limit=5)", "t1 = other.put([3])",
        "other.drop(t1[0])", "other2 = Ledger(limit=6)",
    ]  # fmt: skip
    again = read(problem, "; ".join(lines))
    assert calls(problem, again.parameters, again.steps) == lines
    with pytest.raises(CaseError, match="case_not_on_object"):
        read(problem, "ledger = Ledger(); third.put([1])")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner)
    )
)
def test_a_value_is_shown_as_python_writes_it(value: object) -> None:
    assert ast.literal_eval(shown(value, None)) == value


def test_a_long_list_is_cut_in_the_middle() -> None:
    assert shown(list(range(1000)), 8) == "[0, 1, ... +996 ..., 998, 999]"
