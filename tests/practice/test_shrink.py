"""Shrinking: small, still failing in the same way, within its bounds, and the same each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from practice.grader.contract import MAKE, Case, CaseResult, Failure, Problem, Result
from practice.grader.play import play, script
from practice.grader.shrink import kind, shrink
from tests.practice import tiny


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return tiny.problem(tmp_path)


def smallest(problem: Problem, source: bytes, case: Case | None = None) -> CaseResult:
    runner = tiny.Runner(problem, source)
    result = tiny.failed(problem, source) if case is None else runner.run(case)
    return shrink(result, problem, runner.run)


def test_a_long_case_shrinks_to_the_one_call_that_matters(problem: Problem) -> None:
    small = smallest(problem, tiny.SEVEN_IS_EIGHT)
    assert [(step.method, step.args, step.kwargs) for step in small.case.steps] == [("put", ([7],), {})]
    assert small.case.parameters == {}


def test_the_shrunk_case_fails_in_the_same_way(problem: Problem) -> None:
    for source in (tiny.FORGETS_LIMIT, tiny.KEEPS_DROPPED, tiny.RAISES, tiny.LIST_FOR_TUPLE):
        small = smallest(problem, source)
        assert kind(play(small.case, problem.rules, tiny.made(source))) == kind(tiny.failed(problem, source))


def test_a_step_goes_with_the_one_whose_result_it_takes(problem: Problem) -> None:
    steps = (tiny.put(0, 1), tiny.put(1, 2), tiny.drop(2, 1), tiny.drop(3, 0), tiny.put(4, 3, 7))
    small = smallest(problem, tiny.SEVEN_IS_EIGHT, Case("c", {}, steps))
    made = {step.id for step in small.case.steps}
    assert all(used in made for step in small.case.steps for used in step.uses())
    assert len(made) == 1


def test_a_step_that_the_failure_needs_stays(problem: Problem) -> None:
    small = smallest(problem, tiny.KEEPS_DROPPED)
    assert [step.method for step in small.case.steps] == ["put", "drop", "put"]
    assert small.case.steps[1].args == (Result(small.case.steps[0].id, 0),)


def test_all_objects_of_a_case_keep_the_same_parameters(problem: Problem) -> None:
    steps = (tiny.put(0, 1), tiny.put(1, 1), tiny.other(2, 50), replace(tiny.put(3, 5), on=2), tiny.put(4, 2))
    small = smallest(problem, tiny.SHARED_STATE, Case("c", {"limit": 50}, steps))
    others = [step for step in small.case.steps if step.method == MAKE]
    assert [step.kwargs for step in others] == [small.case.parameters]
    assert small.case.parameters != {"limit": 50}


def test_the_rules_accept_every_case_that_is_tried(problem: Problem) -> None:
    tried: list[Case] = []
    runner = tiny.Runner(problem, tiny.SEVEN_IS_EIGHT)

    def run(case: Case) -> CaseResult:
        tried.append(case)
        return runner.run(case)

    shrink(tiny.failed(problem, tiny.SEVEN_IS_EIGHT), problem, run)
    assert tried
    for case in tried:
        assert list(script(case, problem.rules))  # raises where the rules raise: an empty list, a limit below 1


def test_large_numbers_become_small_ones_where_they_do_not_matter(problem: Problem) -> None:
    big = 10**12
    case = Case("c", {"limit": 10**15}, (tiny.put(0, big, big + 1, big), tiny.put(1, big + 2), tiny.put(2, 7, big)))
    small = smallest(problem, tiny.SEVEN_IS_EIGHT, case)
    assert max(item for step in small.case.steps for item in step.args[0]) == 7


def test_a_wrong_value_is_another_kind_of_failure_than_a_wrong_none() -> None:
    case = Case("c", {}, (tiny.put(0, 1),))
    moves = (next(script(case, tiny.Rules))[0],)
    pairs = [((0, 1), (0, 2)), ((0, 1), None), (None, (0, 1))]
    kinds = {kind(CaseResult(case, 0, 1, Failure("WA", moves, expected, got))) for expected, got in pairs}
    assert len(kinds) == 3
    assert kind(CaseResult(case, 0, 1, Failure("WA", moves, (5, 5), (6, 6)))) in kinds


def test_the_number_of_trials_is_bounded(problem: Problem) -> None:
    runner, trials = tiny.Runner(problem, tiny.SEVEN_IS_EIGHT), list[Case]()

    def run(case: Case) -> CaseResult:
        trials.append(case)
        return runner.run(case)

    shrink(tiny.failed(problem, tiny.SEVEN_IS_EIGHT), problem, run, trials=5)
    assert len(trials) == 5


def test_a_large_case_is_tried_a_few_times_only(problem: Problem) -> None:
    steps = (*(tiny.put(n, *range(100, 3100)) for n in range(20)), tiny.put(20, 7))
    runner, trials = tiny.Runner(problem, tiny.SEVEN_IS_EIGHT), list[Case]()

    def run(case: Case) -> CaseResult:
        trials.append(case)
        return CaseResult(case, 0, 0, None)  # nothing fails any more

    shrink(runner.run(Case("c", {"limit": 10**9}, steps)), problem, run)
    assert len(trials) < 10


def test_a_candidate_that_reaches_a_limit_ends_the_search(problem: Problem) -> None:
    result, trials = tiny.failed(problem, tiny.SEVEN_IS_EIGHT), list[Case]()

    def run(case: Case) -> CaseResult:
        trials.append(case)
        return tiny.limit_reached(case)

    assert shrink(result, problem, run).failure == result.failure
    assert len(trials) == 1


def test_what_reached_a_limit_is_not_shrunk(problem: Problem) -> None:
    result = tiny.limit_reached(problem.groups(0)[0].cases[0])
    assert shrink(result, problem, lambda case: pytest.fail("tried")) is result


def test_an_object_that_cannot_be_made_leaves_nothing_to_shrink(problem: Problem) -> None:
    failure = Failure("RTE", (), None, detail="ValueError: no")
    result = CaseResult(problem.groups(0)[0].cases[0], 0, 3, failure)
    assert shrink(result, problem, lambda case: pytest.fail("tried")) is result


def test_shrinking_twice_gives_the_same_case(problem: Problem) -> None:
    assert smallest(problem, tiny.SEVEN_IS_EIGHT) == smallest(problem, tiny.SEVEN_IS_EIGHT)
