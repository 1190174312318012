"""Progress and kept files: the best stays, a broken file stops nobody, and no work is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from practice.grader import safe_files
from practice.grader.progress import Progress
from tests.practice import tiny


def test_the_best_score_stays(tmp_path: Path) -> None:
    problem = tiny.problem(tmp_path / "p")
    for source, points, passed in (
        (tiny.FORGETS_LIMIT, 40, False),
        (tiny.KEEPS_DROPPED, 40, False),
        (tiny.RIGHT, 60, True),
        (tiny.KEEPS_DROPPED, 60, True),
        (b"no class", 60, True),
    ):
        Progress.load(tmp_path).record(tiny.grade(problem, source, 0))
        score = Progress.load(tmp_path).of(7)
        assert (score.points, score.of, score.passed) == (points, 60, passed)


def test_the_starter_is_no_attempt(tmp_path: Path) -> None:
    progress = Progress.load(tmp_path)
    progress.record(tiny.grade(tiny.problem(tmp_path / "p"), tiny.STARTER, 0, tiny.STARTER))
    assert progress.of(7).points is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1]",
        b"\xff",
        b'{"x": {}}',
        b'{"7": 3}',
        b'{"7": {"points": "many"}}',
        b'{"7": {"better": 1}}',
        b"[" * 9999,
    ],
)
def test_a_broken_file_is_survived_and_kept(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "progress.json").write_bytes(content)
    progress = Progress.load(tmp_path)
    assert progress.lost
    progress.show_hint(7, 1)
    assert json.loads((tmp_path / "progress.json").read_bytes())["7"]["hints"] == 1
    assert (tmp_path / "earlier" / "progress-1.json").read_bytes() == content


def test_an_earlier_different_file_is_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "7.py"
    assert safe_files.write(path, b"one") is None
    assert safe_files.write(path, b"one") is None
    first = safe_files.write(path, b"two")
    assert first is not None
    assert first.read_bytes() == b"one"
    assert safe_files.write(path, b"one") == tmp_path / "earlier" / "7-2.py"
    assert safe_files.write(path, b"two") == first, "the same content is not kept twice"
    assert path.read_bytes() == b"two"


def test_a_file_has_the_mode_of_an_ordinary_one_and_keeps_it(tmp_path: Path) -> None:
    ordinary, path = tmp_path / "ordinary", tmp_path / "7.py"
    ordinary.write_bytes(b"")
    safe_files.write(path, b"one")
    assert path.stat().st_mode == ordinary.stat().st_mode
    path.chmod(0o640)
    safe_files.write(path, b"two")
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_crash_while_writing_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "7.py"
    safe_files.write(path, b"work of an hour")

    def crash(*_: object) -> None:
        raise OSError("no power")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="no power"):
        safe_files.write(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"work of an hour"
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["7.py"]
