"""The command: its verbs, options, exit statuses and where its words go."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from practice.grader import command, request, verbs
from practice.grader.contract import Report
from practice.grader.doctor import Finding
from practice.grader.learner import Learner
from practice.grader.problems import folders, load
from practice.grader.report import Asked
from practice.grader.verify import Checked, Verification
from practice.grader.words import Words
from tests.practice import tiny

ROOT = Path(__file__).parents[2]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture) -> Run:
    tiny.install(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["practice/judge.py"])
    monkeypatch.setattr(sys, "executable", "/usr/bin/python")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = command.main(arguments)
        return status, *capsys.readouterr()

    return run


def solve(source: bytes, name: str = "solutions/7.py") -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_bytes(source)


def test_the_list_names_each_problem_with_its_best_score_and_the_next_step(judge: Run) -> None:
    solve(tiny.FORGETS_LIMIT)
    assert "not tried" in judge()[1]
    judge("7")
    status, out, _ = judge()
    assert status == 0
    assert "A ledger  easy        00_tiny  40/60" in out
    assert "python practice/judge.py show 7" in out


def test_a_pass_is_status_0_and_stays_a_pass(judge: Run) -> None:
    solve(tiny.RIGHT)
    assert judge("7")[0] == 0
    solve(tiny.RAISES)
    assert judge("7")[0] == 1
    assert "passed" in judge()[1]
    assert "You have passed every problem." in judge("next")[1]


def test_the_first_use_makes_the_file_from_the_starter_and_says_where(judge: Run) -> None:
    status, out, _ = judge("7")
    assert Path("solutions/7.py").read_bytes() == tiny.STARTER
    assert status == 1
    assert f"Made from the starter: {Path('solutions/7.py')}" in out
    assert "UNATTEMPTED" in out


def test_another_file_and_standard_input_are_graded_like_ones_own(judge: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    solve(tiny.FORGETS_LIMIT, "my solution.py")
    status, out, _ = judge("7", "my solution.py")
    assert status == 1
    assert "python practice/judge.py 7 'my solution.py' --case" in out, "the replay names the file"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(tiny.RIGHT)))
    assert judge("7", "-")[0] == 0
    assert not Path("solutions/7.py").exists(), "the learner's own file is not made for nothing"
    assert "not tried" in judge()[1], "and what is not the learner's own is no progress of theirs"


def test_the_replay_command_of_a_story_plays_exactly_that_story(judge: Run) -> None:
    solve(tiny.KEEPS_DROPPED)
    story = json.loads(judge("7", "--json")[1])["story"]
    calls = story["replay"].partition('--case "')[2].rstrip('"')
    status, out, _ = judge("7", "--case", calls, "--json")
    again = json.loads(out)
    assert status == 1
    assert again["story"]["calls"] == story["calls"]
    assert (again["story"]["expected"], again["story"]["got"]) == (story["expected"], story["got"])
    assert again["story"]["replay"] == story["replay"]
    solve(tiny.RIGHT)
    assert judge("7", "--case", calls)[0] == 0


def test_a_replay_gives_no_score(judge: Run) -> None:
    solve(tiny.RIGHT)
    judge("7", "--case", "ledger = Ledger(); ledger.put([1])")
    assert "not tried" in judge()[1]


def test_a_case_can_be_played_by_its_name(judge: Run) -> None:
    solve(tiny.FORGETS_LIMIT)
    assert judge("7", "--case", "a full ledger")[0] == 1
    assert judge("7", "--case", "an example")[0] == 0
    assert judge("7", "--case", "一个例子", "--lang", "zh")[0] == 0


@pytest.mark.parametrize(
    ("calls", "sentence"),
    [
        ("ledger = Ledger(", "is no Python"),
        ("ledger = Other(); ledger.put([1])", "starts with making the object"),
        ("ledger = Ledger(); other.put([1])", "calls no method of ledger"),
        ("ledger = Ledger(); ledger.tables()", "there is no method tables"),
        ("ledger = Ledger(); ledger.put(open)", "neither plain data nor an earlier result"),
        ("ledger = Ledger(limit=0); ledger.put([1])", "refuse statement 1"),
        ("ledger = Ledger(size=3); ledger.put([1])", "refuse statement 1"),
        ("ledger = Ledger(); ledger.put([])", "refuse statement 2"),
        ("ledger = Ledger(); t1 = 3", "statement 2 is no call"),
        ("ledger = Ledger()", "makes no call"),
        ("nothing", "no case named"),
    ],
)
def test_calls_that_are_no_case_are_refused_with_the_reason(judge: Run, calls: str, sentence: str) -> None:
    solve(tiny.RIGHT)
    status, out, err = judge("7", "--case", calls)
    assert (status, out) == (2, "")
    assert sentence in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["8"], ["foo"], ["7", "a.py"], ["show"], ["show", "x"], ["7", "a", "b"], ["--nothing"], ["7", "--seed"],
        ["7", "--seed", "x"], ["--lang", "fr"], ["show", "7", "--seed", "1"], ["hint", "7", "9"], ["hint", "7", "2"],
        ["hint", "7", "x"], ["grade", "7", "nowhere"], ["grade", "7", "."], ["solution", "7"],
    ],
)  # fmt: skip
def test_a_wrong_command_is_status_2_and_a_sentence_on_standard_error(judge: Run, arguments: list[str]) -> None:
    status, out, err = judge(*arguments)
    assert (status, out) == (2, "")
    assert err.strip().endswith("python practice/judge.py --help for what there is.")
    assert "Traceback" not in err
    status, out, err = judge(*arguments, "--json")
    assert (status, err) == (2, "")
    assert json.loads(out)["status"] == 2


@pytest.mark.parametrize(
    "arguments",
    [[], ["7"], ["show", "7"], ["hint", "7"], ["solution", "7", "--spoil"], ["reset", "7"], ["all"], ["next"],
     ["grade", "7", "class"], ["--help"]],
)  # fmt: skip
def test_with_json_standard_output_is_one_object_and_nothing_else(judge: Run, arguments: list[str]) -> None:
    solve(tiny.KEEPS_DROPPED)
    solve(tiny.RIGHT, "class/a.py")
    _, out, err = judge(*arguments, "--json")
    assert isinstance(json.loads(out), dict)
    assert err == ""


def test_the_same_solution_with_the_same_seed_gives_the_same_report_byte_for_byte(judge: Run) -> None:
    solve(tiny.SEVEN_IS_EIGHT)
    assert judge("7", "--seed", "3") == judge("7", "--seed=3")
    assert judge("7", "--json") == judge("7", "--json")


def test_the_language_is_that_of_the_system_unless_it_is_chosen(judge: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "State it." in judge("show", "7")[1]
    assert "题目在此。" in judge("show", "7", "--lang", "zh")[1]
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert "题目在此。" in judge("show", "7")[1]
    assert "没有第 9 题" in judge("show", "9")[2]


def test_hints_come_one_at_a_time(judge: Run) -> None:
    assert "First" in judge("hint", "7")[1]
    assert "Second" in judge("hint", "7")[1]
    last = judge("hint", "7")[1]
    assert "Second" in last
    assert "last hint" in last
    assert "First" in judge("hint", "7", "1")[1]


def test_the_reference_opens_after_a_pass_or_when_asked_twice(judge: Run) -> None:
    assert judge("solution", "7")[0] == 2
    assert "class Ledger" in judge("solution", "7", "--spoil")[1]
    solve(tiny.RIGHT)
    judge("7")
    assert "class Ledger" in judge("solution", "7")[1]


def test_reset_keeps_the_file_under_a_name_that_it_tells(judge: Run) -> None:
    solve(b"my work")
    _, out, _ = judge("reset", "7")
    kept = Path("solutions/earlier/7-1.py")
    assert kept.read_bytes() == b"my work"
    assert str(kept) in out
    assert Path("solutions/7.py").read_bytes() == tiny.STARTER
    solve(b"other work")
    judge("reset", "7")
    assert Path("solutions/earlier/7-2.py").read_bytes() == b"other work"
    assert kept.read_bytes() == b"my work"


def test_watch_answers_at_every_save_and_ends_at_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.install(monkeypatch, tmp_path)
    learner, answers = Learner(), list[request.Answer]()
    saves = [tiny.RAISES, tiny.RAISES, tiny.RIGHT]

    def wait() -> None:
        if not saves:
            raise KeyboardInterrupt
        learner.path(7).write_bytes(saves.pop(0))

    asked = request.Request(Words("en"), Asked(), learner, 0, show=answers.append, wait=wait)
    assert verbs.watch(asked, "7").status == 0
    assert [answer.data.get("verdict") for answer in answers] == [None, "UNATTEMPTED", "RTE", "AC"]


def test_watching_has_no_json(judge: Run) -> None:
    assert judge("watch", "7", "--json")[0] == 2


def test_doctor_tells_what_is_active_and_what_is_not(judge: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [Finding("no network", True, "refused"), Finding("no files", False, "it was written")]
    monkeypatch.setattr("practice.grader.doctor.doctor", lambda: findings)
    rows = judge("doctor")[1].split("\n")
    assert any("no network" in row and " active" in row and "NOT" not in row for row in rows)
    assert any("no files" in row and "NOT active" in row for row in rows)
    assert json.loads(judge("doctor", "--json")[1])["findings"][1]["active"] is False


@pytest.mark.parametrize(("fault", "status"), [("", 0), ("it passes", 3)])
def test_verify_shows_where_each_wrong_solution_differs(
    judge: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, status: int
) -> None:
    problem = tiny.problem(tmp_path)
    wrong = Checked("wrong/a", "WA", ("limit",), None, fault, tiny.failed(problem, tiny.FORGETS_LIMIT))
    verification = Verification(problem, 0, (wrong,))
    monkeypatch.setattr("practice.grader.verify.verify", lambda *_: verification)
    assert judge("verify")[0] == status
    content = json.loads(judge("verify", "7", "--json")[1])
    assert content["solutions"][0]["differs"] == ["ledger = Ledger(limit=5)", "ledger.put([3])", "ledger.put([3])"]
    assert content["faults"] == ([f"7 wrong/a: {fault}"] if fault else [])


def test_the_judges_own_fault_is_status_3(judge: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    solve(tiny.RIGHT)
    monkeypatch.setattr("practice.grader.learner.grade", lambda problem, *_: Report(problem, "IE", 0, message="broken"))
    assert judge("7")[0] == 3
    monkeypatch.setattr("practice.grader.learner.grade", lambda *_: 1 / 0)
    status, out, err = judge("7")
    assert (status, out) == (3, "")
    assert "the judge itself failed: ZeroDivisionError" in err


def test_what_a_solution_prints_cannot_steer_the_terminal(judge: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def grade(problem, source, seed, *_):
        report = tiny.grade(problem, source, seed)
        report.printed = "a\x1b[31mred\ud800\u202ereversed\r\n"
        return report

    monkeypatch.setattr("practice.grader.learner.grade", grade)
    solve(tiny.RIGHT)
    assert r"a\x1b[31mred\ud800\u202ereversed\r" in judge("7")[1]


def test_a_folder_for_solutions_that_cannot_be_is_a_sentence(judge: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a_file").write_bytes(b"")
    monkeypatch.setenv("PRACTICE_SOLUTIONS", "a_file")
    for arguments in (["7"], ["hint", "7"], ["reset", "7"]):
        status, out, err = judge(*arguments)
        assert (status, out) == (2, "")
        assert "the system refuses what is needed here" in err
        assert "Traceback" not in err


REFERENCE = next((ROOT / "practice" / "problems").glob("131_*")) / "reference.py"


def in_a_shell(command: str, folder: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PRACTICE_SOLUTIONS": str(folder / "solutions")}
    return subprocess.run(command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_the_printed_command_typed_into_a_shell_replays_the_story(tmp_path: Path) -> None:
    source = REFERENCE.read_text(encoding="utf-8")
    (tmp_path / "my file.py").write_text(source.replace("repr(lora_id)", "repr(None)"), encoding="utf-8")
    judge = f"{sys.executable} practice/judge.py 131 '{tmp_path}/my file.py' --lang en"
    first, second = in_a_shell(judge, tmp_path), in_a_shell(judge, tmp_path)
    assert (first.returncode, first.stderr) == (1, "")
    assert first.stdout == second.stdout, "another process gives the same report, byte for byte"
    assert "the adapter is not in the key" in first.stdout
    replay = next(row.strip() for row in first.stdout.split("\n") if "--case" in row)
    python, _, rest = replay.partition(" ")
    again = in_a_shell(f"{Path(sys.executable).parent / python} {rest} --lang en", tmp_path)
    assert again.returncode == 1
    calls = [row for row in first.stdout.split("\n") if row.startswith(("    cache", "  > cache", "  expected"))]
    assert len(calls) >= 3
    for row in calls:
        assert row in again.stdout


@pytest.mark.parametrize(
    ("redirected", "sentence"),
    [
        (f"{REFERENCE} >&-", "standard output is closed"),
        (f"{REFERENCE} > /dev/full", "No space left"),
        (f"{REFERENCE} --json > /dev/full", "No space left"),
        ("- <&-", "standard input is closed"),
    ],
)
def test_a_standard_file_that_is_closed_or_full_is_a_sentence(tmp_path: Path, redirected: str, sentence: str) -> None:
    done = in_a_shell(f"{sys.executable} practice/judge.py 131 --lang en {redirected}", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_it_runs_in_a_folder_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    judge = f"{sys.executable} {ROOT}/practice/judge.py 131 {REFERENCE} --lang en"
    done = in_a_shell(f"cd {tmp_path}/gone; rmdir {tmp_path}/gone; {judge}", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_reference_is_accepted(tmp_path: Path) -> None:
    done = in_a_shell(f"{sys.executable} practice/judge.py 131 {REFERENCE} --json", tmp_path)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "AC")


def test_every_problem_has_its_texts_in_both_languages() -> None:
    for number in folders():
        problem = load(number)
        for language in ("en", "zh"):
            assert problem.statement(language)
            assert len(problem.hints(language)) == 3
            assert all(problem.hints(language))


def test_it_runs_from_any_folder_with_nothing_installed(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PRACTICE_SOLUTIONS": str(tmp_path / "solutions"), "LC_ALL": "C"}
    python = [sys.executable, "-S", "-W", "error", str(ROOT / "practice" / "judge.py")]
    done = subprocess.run([*python, "--lang", "zh"], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "131" in done.stdout.decode("utf-8", "replace")
