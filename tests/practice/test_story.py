"""The story of a failure: its calls, the rules' state around the last one, what came back, and where it is seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from practice.grader.contract import CaseResult, Failure, Foreign, Problem
from practice.grader.diagnose import Diagnostician
from practice.grader.explain import Explained, explain, smallest
from practice.grader.story import tell
from tests.practice import tiny

# Wrong only from the second object on: what is held belongs to the class.
SHARED = tiny.RIGHT.replace(b"self.limit, self.held, self.next = limit, {}, 0", b"self.limit = limit").replace(
    b"class Ledger:", b"class Ledger:\n    held, next = {}, 0"
)


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return tiny.problem(tmp_path)


@pytest.fixture(autouse=True)
def without_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("practice.grader.explain.Runner", tiny.Runner)


def explained(problem: Problem, source: bytes) -> Explained:
    return explain(tiny.grade(problem, source, 0), source, Diagnostician(problem, ()))


def test_the_calls_are_python_with_names_for_what_is_used_later(problem: Problem) -> None:
    story = explained(problem, tiny.KEEPS_DROPPED).story
    assert story is not None
    assert story.calls == ("ledger = Ledger()", "t1 = ledger.put([1])", "ledger.drop(t1[0])", "ledger.put([2])")
    assert (story.expected, story.got) == ("(1, 2)", "(1, 3)")


def test_the_tables_are_the_rules_state_before_and_after_the_last_call(problem: Problem) -> None:
    story = explained(problem, tiny.KEEPS_DROPPED).story
    assert story is not None
    assert [table.rows for table in story.before] == [(), (("0",),)]
    assert [table.rows for table in story.after] == [(("1", "[2]"),), (("2",),)]


def test_types_are_told_apart_only_where_that_is_what_differs(problem: Problem) -> None:
    for source, types in ((tiny.LIST_FOR_TUPLE, ("tuple", "list")), (tiny.KEEPS_DROPPED, None)):
        story = explained(problem, source).story
        assert story is not None
        assert story.types == types
    story = explained(problem, tiny.FORGETS_LIMIT).story
    assert story is not None
    assert story.types is None, "None for a tuple is no confusion of types"


def test_a_returned_value_that_is_no_plain_data_is_shown_by_type_and_text(problem: Problem) -> None:
    result = tiny.failed(problem, tiny.KEEPS_DROPPED)
    assert result.failure is not None
    strange = replace(result, failure=replace(result.failure, got=Foreign("Always", "<equal to all>")))
    story = tell(strange, problem, strange)
    assert story.got == "Always: <equal to all>"
    assert story.types == ("tuple", "Always")
    inside = replace(result, failure=replace(result.failure, got=([Foreign("Int", "3")], 0)))
    assert tell(inside, problem, inside).got == "([<Int: 3>], 0)"


def test_an_object_that_cannot_be_made_has_a_story_without_calls(problem: Problem) -> None:
    case = problem.groups(0)[0].cases[0]
    result = CaseResult(case, 0, 3, Failure("RTE", (), None, detail="ValueError: no"))
    story = tell(result, problem, result)
    assert (story.calls, story.expected, story.replay) == (("ledger = Ledger(limit=20)",), None, None)


def test_a_story_too_long_for_a_command_line_has_no_replay_by_calls(problem: Problem) -> None:
    case = replace(problem.groups(0)[0].cases[0], steps=(tiny.put(0, *range(1000), 7),), parameters={"limit": 10**9})
    result = tiny.Runner(problem, tiny.SEVEN_IS_EIGHT).run(case)
    assert tell(result, problem, result).replay is None


def test_a_failure_that_needs_the_cases_before_it_is_told_whole_and_as_such(problem: Problem) -> None:
    found = explained(problem, SHARED)
    assert found.story is not None
    assert not found.alone
    assert not found.story.shrunk


def test_a_failure_that_is_its_own_is_seen_in_a_fresh_child(problem: Problem) -> None:
    small, alone = smallest(tiny.failed(problem, tiny.KEEPS_DROPPED), problem, tiny.KEEPS_DROPPED)
    assert alone
    assert tiny.Runner(problem, tiny.KEEPS_DROPPED).run(small.case).failure == small.failure


def test_the_starter_needs_no_explanation(problem: Problem) -> None:
    report = replace(tiny.grade(problem, tiny.RAISES, 0), verdict="UNATTEMPTED")
    assert explain(report, tiny.RAISES, Diagnostician(problem, ())) == Explained(report)


def test_a_pass_needs_no_explanation(problem: Problem) -> None:
    assert explained(problem, tiny.RIGHT).story is None


def test_a_search_that_runs_out_of_time_is_given_up_wherever_it_was(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = tiny.failed(problem, tiny.SEVEN_IS_EIGHT)
    for seconds in (1.0, 3.0):  # a trial on two machines
        monkeypatch.setattr("practice.grader.explain.monotonic", map(seconds.__mul__, count()).__next__)
        assert smallest(result, problem, tiny.SEVEN_IS_EIGHT) == (result, True)


def test_a_trial_has_little_time_and_the_replay_all_of_it(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    class Runner(tiny.Runner):
        def run(self, case):
            given.append(self.problem.limits.cpu_seconds)
            return super().run(case)

    monkeypatch.setattr("practice.grader.explain.Runner", Runner)
    smallest(tiny.failed(problem, tiny.KEEPS_DROPPED), problem, tiny.KEEPS_DROPPED)
    assert given == [0.4] * (len(given) - 1) + [problem.limits.cpu_seconds]
