"""A case as Python source: what is written is read back as the same case."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from practice.grader.case_text import calls, read, shown
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


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner)
    )
)
def test_a_value_is_shown_as_python_writes_it(value: object) -> None:
    assert ast.literal_eval(shown(value, None)) == value


def test_a_long_list_is_cut_in_the_middle() -> None:
    assert shown(list(range(1000)), 8) == "[0, 1, ... +996 ..., 998, 999]"
