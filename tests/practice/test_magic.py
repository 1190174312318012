"""The notebook's side: a cell is kept, graded, shown, and defined; nothing of the learner's is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import RichOutput, capture_output

import practice
from practice.grader.contract import Report
from tests.practice import tiny


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[InteractiveShell]:
    tiny.install(monkeypatch, tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "practice")
    yield shell
    shell.run_line_magic("unload_ext", "practice")
    InteractiveShell.clear_instance()


def judge(shell: InteractiveShell, source: bytes, line: str = "7") -> RichOutput:
    with capture_output() as captured:
        shell.run_cell_magic("judge", line, source.decode())
    return captured.outputs[0]


def test_a_cell_is_shown_as_html_with_text_beside_it(shell: InteractiveShell) -> None:
    output = judge(shell, tiny.KEEPS_DROPPED)
    assert output.data["text/html"].startswith("<div")
    assert output.data["text/plain"].startswith("WA wrong answer  7 A ledger  20 of 60 points")
    assert "python practice/judge.py 7 --case" in output.data["text/plain"]


def test_the_language_can_be_chosen(shell: InteractiveShell) -> None:
    assert "答案错误" in judge(shell, tiny.KEEPS_DROPPED, "7 --lang zh").data["text/plain"]


def test_the_cell_is_kept_and_so_is_what_was_there_before(shell: InteractiveShell) -> None:
    judge(shell, tiny.KEEPS_DROPPED)
    assert Path("solutions/7.py").read_bytes() == tiny.KEEPS_DROPPED
    output = judge(shell, tiny.RIGHT)
    assert Path("solutions/7.py").read_bytes() == tiny.RIGHT
    assert Path("solutions/earlier/7-1.py").read_bytes() == tiny.KEEPS_DROPPED
    assert "7-1.py" in output.data["text/html"]


def test_the_text_of_a_cell_depends_on_its_source_alone(shell: InteractiveShell) -> None:
    first = judge(shell, tiny.KEEPS_DROPPED)
    judge(shell, tiny.RIGHT)
    assert judge(shell, tiny.KEEPS_DROPPED).data["text/plain"] == first.data["text/plain"]


def test_the_cell_is_kept_even_if_the_judge_crashes(shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("practice.grader.learner.grade", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("judge", "7", tiny.RIGHT.decode())
    assert Path("solutions/7.py").read_bytes() == tiny.RIGHT


def test_the_class_is_defined_in_the_notebook(shell: InteractiveShell) -> None:
    judge(shell, b"import math\n" + tiny.KEEPS_DROPPED)
    assert shell.user_ns["Ledger"]().put([1]) == (0, 1)
    assert "math" in shell.user_ns


def test_the_cell_runs_as_it_was_typed(shell: InteractiveShell) -> None:
    judge(shell, tiny.KEEPS_DROPPED.replace(b"limit=100", b"limit: int = 100"))
    assert shell.user_ns["Ledger"].__init__.__annotations__ == {"limit": int}


def test_a_cell_that_never_answered_is_not_run_in_the_kernel(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("practice.grader.learner.grade", lambda problem, *_: Report(problem, "TLE", 0))
    judge(shell, b"ran = True\n" + tiny.RIGHT)
    assert "ran" not in shell.user_ns


@pytest.mark.parametrize("line", ["", "x", "8", "7 8", "7 --lang fr", "7 --nothing", "7 --lang", "²"])
def test_a_wrong_line_is_a_sentence(shell: InteractiveShell, line: str) -> None:
    with pytest.raises(UsageError):
        shell.run_cell_magic("judge", line, "x = 1")
    assert not Path("solutions").exists()


def test_check_grades_the_kept_file_and_prints_its_report(shell: InteractiveShell) -> None:
    assert practice.check(7).verdict == "UNATTEMPTED"
    Path("solutions/7.py").write_bytes(tiny.FORGETS_LIMIT)
    checked = practice.check(7, lang="en")
    assert (checked.verdict, checked.points) == ("WA", 40)
    assert repr(checked).startswith("WA wrong answer")
    assert checked._repr_html_().startswith("<div")


def test_check_takes_a_class_that_was_defined_in_a_cell(shell: InteractiveShell) -> None:
    shell.run_cell(tiny.RIGHT.decode())
    assert practice.check(7, shell.user_ns["Ledger"]).verdict == "AC"
    assert Path("solutions/7.py").read_bytes() == tiny.RIGHT


def test_check_takes_source(shell: InteractiveShell) -> None:
    assert practice.check(7, tiny.RAISES.decode()).verdict == "RTE"


def test_a_class_without_source_and_an_unknown_number_are_sentences(shell: InteractiveShell) -> None:
    with pytest.raises(ValueError, match="the source of X is not known"):
        practice.check(7, type("X", (), {}))
    with pytest.raises(ValueError, match="there is no problem 8"):
        practice.check(8)
