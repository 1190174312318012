"""Which protections are active on this machine: each is tried by a child, none is taken for granted.

Where an attempt would leave a trace outside the child, the parent looks for that trace and does not ask the child.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from practice.grader.contract import Limits
from practice.grader.process import Child, Stopped
from practice.grader.protocol import Raised
from practice.grader.words import said

LIMITS = Limits(cpu_seconds=1, memory=256 << 20, output=1000)
PATIENCE = 8.0  # seconds of waiting: more than the CPU time allowed, so that the two limits can be told apart
PROBE = """
import os, signal, subprocess, sys, time

class Probe:
    def attempt(self, code, **given):
        names = {**globals(), **given}
        exec(code, names)
        return names.get("result")
"""
STRAY = """
def start():
    if not hasattr(os, "fork"):
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid
    ours, theirs = os.pipe()
    if os.fork() == 0:  # its child leaves the process group, and loses its parent
        os.setsid()
        stray = os.fork()
        if stray == 0:
            time.sleep(60)
        os.write(theirs, str(stray).encode())
        os._exit(0)
    return int(os.read(ours, 20))
result = start()
"""


@dataclass(frozen=True)
class Finding:
    """What became of one attempt."""

    protection: str
    active: bool
    detail: str  # what the attempt met


@dataclass
class Attempt:
    """What a piece of code met in a child of its own."""

    result: object = None
    met: str = said("nothing stopped it", "没有受到阻拦")
    verdict: str = ""  # of the limit that ended the child, or RTE


def doctor(without: tuple[str, ...] = ()) -> list[Finding]:
    """Try every protection; it takes some two seconds. `without` leaves some out, to see that this would be noticed."""
    with tempfile.TemporaryDirectory() as folder:
        return [*_files(Path(folder), without), *_processes(without), *_limits(without)]


def _files(folder: Path, without: tuple[str, ...]) -> Iterator[Finding]:
    file, written, secret = folder / "file", folder / "written", secrets.token_hex(8)
    file.write_text(secret)
    file.chmod(0o600)
    os.utime(file, (1e9, 1e9))
    given = {"file": str(file), "written": str(written)}
    attempt = _try("result = open(file).read()", without, given)
    yield Finding(said("files of yours cannot be read", "读不到你的文件"), attempt.result != secret, attempt.met)
    attempt = _try("open(written, 'w').write('here')", without, given)
    yield Finding(said("files cannot be written", "不能写文件"), not written.exists(), attempt.met)
    attempt = _try("os.remove(file)", without, given)
    yield Finding(said("files cannot be removed", "不能删文件"), file.exists(), attempt.met)
    file.touch()
    os.utime(file, (1e9, 1e9))
    mode = file.stat().st_mode
    attempt = _try("os.chmod(file, 0o444)", without, given)
    yield Finding(
        said("modes of files cannot be changed", "不能改文件的权限"), file.stat().st_mode == mode, attempt.met
    )
    attempt = _try("os.utime(file, (0, 0))", without, given)
    yield Finding(
        said("times of files cannot be changed", "不能改文件的时间"), file.stat().st_mtime == 1e9, attempt.met
    )
    file.chmod(0o600)  # Windows does not remove a file that cannot be written


def _processes(without: tuple[str, ...]) -> Iterator[Finding]:
    attempt = _try(STRAY, without)
    started = isinstance(attempt.result, int)
    yield Finding(said("no process can be started", "不能启动进程"), not started, attempt.met)
    gone = not started or not _runs(attempt.result)
    yield Finding(
        said("no process is left behind", "不会留下进程"),
        gone,
        said("none was started", "没有启动任何进程")
        if not started
        else said("one was started, and ended", "启动了一个，已经结束"),
    )
    if sys.platform == "win32":  # there even the question would kill
        yield Finding(
            said("the judge cannot be killed", "不能杀死判题器"),
            False,
            said("not tried: nothing on Windows forbids it", "没有尝试：Windows 上没有什么能禁止它"),
        )
    else:
        attempt = _try("os.kill(parent, 0); result = 'allowed'", without, {"parent": os.getpid()})
        yield Finding(said("the judge cannot be killed", "不能杀死判题器"), attempt.result != "allowed", attempt.met)
    attempt = _try("import socket; socket.socket().close(); result = 'open'", without)
    yield Finding(said("no network", "没有网络"), attempt.result != "open", attempt.met)


def _limits(without: tuple[str, ...]) -> Iterator[Finding]:
    attempt = _try(f"bytearray({LIMITS.memory}); result = 'got it'", without)
    yield Finding(said("memory is limited", "内存有限制"), attempt.result != "got it", attempt.met)
    attempt = _try("result = [os.pipe() for _ in range(200)] and 'got them'", without)
    yield Finding(said("open files are limited", "打开的文件数有限制"), attempt.result != "got them", attempt.met)
    attempt = _try("while True: pass", without, seconds=PATIENCE)
    limited = attempt.verdict == "TLE" and "CPU" in attempt.met
    yield Finding(said("CPU time is limited", "CPU 时间有限制"), limited, attempt.met)
    attempt = _try("time.sleep(60)", without, seconds=0.2)
    yield Finding(said("waiting is limited", "等待有限制"), attempt.verdict == "TLE", attempt.met)
    attempt = _try("while True: print('a flood')", without)
    yield Finding(said("output is limited", "输出有限制"), attempt.verdict == "OLE", attempt.met)


def _try(code: str, without: tuple[str, ...], given: dict[str, Any] | None = None, *, seconds: float = 20.0) -> Attempt:
    attempt = Attempt()
    child = Child(LIMITS, without=without)
    try:
        child.room = LIMITS.output
        child.ask(seconds, "load", PROBE, "Probe")
        child.ask(seconds, "new", {})
        reply = child.ask(seconds, "call", "attempt", (code,), given or {})
        if isinstance(reply, Raised):
            attempt.met = f"{reply.type_name}: {reply.text}" if reply.text else reply.type_name
        else:
            attempt.result = reply.value
    except Stopped as stopped:
        attempt.verdict, attempt.met = stopped.verdict, stopped.detail
    finally:
        child.end()
    return attempt


def _runs(pid: object) -> bool:
    """Whether the process still runs; one that was just killed has a moment to go."""
    assert isinstance(pid, int)
    if sys.platform == "win32":
        listed = subprocess.run(["tasklist", "/FI", f"PID eq {pid}"], capture_output=True, check=False).stdout
        return str(pid).encode() in listed.split()
    until = time.monotonic() + 1
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        time.sleep(0.01)
    return True
