"""A child is asked, limited and ended, and leaves nothing: as it is done here, and as on Windows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from practice.grader.affinity import one_processor
from practice.grader.contract import Limits
from practice.grader.process import CannotStart, Child, Stopped
from practice.grader.protocol import Raised, Value
from practice.grader.strays import adopt_orphans

SOURCE = """
import os, signal, subprocess, sys, threading, time

class Probe:
    def do(self, code):
        names = dict(globals())
        exec(code, names)
        return names.get("result")
"""
LIMITS = Limits(cpu_seconds=1)
UNCAGED = ("seccomp", "landlock")


@pytest.fixture(params=[False, True], ids=["polled", "threaded"])
def child(request, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with_probe = probe(threaded=request.param)
    yield with_probe
    with_probe.end()
    assert not list(tmp_path.iterdir()), "its folder is gone"
    assert not runs(with_probe.pid)


def probe(**options: Any) -> Child:
    child = Child(LIMITS, **options)
    child.room = 10_000
    assert child.ask(20, "load", SOURCE, "Probe") == Value(None)
    assert child.ask(20, "new", {}) == Value(None)
    return child


def do(child: Child, code: str, seconds: float = 20.0) -> object:
    reply = child.ask(seconds, "call", "do", (code,), {})
    return reply.value if isinstance(reply, Value) else reply


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def stopped(child: Child, code: str, seconds: float = 20.0) -> tuple[str, str]:
    with pytest.raises(Stopped) as caught:
        do(child, code, seconds)
    return caught.value.verdict, caught.value.detail


def test_calls_are_answered_one_after_the_other(child):
    assert [do(child, f"result = {n} * 2") for n in range(20)] == [2 * n for n in range(20)]


def test_a_call_may_be_longer_than_a_pipe(child):
    assert do(child, f"result = len({'x' * 3_000_000!r})") == 3_000_000


def test_a_reply_may_be_longer_than_a_pipe(child):
    assert do(child, "result = list(range(100_000))") == list(range(100_000))


def test_what_is_printed_is_kept_in_its_order_and_decides_nothing(child):
    code = "print('one'); print('two', file=sys.stderr); os.write(1, b'three'); print('[1,\"value\",7]')"
    assert do(child, code) is None
    child.end()
    assert child.printed == b'one\ntwo\nthree[1,"value",7]\n'


def test_what_was_printed_before_the_end_is_kept(child):
    stopped(child, "print('last words'); os._exit(3)")
    assert child.printed == b"last words\n"


def test_a_line_that_was_begun_in_an_earlier_call_is_kept(child):
    do(child, "print('begun', end='')")
    stopped(child, "os._exit(3)")
    assert child.printed == b"begun"


def test_an_exception_comes_with_its_lines(child):
    reply = do(child, "1 / 0")
    assert isinstance(reply, Raised)
    assert (reply.kind, reply.type_name, reply.frames) == ("error", "ZeroDivisionError", ((7, "do"),))


def test_a_child_that_waits_too_long_is_stopped(child):
    started = time.monotonic()
    assert stopped(child, "time.sleep(60)", seconds=0.1)[0] == "TLE"
    assert time.monotonic() - started < 30


def test_a_child_that_does_not_read_a_long_call_is_stopped(child):
    do(child, "threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGSTOP)).start()")
    time.sleep(0.3)
    assert stopped(child, "x" * 3_000_000, seconds=0.3)[0] == "TLE"


def test_the_limit_on_output_stops_a_flood_and_keeps_its_beginning(child):
    assert stopped(child, "while True: print('flood')")[0] == "OLE"
    assert child.printed == b"flood\n" * 1666 + b"floo"


@pytest.mark.parametrize("status", [0, 3])
def test_a_child_that_ends_itself_is_no_success_whatever_its_exit_status(child, status):
    verdict, detail = stopped(child, f"os._exit({status})")
    assert verdict == "RTE" and f"status {status}" in detail


def test_a_child_killed_by_a_signal_says_which(child):
    verdict, detail = stopped(child, "os.kill(os.getpid(), signal.SIGABRT)")
    assert verdict == "RTE" and "SIGABRT" in detail


def test_a_child_that_closes_its_pipes_and_lives_on_is_ended(child):
    assert stopped(child, "os.closerange(0, 64)\nwhile True: time.sleep(1)")[0] == "RTE"
    assert not runs(child.pid)


def test_a_child_that_has_ended_is_not_ended_again(child):
    child.end()
    child.end()
    assert child.exit_status == -signal.SIGKILL


def test_cpu_time_is_limited_though_the_signal_of_it_is_ignored():
    child = probe()
    code = "signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert stopped(child, code, seconds=60) == ("TLE", "more CPU time than all cases together may take")
    assert child.used() > 1


def test_cpu_time_is_limited_for_each_call_and_waiting_is_none():
    child = probe()
    code = "until = time.process_time() + 0.2\nwhile time.process_time() < until: pass"
    before = child.used()
    child.ask(20, "call", "do", ("time.sleep(0.4)",), {}, cpu_seconds=0.3)
    child.ask(20, "call", "do", (code,), {}, cpu_seconds=0.3)
    assert 0.2 <= child.used() - before < 0.5
    with pytest.raises(Stopped, match="more CPU time"):
        child.ask(20, "call", "do", (f"{code}\n{code}",), {}, cpu_seconds=0.3)
    assert child.used() - before < 0.8


def test_a_child_has_nothing_of_its_parent(monkeypatch, tmp_path):
    """Neither its environment nor its files, folder, packages or terminal."""
    monkeypatch.setenv("A_SECRET", "x")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    inherited = os.open(__file__, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    child = probe(without=UNCAGED)
    try:
        allowed = "{'PRACTICE_CHILD', 'LD_LIBRARY_PATH', 'LC_CTYPE'}"  # Python itself sets the last
        assert do(child, f"result = list(set(os.environ) - {allowed})") == []
        assert do(child, "result = [name for name in os.listdir('/proc/self/fd') if int(name) > 5]") == []
        assert do(child, "result = os.listdir('.')") == []
        assert do(child, "result = [path for path in sys.path if 'packages' in path or not path]") == []
        assert do(child, "result = sys.flags.isolated, sys.flags.no_site, sys.flags.dont_write_bytecode") == (1, 1, 1)
        assert do(child, "result = os.getsid(0) == os.getpid()") is True
    finally:
        child.end()
        os.close(inherited)


def test_children_leave_no_open_files_or_threads_in_the_parent():
    def held() -> tuple[int, int]:
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

    probe().end()
    before = held()
    for threaded in (False, True, False, True):
        child = probe(threaded=threaded)
        stopped(child, "os._exit(0)")
        probe(threaded=threaded).end()
    time.sleep(0.1)
    assert held() == before


STRAY = """
ours, theirs = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(theirs, str(os.getpid()).encode())
        time.sleep(60)
    os._exit(0)
