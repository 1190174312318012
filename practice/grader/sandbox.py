"""What the child gives up before the learner's code runs: limits, privileges, files, system calls.

Each step stands alone and needs no privileges; what a system lacks is left out, and `enter` returns what is active.
Only the text is used, in the child (see `process.BOOT`): no import that is not needed.
Sources: landlock(7), seccomp(2), capset(2), getrlimit(2).
"""

from __future__ import annotations

import os
import sys
from stat import S_ISDIR

TYPE_CHECKING = False  # a checker takes it for true; typing takes its time to import
if TYPE_CHECKING:
    from typing import Any

NO_NEW_PRIVS, SET_SECCOMP, FILTER, SET_DEATH_SIGNAL = 38, 22, 2, 1  # prctl(2)
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every machine
READ_FILE, READ_DIR = 1 << 2, 1 << 3


def enter(settings: dict[str, Any]) -> list[str]:
    """Apply the settings for good; return the names of what is active."""
    active = [*limit(settings["limits"])]
    if sys.platform not in ("linux", "win32"):  # on Windows a job ends the child
        watch_parent(settings["parent"])
    if sys.platform == "linux":
        try:
            import ctypes
        except ImportError:  # a Python that was built without it
            return active
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
            drop_capabilities(libc)
            end_with_parent(libc, settings["parent"])
            if settings["landlock"] is not None and restrict_files(libc, settings["landlock"]):
                active.append("landlock")
            if settings["seccomp"] is not None and filter_calls(libc, settings["seccomp"]):
                active.append("seccomp")
    return active


def limit(limits: dict[str, tuple[int, int]]) -> list[str]:
    """Set each limit, soft and hard: {"CPU": (3, 4), ...} in seconds, bytes or files."""
    try:
        import resource
    except ImportError:  # Windows
        return []
    active = []
    for name, value in limits.items():
        number = getattr(resource, "RLIMIT_" + name, None)
        if number is not None:
            try:
                resource.setrlimit(number, value)
                active.append(name)
            except (OSError, ValueError):  # macOS refuses some
                pass
    return active


def drop_capabilities(libc: Any) -> None:
    """Root without them cannot raise its limits again, nor pass by the permissions of files."""
    import ctypes

    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this thread
    for kept in (1 << 2, 0):  # CAP_DAC_READ_SEARCH, or root might not reach the standard library of another user
        if libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept)) == 0:
            break


def end_with_parent(libc: Any, parent: int) -> None:
    """Let the kernel kill this process when the judge ends, however that ends."""
    libc.prctl(SET_DEATH_SIGNAL, 9, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        os._exit(0)


def watch_parent(parent: int, seconds: float = 1.0) -> None:
    """The same where the kernel knows no such thing: a thread looks now and then."""
    import time
    from _thread import start_new_thread

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(seconds)
        os._exit(0)

    start_new_thread(look, ())


def restrict_files(libc: Any, readable: list[tuple[str, bool]]) -> bool:
    """Landlock: nothing is written, only these files and folders are read, no TCP, no signal to other processes."""
    import ctypes

    abi = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        return False
    rights = 0x1FFF | (abi >= 2) << 13 | (abi >= 3) << 14 | (abi >= 5) << 15  # refer, truncate, ioctl on devices
    attributes = (ctypes.c_uint64 * 3)(rights, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    size = ctypes.c_size_t(8 if abi < 4 else 16 if abi < 6 else 24)
    rules = libc.syscall(CREATE_RULESET, attributes, size, 0)
    if rules < 0:
        return False
    for path, names_only in readable:
        try:
            file = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        access = READ_DIR if names_only else READ_FILE | READ_DIR if S_ISDIR(os.fstat(file).st_mode) else READ_FILE
        rule = ctypes.create_string_buffer(access.to_bytes(8, sys.byteorder) + file.to_bytes(4, sys.byteorder))
        libc.syscall(ADD_RULE, rules, 1, rule, 0)
        os.close(file)
    done = libc.syscall(RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    return bool(done)


def filter_calls(libc: Any, program: bytes) -> bool:
    """Seccomp: see practice/grader/seccomp.py."""
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    given = Program(len(program) // 8, program)
    return bool(libc.prctl(SET_SECCOMP, FILTER, ctypes.byref(given), 0, 0) == 0)
