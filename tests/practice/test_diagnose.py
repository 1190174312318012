"""The diagnosis: named when exactly one known misconception behaves like the solution, and never a guess."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from practice.grader.contract import Diagnosis, GroupResult, Problem, Report
from practice.grader.diagnose import Diagnostician
from tests.practice import tiny


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return tiny.problem(tmp_path)


def diagnosis(problem: Problem, source: bytes, catalogue: tuple[tiny.Wrong, ...] = tiny.CATALOGUE) -> Diagnosis | None:
    return Diagnostician(problem, catalogue).diagnose(tiny.grade(problem, source, 0))


def test_a_catalogued_solution_gets_its_own_diagnosis(problem: Problem) -> None:
    for wrong in tiny.CATALOGUE[:2]:
        assert wrong.diagnosis is not None
        assert diagnosis(problem, wrong.source) == problem.diagnoses[wrong.diagnosis]


def test_a_solution_that_looks_different_and_behaves_alike_gets_the_diagnosis(problem: Problem) -> None:
    other = tiny.RIGHT.replace(b"del self.held[ticket]", b"return None")
    assert diagnosis(problem, other) == problem.diagnoses["never-drops"]


def test_nothing_is_said_of_an_unknown_mistake(problem: Problem) -> None:
    assert diagnosis(problem, tiny.SEVEN_IS_EIGHT) is None
    assert diagnosis(problem, tiny.RAISES) is None


def test_nothing_is_said_of_a_pass(problem: Problem) -> None:
    assert diagnosis(problem, tiny.RIGHT) is None


def test_nothing_is_said_where_two_misconceptions_fit(problem: Problem) -> None:
    twin = replace(tiny.CATALOGUE[0], name="twin", diagnosis="slow")
    assert diagnosis(problem, tiny.FORGETS_LIMIT, (*tiny.CATALOGUE, twin)) is None


def test_nothing_is_said_where_one_that_fits_has_no_diagnosis(problem: Problem) -> None:
    twin = replace(tiny.CATALOGUE[0], name="twin", diagnosis=None)
    assert diagnosis(problem, tiny.FORGETS_LIMIT, (*tiny.CATALOGUE, twin)) is None


def test_two_that_fit_and_carry_the_same_diagnosis_name_it(problem: Problem) -> None:
    twin = replace(tiny.CATALOGUE[0], name="twin")
    assert diagnosis(problem, tiny.FORGETS_LIMIT, (*tiny.CATALOGUE, twin)) == problem.diagnoses["no-limit"]


def test_a_second_mistake_later_on_does_not_hide_the_first(problem: Problem) -> None:
    both = tiny.KEEPS_DROPPED.replace(b"list(items)", b"[8 if item == 7 else item for item in items]")
    assert diagnosis(problem, both) == problem.diagnoses["never-drops"]


def test_a_misconception_that_fails_what_the_solution_passes_is_not_its_own(problem: Problem) -> None:
    # Like never dropping in the first example, and right everywhere else.
    source = tiny.KEEPS_DROPPED.replace(b"pass", b"self.limit == 20 or self.held.pop(ticket)")
    report = tiny.grade(problem, source, 0)
    assert [group.passed for group in report.groups] == [False, True, True]
    assert diagnosis(problem, source) is None


def test_of_two_partial_explanations_the_one_that_says_more_counts(problem: Problem) -> None:
    first_only = tiny.KEEPS_DROPPED.replace(b"pass", b"self.limit == 20 or self.held.pop(ticket)")
    less = tiny.Wrong("wrong in the example alone", first_only, "slow")
    both = tiny.KEEPS_DROPPED.replace(b"> self.limit", b"> 10 ** 9")
    assert diagnosis(problem, both, (less, *tiny.CATALOGUE)) == problem.diagnoses["never-drops"]


def test_a_limit_that_is_reached_later_does_not_hide_a_wrong_answer(problem: Problem) -> None:
    report = tiny.grade(problem, tiny.KEEPS_DROPPED, 0)
    slow = GroupResult(report.groups[2].group, too_slow(problem, 2).groups[2].cases)
    report = replace(report, groups=(*report.groups[:2], slow))
    assert Diagnostician(problem, tiny.CATALOGUE).diagnose(report) == problem.diagnoses["never-drops"]


def too_slow(problem: Problem, *groups: int) -> Report:
    report = tiny.grade(problem, tiny.RIGHT, 0)
    results = list(report.groups)
    for index in groups:
        cases = tuple(tiny.limit_reached(case.case) for case in results[index].cases)
        results[index] = GroupResult(results[index].group, cases)
    return replace(report, verdict="TLE", groups=tuple(results))


def test_only_the_large_case_too_slow_means_the_wrong_complexity(problem: Problem) -> None:
    assert Diagnostician(problem, tiny.CATALOGUE).diagnose(too_slow(problem, 2)) == problem.diagnoses["slow"]


def test_an_endless_loop_in_an_example_is_no_question_of_complexity(problem: Problem) -> None:
    assert Diagnostician(problem, tiny.CATALOGUE).diagnose(too_slow(problem, 0, 1, 2)) is None
    assert Diagnostician(problem, tiny.CATALOGUE).diagnose(too_slow(problem, 0)) is None


def test_a_misconception_that_explains_the_first_failure_and_few_others_is_not_named(problem: Problem) -> None:
    # Never dropping explains the first example; the other two cases go wrong in another way.
    source = tiny.KEEPS_DROPPED.replace(b"1, self.total()", b"1, self.total() if self.limit == 20 else -1")
    assert [group.failed for group in tiny.grade(problem, source, 0).groups] == [True, True, True]
    assert diagnosis(problem, source) is None


def test_a_misconception_that_does_not_fail_the_story_in_the_same_way_is_not_named(problem: Problem) -> None:
    report = tiny.grade(problem, tiny.KEEPS_DROPPED, 0)
    diagnostician = Diagnostician(problem, tiny.CATALOGUE)
    told = report.first_failure
    assert told is not None and told.failure is not None
    assert diagnostician.diagnose(report, told) == problem.diagnoses["never-drops"]
    other = replace(told, failure=replace(told.failure, got=(7, 7)))
    assert diagnostician.diagnose(report, other) is None
