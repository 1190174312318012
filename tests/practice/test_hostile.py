"""Every hostile submission gets its verdict, changes nothing outside its child, and leaves no process."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from practice.grader import strays
from practice.grader.contract import Problem
from practice.grader.grade import grade
from practice.grader.hostile import Hostile, hostile
from practice.grader.problems import load

NAMES = [one.name for one in hostile(load(131))]
VERDICTS = {"AC", "WA", "RTE", "TLE", "MLE", "OLE", "CE"}


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Problem 131 with fewer cases and less time: what is to be seen shows in the first of them."""
    problem = load(131)
    return replace(
        problem, groups=lambda seed: problem.groups(seed)[:3], limits=replace(problem.limits, cpu_seconds=0.5)
    )


@pytest.fixture(scope="module")
def corpus(problem: Problem) -> Iterator[dict[str, Hostile]]:
    yield {one.name: one for one in hostile(problem)}


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """The folder in which children get theirs; checked after the test for any change."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    token, marker = secrets.token_hex(16), tmp_path / "marker"
    marker.write_text("as it was")
    marker.chmod(0o640)
    os.utime(marker, ns=(10**18, 10**18))
    os.utime(tmp_path, ns=(10**18, 10**18))
    before, shared = marker.stat(), set(Path("/dev/shm").iterdir())
    monkeypatch.setattr(strays, "new_token", lambda: token)
    others = set(left_processes(token))  # other tests' workers, which wait for more to do
    yield lambda: set(left_processes(token)) - others
    assert [path.name for path in tmp_path.iterdir()] == ["marker"]
    assert marker.read_text() == "as it was"
    now = marker.stat()
    for what in ("st_mode", "st_uid", "st_gid", "st_nlink", "st_mtime_ns", "st_ctime_ns", "st_ino"):
        assert getattr(now, what) == getattr(before, what), what
    assert set(Path("/dev/shm").iterdir()) == shared


def left_processes(token: str) -> list[int]:
    """The processes that carry the token of this test's children, and the children of this process."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (path / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            if token.encode() in (path / "environ").read_bytes() or int(parent) == os.getpid():
                found.append(int(path.name))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_submission_gets_its_verdict_and_leaves_nothing(name, problem, corpus, surroundings):
    submission = corpus[name]
    report = grade(problem, submission.source, 0, (problem.folder / "starter.py").read_bytes())
    assert report.verdict == submission.verdict, (report.message, report.first_failure and report.first_failure.failure)
    assert "SUCCEEDED" not in report.printed, report.printed
    assert not surroundings()


def test_the_corpus_has_every_verdict_and_is_large_enough(corpus):
    assert {one.verdict for one in corpus.values()} == VERDICTS
    assert len(corpus) >= 25


def test_a_file_without_a_verdict_in_its_first_line_is_refused(tmp_path, problem):
    (tmp_path / "hostile").mkdir()
    (tmp_path / "reference.py").write_text("class PrefixCache: pass\n")
    (tmp_path / "hostile" / "nameless.py").write_text('"""No verdict."""\n')
    with pytest.raises(ValueError, match=r"nameless\.py: the first line must be like"):
        hostile(replace(problem, folder=tmp_path))
