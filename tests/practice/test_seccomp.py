"""The filter program, run by a small interpreter: so that both machines are tested on either."""

from __future__ import annotations

import struct
from errno import EACCES, ENOSYS, EPERM
from typing import Any

import pytest

from practice.grader.seccomp import ALLOW, ARCHITECTURES, ERROR, KILL_PROCESS, program

PID = 4242
THREAD = 0x3D0F00  # the flags that pthread_create passes
# x86_64 and aarch64, from the kernel's tables, written down a second time.
NUMBERS = {
    "read": (0, 63),
    "write": (1, 64),
    "mmap": (9, 222),
    "futex": (202, 98),
    "openat": (257, 56),
    "clone": (56, 220),
    "execve": (59, 221),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "socket": (41, 198),
    "fchmodat": (268, 53),
    "utimensat": (280, 88),
    "ptrace": (101, 117),
    "prlimit64": (302, 261),
    "prctl": (157, 167),
    "fcntl": (72, 25),
    "unlinkat": (263, 35),
    "getrandom": (318, 278),
}
both = pytest.mark.parametrize("machine", ARCHITECTURES)


def verdict(machine: str, call: str | int, *arguments: int, architecture: int | None = None) -> int:
    """What the kernel would do with the call."""
    code = program(machine, PID)
    assert code is not None
    number = call if isinstance(call, int) else NUMBERS[call][ARCHITECTURES[machine][0]]
    arch = ARCHITECTURES[machine][1] if architecture is None else architecture
    data = struct.pack("<iIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    instructions = list(struct.iter_unpack("<HBBI", code))
    at, accumulator = 0, 0
    while True:
        operation, true, false, operand = instructions[at]
        at += 1
        if operation == 0x06:
            return int(operand)
        if operation == 0x20:
            accumulator = struct.unpack_from("<I", data, operand)[0]
            continue
        tests: dict[int, Any] = {0x15: accumulator == operand, 0x25: accumulator > operand, 0x45: accumulator & operand}
        at += true if tests[operation] else false


@both
@pytest.mark.parametrize("call", ["read", "write", "mmap", "futex", "getrandom", "openat", "fcntl", "prlimit64"])
def test_what_a_computation_needs_passes(machine, call):
    assert verdict(machine, call) == ALLOW


@both
@pytest.mark.parametrize("call", ["execve", "socket", "fchmodat", "utimensat", "ptrace", "unlinkat"])
def test_what_reaches_beyond_the_process_is_refused(machine, call):
    assert verdict(machine, call) == ERROR | EPERM


@both
def test_a_thread_may_be_started_and_a_process_may_not(machine):
    assert verdict(machine, "clone", THREAD) == ALLOW
    assert verdict(machine, "clone", 17) == ERROR | EPERM
    assert verdict(machine, 435) == ERROR | ENOSYS, "clone3"


def test_fork_is_refused_where_there_is_such_a_call():
    assert verdict("x86_64", 57) == ERROR | EPERM


@both
@pytest.mark.parametrize("call", ["kill", "tgkill"])
def test_a_signal_may_go_to_the_process_itself_alone(machine, call):
    assert verdict(machine, call, PID) == ALLOW
    for other in (1, 0, PID + 1, (1 << 64) - 1):
        assert verdict(machine, call, other) == ERROR | EPERM


@both
@pytest.mark.parametrize("flags", [0o1, 0o2, 0o100, 0o1000, 0o20200001])
def test_files_are_not_opened_for_writing(machine, flags):
    assert verdict(machine, "openat", 0, 0, flags) == ERROR | EACCES
    assert verdict(machine, "openat", 0, 0, 0o2000000) == ALLOW, "O_CLOEXEC"


@both
def test_limits_of_others_and_owners_of_signals_are_not_set(machine):
    assert verdict(machine, "prlimit64", 1) == ERROR | EPERM
    assert verdict(machine, "fcntl", 3, 8, 1) == ERROR | EPERM, "F_SETOWN"


@both
def test_that_it_ends_with_the_judge_is_not_taken_back(machine):
    assert verdict(machine, "prctl", 1) == ERROR | EPERM
    assert verdict(machine, "prctl", 15) == ALLOW, "a thread may have a name"


@both
def test_calls_newer_than_the_list_or_of_another_numbering_are_unknown(machine):
    assert verdict(machine, 452) == verdict(machine, 0x40000000 + 57) == ERROR | ENOSYS


@both
def test_a_call_of_another_architecture_ends_the_process(machine):
    assert verdict(machine, "read", architecture=0x40000003) == KILL_PROCESS


def test_an_unknown_machine_has_no_filter():
    assert program("riscv64", PID) is None
