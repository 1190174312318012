"""From answers to a verdict: on the tiny problem, in real children."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from practice.grader.contract import Case, Foreign, Group, Limits, Report, Result, Step
from practice.grader.grade import grade, run_case
from practice.grader.play import parts, play, script
from practice.grader.runner import Runner
from practice.grader.strays import children
from practice.grader.words import Said
from tests.practice import tiny

EXIT = b"import os\n" + tiny.RIGHT
TOO_MANY_CALLS = Case("many", {"limit": 9}, tuple(Step(n, "total") for n in range(50)))


@pytest.fixture
def problem(tmp_path):
    return replace(tiny.problem(tmp_path), limits=Limits(cpu_seconds=0.5))


def verdicts(report: Report) -> list[str]:
    return [case.failure.verdict if case.failure else "AC" for group in report.groups for case in group.cases]


def test_a_right_solution_is_accepted_with_every_answer_verified(problem):
    report = grade(problem, tiny.RIGHT, 0)
    assert (report.verdict, report.points, report.message) == ("AC", 60, "")
    cases = [case for group in report.groups for case in group.cases]
    assert [case.num_verified for case in cases] == [case.num_asked for case in cases] == [3, 3, 42]


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        (tiny.FORGETS_LIMIT, "WA"),
        (tiny.LIST_FOR_TUPLE, "WA"),
        (tiny.RAISES, "RTE"),
        (b"1 / 0", "RTE"),
        (b"raise SystemExit", "RTE"),
        (tiny.RIGHT.replace(b"return sum", b"while True: pass\n        return sum"), "TLE"),
        (tiny.RIGHT.replace(b"return sum", b"bytearray(1 << 40)\n        return sum"), "MLE"),
        (tiny.RIGHT.replace(b"return sum", b"print('x' * 70_000)\n        return sum"), "OLE"),
        (b"class Ledger(:", "CE"),
        (b"class Other: pass", "CE"),
        (b"\xff", "CE"),
        (b"#" * 300_000, "CE"),
        (tiny.STARTER, "UNATTEMPTED"),
    ],
)
def test_each_verdict(problem, source, verdict):
    report = grade(problem, source, 0, tiny.STARTER)
    assert report.verdict == verdict
    assert report.points < 60


def test_a_byte_order_mark_is_no_fault(problem):
    assert grade(problem, b"\xef\xbb\xbf" + tiny.RIGHT, 0).verdict == "AC"


def test_all_cases_are_run_after_a_failure_so_that_points_and_pattern_are_whole(problem):
    report = grade(problem, tiny.FORGETS_LIMIT, 0)
    assert verdicts(report) == ["AC", "WA", "AC"] and report.points == 40
    first = report.first_failure
    assert first and first.case.name == "a full ledger" and (first.num_verified, first.num_asked) == (1, 3)
    assert first.failure and (first.failure.expected, first.failure.got) == (None, (1, 6))
    assert len(first.failure.moves) == 2


def test_speed_is_tested_after_a_failure_but_not_of_an_example(problem):
    problem = replace(problem, groups=tiny.with_speed)
    other, example = grade(problem, tiny.FORGETS_LIMIT, 0), grade(problem, tiny.KEEPS_DROPPED, 0)
    assert other.groups[-1].passed and other.points == 80
    last = example.groups[-1]
    assert (last.cases, last.passed, last.failed) == ((), False, False)
    assert verdicts(example) == ["WA", "AC", "WA"] and example.points == 20


def test_a_late_group_is_played_unless_an_example_fails(problem):
    examples, *others = tiny.groups(0)
    problem = replace(problem, groups=lambda seed: [examples, *(replace(group, late=True) for group in others)])
    other, example = grade(problem, tiny.FORGETS_LIMIT, 0), grade(problem, tiny.KEEPS_DROPPED, 0)
    assert all(result.cases for result in other.groups)
    assert [bool(result.cases) for result in example.groups] == [True, False, False]


@pytest.mark.parametrize(("call", "wait"), [(1, "pass"), (20, "time.sleep(1)"), (300, "pass"), (600, "pass")])
def test_a_large_case_has_time_of_its_own_and_the_same_report_wherever_it_is_up(problem, call, wait):
    large = Case("large", {"limit": 9}, tuple(Step(n, "total") for n in range(600)), cpu_seconds=0.3)
    speed = Group("speed", {}, 10, (large,))
    endless = (
        f"self.n = getattr(self, 'n', 0) + 1\n        while self.limit == 9 and self.n == {call}: {wait}\n        "
    )
    source = b"import time\n" + tiny.RIGHT.replace(b"return sum", endless.encode() + b"return sum")
    examples, *others = tiny.groups(0)
    report = grade(replace(problem, groups=lambda seed: [examples, speed, *others]), source, 0)
    assert verdicts(report) == ["AC", "TLE", "AC", "AC"], "the other cases have theirs"
    first = report.first_failure
    assert first and first.failure and (first.num_verified, first.num_asked, len(first.failure.moves)) == (0, 600, 600)
    assert "more time than this case may take" in first.failure.detail


def test_a_large_case_may_be_played_alone(problem):
    speed = tiny.with_speed(0)[-1]
    assert verdicts(grade(replace(problem, groups=lambda seed: [speed]), tiny.RIGHT, 0)) == ["AC"]


def test_a_large_case_says_which_answer_was_wrong_and_what_was_raised(problem):
    wrong = tiny.RIGHT.replace(b"return sum", b"self.n = getattr(self, 'n', 0) + 1\n        return self.n == 20 or sum")
    large = tiny.with_speed(0)[-1].cases[0]
    failure = run_case(problem, wrong, large).failure
    assert failure and (failure.verdict, len(failure.moves), failure.got) == ("WA", 20, True)
    failure = run_case(problem, tiny.RIGHT.replace(b"return sum", b"raise KeyError(7)\n        sum"), large).failure
    assert failure and failure.verdict == "RTE" and failure.detail.endswith("KeyError: 7")


def test_the_parts_of_a_large_case_give_no_answer_away(problem):
    many = [step for n in range(0, 1200, 2) for step in (tiny.put(n, 1), tiny.put(n + 1, 2))]
    case = Case("large", {"limit": 10**6}, (*many, tiny.drop(1200, 1), tiny.drop(1201, 3), tiny.put(1202, 3)), 9.0)
    together = list(parts(script(case, problem.rules)))
    assert [len(part) for part in together] == [250] * 4 + [203]
    late = replace(case, steps=(*many[:100], tiny.drop(1200, 98), *many[100:120]))
    assert [len(part) for part in parts(script(late, problem.rules))] == [100, 21]
    for part in together:
        made = {move.step.id for move, _ in part}
        assert all(made.isdisjoint(move.step.uses()) for move, _ in part)
    assert run_case(problem, tiny.RIGHT, case).failure is None


@pytest.mark.parametrize("where", ["in a child", "here"])
def test_a_case_may_have_several_objects_and_state_that_they_share_is_wrong(problem, where):
    steps = (tiny.put(0, 1), tiny.other(1, 50), tiny.put(2, 2), replace(tiny.put(3, 40), on=1))
    case = Case("two", {"limit": 9}, steps)

    def failure(source):
        here = where == "here"
        return (play(case, tiny.Rules, tiny.made(source)) if here else run_case(problem, source, case)).failure

    assert failure(tiny.RIGHT) is None
    assert grade(problem, tiny.SHARED_STATE, 0).verdict == "AC", "with one object at a time"
    wrong = failure(tiny.SHARED_STATE)
    assert wrong and (wrong.expected, wrong.got, len(wrong.moves)) == ((1, 3), (0, 2), 3)


def test_an_exception_is_told_with_the_learner_s_own_lines(problem):
    report = grade(problem, tiny.RAISES, 0)
    assert report.first_failure and report.first_failure.failure
    assert report.first_failure.failure.detail == "  line 13, in drop\n    raise KeyError(ticket)\nKeyError: 0"


def test_a_syntax_error_is_told_with_its_line(problem):
    report = grade(problem, b"class Ledger:\n    def put(self:\n        pass\n", 0)
    assert report.message.startswith("SyntaxError: ") and report.message.endswith("line 2\n    def put(self:")
    assert report.groups == ()


def test_a_missing_class_is_named(problem):
    assert "no class Ledger" in grade(problem, b"ledger = 1", 0).message


@pytest.mark.parametrize(
    "source",
    [
        tiny.STARTER.replace(b"class", b"# begun?\n\nclass"),
        b"import math\n" + tiny.STARTER + b"\n    def helper(self):\n        return 1\n",
    ],
)
def test_a_starter_with_comments_and_helpers_is_still_unattempted(problem, source):
    report = grade(problem, source, 0, tiny.STARTER)
    assert (report.verdict, report.message) == ("UNATTEMPTED", "NotImplementedError: 7, step 1: begin")


def test_a_solution_that_comes_further_than_the_starter_is_attempted(problem):
    begun = b"class Ledger:\n    def __init__(self, limit=100):\n        self.limit = limit\n\n"
    put = b"    def put(self, items, tag=None):\n        raise NotImplementedError('7, step 2: put')\n"
    report = grade(problem, begun + put, 0, tiny.STARTER)
    assert report.verdict == "RTE"
    assert report.first_failure and report.first_failure.failure
    assert report.first_failure.failure.detail.endswith("NotImplementedError: 7, step 2: put")


def test_a_wrong_solution_that_raises_not_implemented_later_is_attempted(problem):
    assert (
        grade(problem, tiny.RIGHT.replace(b"del self.held[ticket]", b"raise NotImplementedError"), 0).verdict == "RTE"
    )


def test_the_end_of_the_object_belongs_to_its_own_case(problem):
    source = EXIT + b"\n    def __del__(self):\n        os._exit(0)\n"
    report = grade(problem, source, 0)
    assert verdicts(report) == ["RTE", "RTE", "RTE"]
    assert [case.num_verified for group in report.groups for case in group.cases] == [3, 3, 42]


def test_the_end_of_an_object_that_failed_does_not_fall_into_the_next_case(problem):
    source = (
        EXIT.replace(b"> self.limit", b"> 10 ** 9")
        + b"\n    def __del__(self):\n        self.limit == 5 and os._exit(0)\n"
    )
    assert verdicts(grade(problem, source, 0)) == ["AC", "WA", "AC"]


def test_a_child_that_dies_is_replaced_and_the_other_cases_are_played(problem):
    dies_when_full = EXIT.replace(b"return None", b"os._exit(1)")
    assert verdicts(grade(problem, dies_when_full, 0)) == ["AC", "RTE", "AC"]


def test_after_a_limit_is_used_up_the_other_cases_are_not_run_and_say_so(problem):
    loops_when_full = tiny.RIGHT.replace(b"return None", b"while True: pass")
    report = grade(problem, loops_when_full, 0)
    assert verdicts(report) == ["AC", "TLE", "TLE"]
    last = report.groups[-1].cases[0]
    assert last.failure and "not run" in last.failure.detail and last.num_asked == 42


def test_a_solution_that_dies_in_every_case_is_not_started_for_ever(problem):
    groups = tiny.groups(0)
    many = replace(groups[0], cases=groups[0].cases * 40)
    report = grade(replace(problem, groups=lambda seed: [many]), EXIT.replace(b"del self", b"os._exit(0); del self"), 0)
    details = [case.failure.detail for case in report.groups[0].cases if case.failure]
    assert len(details) == 40 and sum("not run" in detail for detail in details) == 35


def test_what_is_printed_is_in_the_report_and_decides_nothing(problem):
    report = grade(problem, tiny.RIGHT + "\nprint('AC', 'é')\n".encode(), 0)
    assert (report.verdict, report.printed) == ("AC", "AC é\n")
    assert grade(problem, b"print('ACCEPTED')\n" + tiny.FORGETS_LIMIT, 0).verdict == "WA"


@pytest.mark.parametrize(
    "source", [tiny.SEVEN_IS_EIGHT, tiny.RAISES, tiny.RIGHT.replace(b"return None", b"return object()")]
)
def test_the_same_submission_gets_the_same_report(problem, source):
    assert grade(problem, source, 3) == grade(problem, source, 3)


def test_progress_is_told_after_each_case(problem):
    told: list[tuple[int, int]] = []
    grade(problem, tiny.RIGHT, 0, on_progress=lambda *counts: told.append(counts))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("broken", ["groups", "rules", "showcase"])
def test_an_exception_of_the_judge_s_own_is_no_verdict_on_the_learner(problem, broken):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    report = grade(replace(problem, **{broken: fail}), tiny.RIGHT, 0)
    assert report.verdict == "IE" and "ZeroDivisionError: ours" in report.message


def test_a_machine_that_starts_no_child_is_no_verdict_on_the_learner(problem, monkeypatch):
    monkeypatch.setattr("sys._base_executable", "/nonexistent")
    report = grade(problem, tiny.RIGHT, 0)
    assert report.verdict == "IE" and "could not be started" in report.message


def test_a_package_that_is_not_there_is_told_why(problem):
    first = grade(problem, b"import no_such_package\n" + tiny.RIGHT, 0).first_failure
    assert first and first.failure and first.failure.verdict == "RTE"
    detail = first.failure.detail
    assert detail.endswith("No module named 'no_such_package' (only the standard library is there)")
    assert isinstance(detail, Said) and detail.chinese.endswith("（这里只有标准库）")


def test_a_source_that_is_cut_when_read_is_not_told_its_length(problem):
    assert "more than 262144 bytes" in grade(problem, b"#" * 262145, 0).message


def test_the_showcase_is_asked_for_when_accepted_and_only_then(problem):
    case = Case("shown", {"limit": 50}, (tiny.put(0, 4), tiny.drop(1, 0), Step(2, "total")))
    shows = replace(problem, showcase=lambda seed: case)
    assert grade(shows, tiny.RIGHT, 0).showcase == ((0, 4), None, 0)
    assert grade(shows, tiny.FORGETS_LIMIT, 0).showcase is None
    assert grade(problem, tiny.RIGHT, 0).showcase is None


def test_a_runner_plays_case_after_case_in_one_child(problem):
    source = tiny.RIGHT + b"\n    played = 0\n\n    def __init__(self, limit):\n        Ledger.played += 1\n"
    source += b"        self.limit, self.held, self.next = limit - Ledger.played + 1, {}, 0\n"
    full = problem.groups(0)[1].cases[0]
    with Runner(problem, source) as runner:
        assert runner.run(full).failure is None
        assert runner.run(full).failure is not None, "its state outlives the first case"
        runner.restart()
        assert runner.run(full).failure is None, "and not the child"
    assert run_case(problem, source, full).failure is None


def test_a_runner_gives_each_case_the_whole_limits(problem):
    slow = replace(problem, limits=Limits(cpu_seconds=1, output=600))
    source = b"import time\n" + tiny.RIGHT.replace(
        b"return sum",
        b"print('0123456789')\n        until = time.process_time() + 0.008\n"
        b"        while time.process_time() < until: pass\n        return sum",
    )
    with Runner(slow, source) as runner:
        for _ in range(3):  # each takes 0.4 s of CPU and prints 550 bytes
            assert runner.run(TOO_MANY_CALLS).failure is None
            assert len(runner.printed) == 550


def test_a_runner_replaces_a_child_that_has_died(problem):
    example, full = (group.cases[0] for group in problem.groups(0)[:2])
    with Runner(problem, EXIT.replace(b"return None", b"os._exit(0)")) as runner:
        for _ in range(8):
            died = runner.run(full).failure
            assert died and died.verdict == "RTE"
            assert runner.run(example).failure is None


def test_grading_leaves_this_process_as_it_was(problem):
    def state() -> list[object]:
        return [Path.cwd(), dict(os.environ), os.sched_getaffinity(0), children()]

    before = state()
    grade(problem, EXIT.replace(b"return None", b"os._exit(0)"), 0)
    assert state() == before


def test_a_huge_wrong_answer_is_not_kept_whole(problem):
    report = grade(problem, tiny.RIGHT.replace(b"return None", b"return list(range(50_000))"), 0)
    assert report.first_failure and report.first_failure.failure
    got = report.first_failure.failure.got
    assert isinstance(got, Foreign) and got.type_name == "list" and len(got.text) < 400


class Lists:
    """Rules whose results are lists."""

    def take(self, length: int) -> list[int]:
        return list(range(length))

    def give(self, items: list[int]) -> None:
        pass


ONE_LIST = b"""\
class Ledger:
    def __init__(self):
        self.items = []

    def take(self, length):
        self.items[:] = range(length)
        return self.items

    def give(self, items):
        self.items.clear()
