"""The judge may be ended at any moment, in any way: nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from practice.grader import sandbox
from practice.grader.apart import Failed
from practice.grader.apart import grade as grade_apart
from practice.grader.explain import smallest
from practice.grader.grade import grade
from practice.grader.problems import load

ROOT = Path(__file__).parents[2]
SLEEPS = "import time\ntime.sleep(60)\n"


def until(condition: Callable[[], object], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())


def parents() -> dict[int, int]:
    """The parent of each process that runs."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            found[int(path.parent.name)] = int(parent)
    return found


def below(pid: int) -> set[int]:
    known, found = parents(), {pid}
    while more := {child for child, parent in known.items() if parent in found} - found:
        found |= more
    return found - {pid}


def ended(arguments: list[str], folder: Path, processes: int, number: int) -> bool:
    """Start the judge, end it by a signal once it has so many processes below it; whether all of them end soon."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    judge = subprocess.Popen(
        [sys.executable, "practice/judge.py", *arguments],
        cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert until(lambda: len(below(judge.pid)) == processes and list(folder.glob("judge-*")))
    time.sleep(0.2)  # the child has entered its cage
    started = below(judge.pid)
    judge.send_signal(number)
    judge.wait(timeout=30)
    return until(lambda: not started & parents().keys(), 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_child_ends_with_the_judge_and_its_folder_goes_when_there_is_time_for_that(
    tmp_path: Path, number: int
) -> None:
    (tmp_path / "7.py").write_text(SLEEPS)
    assert ended(["131", str(tmp_path / "7.py")], tmp_path, 1, number)
    assert number == signal.SIGKILL or not list(tmp_path.glob("judge-*"))


def test_a_class_ends_with_the_judge_and_leaves_no_folders(tmp_path: Path) -> None:
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "a.py").write_text(SLEEPS)
    assert ended(["grade", "131", str(tmp_path / "class")], tmp_path, 2, signal.SIGKILL)
    assert until(lambda: not list(tmp_path.glob("judge-*"))), "the grader of the one submission had time to tidy up"


def test_what_hangs_up_a_terminal_and_is_ignored_stays_ignored() -> None:
    code = (
        "import signal; from practice.grader import ending; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        "ending.as_exceptions(); print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"True\n"


def test_where_the_kernel_does_not_help_a_thread_watches_the_parent() -> None:
    ours, theirs = os.pipe()
    middle = os.fork()
    if middle == 0:
        judge = os.getpid()
        if os.fork() == 0:
            sandbox.watch_parent(judge, 0.02)
            time.sleep(60)
        os._exit(0)
    os.waitpid(middle, 0)
    os.close(theirs)
    assert os.read(ours, 1) == b"", "the last one that held the pipe has ended"
    os.close(ours)


# ---- a grader of its own for each submission of a class


def test_a_submission_that_is_graded_apart_gets_the_report_that_it_gets_here(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load(131)
    source = (problem.folder / "wrong" / "no_parent.py").read_bytes()
    here = grade(problem, source, 3)
    assert here.verdict == "WA" and here.first_failure is not None
    story = smallest(here.first_failure, problem, source)[0]
    monkeypatch.setattr("practice.grader.grade.Runner", None)  # what happens to this process does not matter
    assert grade_apart(problem, source, 3) == (here, story)


def test_a_grader_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("practice.grader.apart.RUN", "raise SystemExit('no such luck')")
    with pytest.raises(Failed, match="no such luck"):
        grade_apart(load(131), b"", 0)