result = int(os.read(ours, 20))
"""


@pytest.mark.parametrize("before", [False, True])
def test_a_process_that_left_its_group_is_ended_where_nothing_forbids_it(before):
    as_it_was = adopt_orphans(before)
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        child = probe(without=UNCAGED)
        stray = do(child, STRAY)
        assert isinstance(stray, int) and runs(stray)
        child.end()
        assert not runs(stray)
        assert bystander.poll() is None, "other children of this process are left alone"
        assert adopt_orphans(before) is before, "and this process is as it was"
    finally:
        bystander.kill()
        bystander.wait()
        adopt_orphans(as_it_was)


@pytest.mark.parametrize("python", ["/nonexistent/python", "/bin/true", "/bin/cat"])
def test_a_child_that_does_not_start_is_the_judge_s_own_fault(monkeypatch, tmp_path, python):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "_base_executable", python)
    with pytest.raises(CannotStart):
        Child(LIMITS)
    assert not list(tmp_path.iterdir())


def test_the_calling_thread_is_free_again_after_its_turns_with_a_child():
    child = probe()
    before = os.sched_getaffinity(0)
    with one_processor(child.pid):
        assert len(os.sched_getaffinity(0)) == len(os.sched_getaffinity(child.pid)) == 1
    assert os.sched_getaffinity(0) == before
    child.end()
