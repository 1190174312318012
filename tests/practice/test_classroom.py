"""A class's submissions: each graded by itself, whatever the others are, and what learners share."""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path

import pytest

from practice.grader import command
from practice.grader.submissions import NoSubmission, judged, submission
from tests.practice import tiny


def notebook(*cells: str | list[str], kind: str = "code") -> bytes:
    return json.dumps({"cells": [{"cell_type": kind, "source": source} for source in cells]}).encode()


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    tiny.install(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "class"
    folder.mkdir()
    return folder


def graded(capsys: pytest.CaptureFixture) -> dict:
    command.main(["grade", "7", "class", "--json"])
    return json.loads(capsys.readouterr().out)


def test_a_bad_file_stops_nothing(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / "a.py").write_bytes(tiny.RIGHT)
    (folder / "b.py").mkdir()
    (folder / "c.ipynb").write_bytes(b"no json")
    (folder / "d.ipynb").write_bytes(b'{"cells": [{"cell_type": "code"}]}')
    (folder / "e.ipynb").write_bytes(b"[" * 100_000)
    (folder / "f.ipynb").write_bytes(notebook("print(1)"))
    (folder / "g.ipynb").write_bytes(notebook("%%judge 7\n" + tiny.KEEPS_DROPPED.decode()))
    (folder / "h.py").symlink_to(folder / "nowhere.py")
    os.mkfifo(folder / "i.py")
    (folder / ".hidden.py").write_bytes(tiny.RIGHT)
    (folder / "notes.txt").write_bytes(b"not graded")
    (folder / "z.py").write_bytes(tiny.FORGETS_LIMIT)
    files = {entry["file"]: entry for entry in graded(capsys)["files"]}
    assert {name: entry["verdict"] for name, entry in files.items()} == {
        "a.py": "AC", "b.py": None, "c.ipynb": None, "d.ipynb": None, "e.ipynb": None, "f.ipynb": None,
        "g.ipynb": "WA", "h.py": None, "i.py": None, "z.py": "WA",
    }  # fmt: skip
    assert all(entry["error"] for entry in files.values() if entry["verdict"] is None)
    assert "no cell that starts with %%judge 7" in files["f.ipynb"]["error"]


def test_the_grader_failing_on_one_file_fails_that_file_alone(
    folder: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grade(problem, source, seed, *rest):
        if source == b"poison":
            raise RuntimeError("poisoned")
        return tiny.grade_apart(problem, source, seed, *rest)

    monkeypatch.setattr("practice.grader.classroom.grade", grade)
    (folder / "a.py").write_bytes(b"poison")
    (folder / "b.py").write_bytes(tiny.RIGHT)
    assert [entry["verdict"] for entry in graded(capsys)["files"]] == [None, "AC"]


def test_the_class_report_counts_learners_by_misconception(folder: Path, capsys: pytest.CaptureFixture) -> None:
    for name, source in {"a": tiny.KEEPS_DROPPED, "b": tiny.FORGETS_LIMIT, "c": tiny.KEEPS_DROPPED}.items():
        (folder / f"{name}.py").write_bytes(source)
    (folder / "d.py").write_bytes(tiny.RIGHT)
    (folder / "e.py").write_bytes(tiny.SEVEN_IS_EIGHT)
    assert graded(capsys)["misconceptions"] == [
        {"sentence": "It looks as if never-drops.", "learners": 2},
        {"sentence": "It looks as if no-limit.", "learners": 1},
    ]
    assert command.main(["grade", "7", "class"]) == 1
    out = capsys.readouterr().out
    assert "2  It looks as if never-drops." in out
    assert "1  failed, no known misconception" in out


def test_a_misconception_is_named_by_the_same_story_as_in_the_learner_s_own_report(
    folder: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stories = []
    monkeypatch.setattr("practice.grader.diagnose.Diagnostician.diagnose", lambda *given: stories.append(given[2]))
    (folder / "a.py").write_bytes(tiny.SEVEN_IS_EIGHT)
    graded(capsys)
    command.main(["7", "class/a.py"])
    own, of_class = stories
    assert own == of_class and len(own.case.steps) == 1, "made as small as it gets"


def test_the_csv_holds_a_row_for_each_file_and_no_formula(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / "=cmd().py").write_bytes(tiny.FORGETS_LIMIT)
    (folder / "王.py").write_bytes(tiny.RIGHT)
    (folder / "grades-7.csv").write_bytes(b"the teacher's own")
    graded(capsys)
    text = (folder / "grades-7.csv").read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["file"] for row in rows] == ["'=cmd().py", "王.py"]
    assert [row["points"] for row in rows] == ["40", "60"]
    assert rows[0]["failed groups"] == "limit"
    assert (folder / "earlier" / "grades-7-1.csv").read_bytes() == b"the teacher's own"


def test_a_name_that_would_break_a_line_is_written_out(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / "a\n\t\x1b[31m.py").write_bytes(tiny.RIGHT)
    command.main(["grade", "7", "class"])
    written = r"a\n\t\x1b[31m.py"
    assert any(row.startswith(f"  {written}  AC") for row in capsys.readouterr().out.split("\n"))
    assert (folder / "grades-7.csv").read_bytes().decode().splitlines()[1].startswith(f"{written},AC,60")


def test_a_link_out_of_the_folder_is_not_followed(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder.parent / "secret.py").write_bytes(tiny.RIGHT)
    (folder / "a.py").symlink_to(folder.parent / "secret.py")
    (folder / "b.py").write_bytes(tiny.RIGHT)
    (folder / "c.py").symlink_to("b.py")
    files = graded(capsys)["files"]
    assert [entry["verdict"] for entry in files] == [None, "AC", "AC"]
    assert "not followed" in files[0]["error"]


def test_a_class_leaves_no_trace_in_ones_own_progress(folder: Path, capsys: pytest.CaptureFixture) -> None:
    (folder / "a.py").write_bytes(tiny.RIGHT)
    assert command.main(["grade", "7", "class"]) == 0
    assert not (folder.parent / "solutions").exists()


def test_the_last_judge_cell_of_that_number_is_the_submission(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_bytes(notebook("%%judge 7\nfirst", ["%%judge 7 --lang en\n", "second\n", "x"], "%%judge 70\nother", "x"))
    assert submission(path, 7, 100) == b"second\nx"
    path.write_bytes(notebook("%%judge 7\nno code", kind="markdown"))
    with pytest.raises(NoSubmission):
        submission(path, 7, 100)


def test_a_cell_is_judged_by_its_first_line_alone() -> None:
    assert judged("\n%%judge 131 --lang en\nx") == 131
    assert judged("%%judge --lang en 131\nx") == judged("%%judge  --lang=zh 131") == 131
    assert judged("x = 1\n%%judge 131") is None
    assert judged("%%judge\n131") is None
    assert judged("%%judge") is None


def test_a_bar_is_drawn_on_a_terminal_and_wiped_away() -> None:
    from practice.grader.progress_bar import Bar
    from tests.practice.test_report import Terminal

    stream = Terminal()
    with Bar(stream) as bar:
        bar(1, 2)
    assert "1/2" in stream.getvalue()
    assert stream.getvalue().endswith(" \r")
    with Bar(sys.stdout) as silent:
        silent(1, 2)
    assert not silent.shown