"""
TAKE_2, TAKE_3 = Step(0, "take", (2,)), Step(1, "take", (3,))
GIVE_2, GIVE_3 = Step(2, "give", (Result(0),)), Step(3, "give", (Result(1),))


@pytest.mark.parametrize(
    ("steps", "fails_at"),
    [
        ((TAKE_2, TAKE_3), 2),  # refilled
        ((TAKE_2, GIVE_2, TAKE_3, GIVE_3), None),  # what was given back may change
    ],
)
@pytest.mark.parametrize("where", ["in a child", "here"])
def test_a_list_that_was_returned_is_the_caller_s_until_it_is_given_back(problem, steps, fails_at, where):
    lists, case = replace(problem, rules=Lists), Case("lists", {}, steps)
    make = tiny.made(ONE_LIST)
    failure = (run_case(lists, ONE_LIST, case) if where == "in a child" else play(case, Lists, make)).failure
    if fails_at is None:
        assert failure is None
    else:
        assert failure and (failure.verdict, len(failure.moves)) == ("WA", fails_at)
        assert (failure.expected, failure.got) == ([0, 1], [0, 1, 2]), "what it was, and what it has become"
        assert "changed the list" in failure.detail


@pytest.mark.parametrize("result", [{1: 2}, {1}, Limits()])
def test_rules_that_return_no_plain_data_are_the_judge_s_own_fault(problem, result):
    """Else every right solution would be a wrong answer."""
    odd = replace(problem, rules=type("Odd", (tiny.Rules,), {"put": lambda *_, **__: result}))
    assert grade(odd, tiny.RIGHT, 0).verdict == "IE"
