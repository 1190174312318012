"""A child process that runs untrusted code: started in its cage, asked, ended, and nothing left of it.

It is a Python without site-packages in an empty temporary folder. Its own stdin and stdout become the private pipes of
the judge's host; what the learner's code prints goes to the third, stderr. Everything else is given up (`sandbox`)
before that code comes. The parent goes by what it sees itself: replies, the clock, and how the process ended.
"""

from __future__ import annotations

import contextlib
import marshal
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from practice.grader import protocol, seccomp, strays, windows_job
from practice.grader.contract import Limits
from practice.grader.pipes import Closed, Flooded, Overdue, Pipes, PolledPipes, ThreadedPipes, lasting
from practice.grader.protocol import Garbled, Raised, Value
from practice.grader.words import Said, said

POSIX = os.name == "posix"
OUT_OF_TIME = "TLE", said("more CPU time than all cases together may take", "用掉的 CPU 时间超过了所有用例总共的限度")
OVERDUE = "TLE", said("no answer in time: it computes, waits or sleeps too long", "没有按时回答：计算、等待或睡眠太久")
FLOODED = "OLE", said("more was printed than is allowed", "打印的内容超过了允许的长度")
START_SECONDS = 20.0  # for a machine that is busy beyond reason; a start takes some 0.03
# The child reads its host and the settings from stdin, and runs the host with builtins of its own.
BOOT = """
import builtins, marshal, os
def take(size):
    data = b""
    while len(data) < size:
        data += os.read(0, size - len(data)) or os._exit(0)
    return data
space = {"__builtins__": vars(builtins).copy(), "__name__": "judge"}
codes, space["settings"] = marshal.loads(take(int.from_bytes(take(4), "big")))
for code in codes:
    exec(code, space)
"""
OPEN = """
host = Host(os.dup(0), os.dup(1))
nothing = os.open(os.devnull, os.O_RDONLY)
os.dup2(nothing, 0)
os.close(nothing)
os.dup2(2, 1)
sys.stdout.reconfigure(line_buffering=True)
host.send('[0,"value",%s]' % encode(enter(settings)))
host.serve()
"""


class CannotStart(Exception):
    """No child could be started: the judge's own fault, or the machine's."""


class Stopped(Exception):
    """The child is no more: the verdict on what it was doing, and the reason."""

    def __init__(self, verdict: str, detail: str) -> None:
        super().__init__(verdict, detail)
        self.verdict, self.detail = verdict, detail


