"""The first line of a catalogued solution is read, or refused with a sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from practice.grader.catalogue import catalogued, solutions
from practice.grader.contract import Problem
from practice.grader.problems import load


@pytest.fixture
def problem(tmp_path):
    (tmp_path / "wrong").mkdir()
    return replace(load(131), folder=tmp_path)


def write(problem: Problem, text: str, name: str = "one") -> None:
    (problem.folder / "wrong" / f"{name}.py").write_text(text)


def test_verdict_group_and_diagnosis_are_read_and_solutions_come_by_name(problem):
    write(problem, "# verdict: TLE\n", "two")
    write(problem, "# verdict: WA | group: chain | diagnosis: no_parent\nclass PrefixCache: pass\n")
    one, two = catalogued(problem)
    assert (one.name, one.verdict, one.group, one.diagnosis) == ("one", "WA", "chain", "no_parent")
    assert (two.name, two.verdict, two.group, two.diagnosis) == ("two", "TLE", None, None)
    assert one.make().__name__ == "PrefixCache"


def test_a_folder_that_is_not_there_holds_no_solutions(problem):
    assert solutions(problem, "right") == []


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("class PrefixCache:", "the first line must be like"),
        ("# verdict: WRONG", "the verdict is 'WRONG'; it must be one of AC, WA"),
        ("# group: chain", "the verdict is ''"),
        ("# verdict: WA | diagnosis: no_parents", "no diagnosis 'no_parents'"),
        ("# verdict: WA | gruop: chain", "names gruop; it may name verdict, group and diagnosis"),
    ],
)
def test_a_first_line_that_is_wrong_is_refused_naming_the_file(problem, line, sentence):
    write(problem, line + "\n")
    with pytest.raises(ValueError, match=rf"one\.py: .*{sentence}"):
        catalogued(problem)