class Child:
    """One child process; `active` names the protections that it says it has (it says so before it runs any code).

    `without` leaves protections out, for the tests of the others; `threaded` is how Windows waits.
    """

    def __init__(self, limits: Limits, *, without: tuple[str, ...] = (), threaded: bool = not POSIX) -> None:
        self.cpu_limit = max(1, math.ceil(limits.cpu_seconds))
        self._cpu_seconds = 0.0  # used in all, when it has ended
        self.exit_status: int | None = None  # negative: the signal that killed it
        self._number = 0
        self._token = strays.new_token()
        self._adopting: bool | None = None  # what to restore
        self._job: Any = None
        with contextlib.ExitStack() as undo:
            self._folder = tempfile.TemporaryDirectory(prefix="judge-", ignore_cleanup_errors=True)
            undo.callback(self._folder.cleanup)
            self._process = self._spawn()
            self.pid = self._process.pid
            undo.callback(self.end)
            self._job = windows_job.confine(getattr(self._process, "_handle", 0), limits.memory, self.cpu_limit)
            self._pipes = self._connect(threaded)
            settings = cage(self.pid, limits.memory, self.cpu_limit, without)
            try:
                data = marshal.dumps((host_code(), settings))
                reply = self._pipes.exchange(len(data).to_bytes(4, "big") + data, lasting(START_SECONDS))
                self.active = tuple(getattr(protocol.parse(reply, 0), "value", ()))
            except (Closed, Flooded, Overdue, Garbled) as error:
                self._pipes.room = 2000
                self._pipes.drain(0.5)
                said = self._pipes.printed.decode(errors="replace")
                raise CannotStart(f"The child process did not start ({type(error).__name__}). {said}") from None
            if sys.platform == "linux" and "seccomp" not in self.active:
                self._adopting = strays.adopt_orphans(True)
            undo.pop_all()

    def _spawn(self) -> subprocess.Popen[bytes]:
        python = getattr(sys, "_base_executable", None) or sys.executable  # not a virtual environment's launcher
        passed = {name: os.environ[name] for name in ("SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
        try:
            return subprocess.Popen(
                [python, "-I", "-S", "-B", "-X", "utf8", "-c", BOOT],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._folder.name,
                env=passed | {"PRACTICE_CHILD": self._token},
                start_new_session=POSIX,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            raise CannotStart(f"Python could not be started ({python}): {error}") from None

    def _connect(self, threaded: bool) -> Pipes:
        calls, replies, printed = self._process.stdin, self._process.stdout, self._process.stderr
        assert calls and replies and printed
        if threaded:
            return ThreadedPipes(calls, replies, printed, self._kill)
        return PolledPipes(calls, replies, printed)

    def ask(self, seconds: float, *message: Any, cpu_seconds: float = math.inf) -> Value | Raised:
        """Make a call and return the reply to it, as plain data; raises Stopped when there is none.

        `seconds` limits the waiting, and `cpu_seconds` what the child uses meanwhile.
        """
        self._number += 1
        waiting, most = lasting(seconds), self.used() + cpu_seconds

        def left() -> float:
            return min(waiting(), most - self.used())

        try:
            return protocol.parse(self._pipes.exchange(protocol.frame(self._number, *message), left), self._number)
        except Overdue:
            why = OUT_OF_TIME if self.used() >= most else OVERDUE
        except Flooded:
            why = FLOODED
        except Garbled as error:
            why = (
                "RTE",
                said(
                    f"bytes that are no reply came through the judge's private pipe: {error}",
                    f"判题器专用的管道里来了不是回答的字节：{error}",
                ),
            )
        except Closed:
            self._pipes.drain(0.5)
            self.end()
            why = self._how_it_ended()
        self.end()
        raise Stopped(*why)

    def used(self) -> float:
        """Seconds of CPU so far; on systems other than Linux always 0, so that there waiting alone is limited."""
        if self.exit_status is None and sys.platform == "linux":
            with contextlib.suppress(OSError):
                return time.clock_gettime(~self.pid << 3 | 2)  # another process's clock: clock_getcpuclockid(3)
        return self._cpu_seconds

    @property
    def printed(self) -> bytes:
        """What the learner's code has printed so far."""
        return bytes(self._pipes.printed)

    def forget_output(self) -> None:
        self._pipes.printed.clear()

    @property
    def room(self) -> int:
        """How many more bytes may be printed."""
        return self._pipes.room

    @room.setter
    def room(self, size: int) -> None:
        self._pipes.room = size

    def end(self) -> None:
        """Kill the whole process group, reap it, and remove the folder; what follows finds nothing left."""
        if self.exit_status is not None:
            return
        self._kill()
        self._reap()
        if self._adopting is not None:
            strays.end_orphans(self._token, self.pid)
            strays.adopt_orphans(self._adopting)
        if hasattr(self, "_pipes"):
            self._pipes.close()
        self._folder.cleanup()

    def _kill(self) -> None:
        if POSIX:
            for kill in (os.killpg, os.kill):  # its group, and it alone should it have left that
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self.pid, signal.SIGKILL)
        else:
            ended, self._job = self._job, None
            windows_job.close(ended)
            with contextlib.suppress(OSError):
                self._process.kill()

    def _reap(self) -> None:
        if not POSIX:
            self.exit_status = self._process.wait()
            return
        try:
            _, status, usage = os.wait4(self.pid, 0)
            self.exit_status, self._cpu_seconds = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        except ChildProcessError:  # someone else in this process has reaped it
            self.exit_status = 0
        self._process.returncode = self.exit_status

    def _how_it_ended(self) -> tuple[str, Said]:
        assert self.exit_status is not None
        if not POSIX and self.exit_status == windows_job.OUT_OF_TIME:
            return OUT_OF_TIME
        if self.exit_status >= 0:
            return "RTE", said(
                f"the process ended itself with exit status {self.exit_status}, as os._exit does",
                f"进程自己退出了，退出状态 {self.exit_status}，就像 os._exit 那样",
            )
        name = signal.Signals(-self.exit_status).name
        if name == "SIGXCPU" or (name == "SIGKILL" and self._cpu_seconds > self.cpu_limit):
            return OUT_OF_TIME
        hints = {
            "SIGSEGV": (", as after too deep a recursion", "，像是递归太深"),
            "SIGKILL": (", or let go of the judge's pipes", "，或者放开了判题器的管道"),
        }
        english, chinese = hints.get(name, ("", ""))
        return "RTE", said(f"the process was killed by {name}{english}", f"进程被 {name} 杀死{chinese}")


@cache
def host_code() -> tuple[CodeType, ...]:
    """The host's parts, compiled: the child is the same Python."""
    texts = [Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("sandbox.py", "child.py")]
    return tuple(compile(text, "<judge>", "exec", dont_inherit=True) for text in [*texts, OPEN])


def cage(pid: int, memory: int, cpu: int, without: tuple[str, ...]) -> dict[str, Any]:
    """The settings that `sandbox.enter` applies in child `pid`."""
    calls = seccomp.program(os.uname().machine, pid) if sys.platform == "linux" and "seccomp" not in without else None
    limits = {"AS": memory, "FSIZE": 0, "NOFILE": 64, "CORE": 0}
    if sys.platform != "linux":
        limits["NPROC"] = 0  # there it counts no threads
    both = {name: (value, value) for name, value in limits.items()} | {"CPU": (cpu, cpu + 1)}  # SIGXCPU, then SIGKILL
    readable = standard_library() if sys.platform == "linux" and "landlock" not in without else None
    return {"limits": both, "landlock": readable, "seccomp": calls, "parent": os.getpid()}


@cache
def standard_library() -> list[tuple[str, bool]]:
    """What a child on Linux may read: path, and whether only the names in it. No packages, nothing of the user's."""
    library, prefix = Path(os.__file__).parent, Path(sys.base_prefix)
    folders = {library, *(Path(path) for path in sys.path if path.endswith("lib-dynload"))}
    inside = [path for folder in folders for path in folder.iterdir() if not path.name.endswith("-packages")]
    shared = [*prefix.glob("lib/*.so*"), Path("/etc/ld.so.cache")]
    systems = [Path(root, getattr(sys.implementation, "_multiarch", "")) for root in ("/lib", "/usr/lib")]
    if not all(path.is_dir() for path in systems):
        systems = [Path(root) for root in ("/lib", "/usr/lib", "/lib64", "/usr/lib64")]
    return [(str(path), True) for path in folders] + [(str(path), False) for path in (*inside, *shared, *systems)]
