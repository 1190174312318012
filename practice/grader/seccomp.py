"""The system calls that a submission does not get: a filter program for Linux, built by the parent.

What computes, prints, starts threads and reads files passes; what would change files, start or reach other processes,
or open sockets fails with an error that Python turns into an exception. Some calls depend on their arguments: a thread
is a `clone` too. Calls newer than this list are unknown to the kernel, as far as the submission can tell.
Source: seccomp(2); the numbers stand in the kernel's syscall_64.tbl (x86_64) and asm-generic/unistd.h (aarch64).
"""

from __future__ import annotations

import struct
from errno import EACCES, ENOSYS, ENOTTY, EPERM

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # the column below, and AUDIT_ARCH_...
NEWEST = 451  # cachestat: all calls up to here have been considered

# The numbers on x86_64 and on aarch64; a dash where there is no such call.
REFUSED = """
fork 57 -               vfork 58 -                execve 59 221           execveat 322 281
tkill 200 130           rt_sigqueueinfo 129 138   rt_tgsigqueueinfo 297 240
pidfd_open 434 434      pidfd_getfd 438 438       pidfd_send_signal 424 424
ptrace 101 117          process_vm_readv 310 270  process_vm_writev 311 271
process_madvise 440 440 process_mrelease 448 448  kcmp 312 272
setpriority 141 140     ioprio_set 251 30         sched_setscheduler 144 119
sched_setparam 142 118  sched_setattr 314 274     sched_setaffinity 203 122
migrate_pages 256 238   move_pages 279 239
socket 41 198           socketpair 53 199         io_uring_setup 425 425
creat 85 -              truncate 76 45            open_by_handle_at 304 265
mkdir 83 -              mkdirat 258 34            rmdir 84 -
unlink 87 -             unlinkat 263 35           rename 82 -
renameat 264 38         renameat2 316 276         link 86 -
linkat 265 37           symlink 88 -              symlinkat 266 36
mknod 133 -             mknodat 259 33
chmod 90 -              fchmod 91 52              fchmodat 268 53
chown 92 -              lchown 94 -               fchown 93 55            fchownat 260 54
utime 132 -             utimes 235 -              futimesat 261 -         utimensat 280 88
setxattr 188 5          lsetxattr 189 6           fsetxattr 190 7
removexattr 197 14      lremovexattr 198 15       fremovexattr 199 16
memfd_create 319 279    memfd_secret 447 447      shmget 29 194
msgget 68 186           semget 64 190             mq_open 240 180         mq_unlink 241 181
unshare 272 97          setns 308 268             chroot 161 51           mount_setattr 442 442
mount 165 40            fsopen 430 430            open_tree 428 428
keyctl 250 219          add_key 248 217           request_key 249 218
bpf 321 280             perf_event_open 298 241   userfaultfd 323 282     personality 135 92
inotify_init 253 -      inotify_init1 294 26      fanotify_init 300 262
"""
CLONE, CLONE3, KILL, TGKILL, PRLIMIT, PRCTL = (56, 220), (435, 435), (62, 129), (234, 131), (302, 261), (157, 167)
OPEN, OPENAT, OPENAT2, FCNTL, IOCTL = (2, None), (257, 56), (437, 437), (72, 25), (16, 29)
CLONE_THREAD = 0x10000
SET_DEATH_SIGNAL = 1  # of prctl(2): the child is not to outlive the judge
WRITING = 0o1103  # O_WRONLY | O_RDWR | O_CREAT | O_TRUNC
SIGNALLING = (8, 10, 15, 1026)  # F_SETOWN, F_SETSIG, F_SETOWN_EX, F_NOTIFY: a way to signal other processes

LOAD, IF_EQUAL, IF_GREATER, IF_ANY_BIT, RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
ALLOW, KILL_PROCESS, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; arguments have 8 bytes, lower half first

Instruction = tuple[int, int, int, int]  # code, how many to skip when true, when false, operand


def program(machine: str, pid: int) -> bytes | None:
    """The filter for process `pid`, as an array of struct sock_filter; None where there is none for the machine."""
    if machine not in ARCHITECTURES:
        return None
    column, architecture = ARCHITECTURES[machine]
    code: list[Instruction] = [(LOAD, 0, 0, ARCHITECTURE), (IF_EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILL_PROCESS)]
    code += [(LOAD, 0, 0, NUMBER), (IF_GREATER, 0, 1, NEWEST), (RETURN, 0, 0, ERROR | ENOSYS)]

    def when(numbers: tuple[int | None, ...], *then: Instruction) -> None:
        if (number := numbers[column]) is not None:
            code.extend([(IF_EQUAL, 0, len(then), number), *then])

    def unless(test: int, argument: int, value: int, error: int) -> list[Instruction]:
        """Fail unless the test of an argument (its lower half: all of them are ints in C) is true."""
        load = (LOAD, 0, 0, ARGUMENT + 8 * argument)
        return [load, (test, 1, 0, value), (RETURN, 0, 0, ERROR | error), (RETURN, 0, 0, ALLOW)]

    words = REFUSED.split()
    for number in zip(words[1::3], words[2::3], strict=True):
        when(tuple(None if text == "-" else int(text) for text in number), (RETURN, 0, 0, ERROR | EPERM))
    when(CLONE, *unless(IF_ANY_BIT, 0, CLONE_THREAD, EPERM))
    when(KILL, *unless(IF_EQUAL, 0, pid, EPERM))
    when(TGKILL, *unless(IF_EQUAL, 0, pid, EPERM))
    when(PRLIMIT, *unless(IF_EQUAL, 0, 0, EPERM))
    load = (LOAD, 0, 0, ARGUMENT)
    when(PRCTL, load, (IF_EQUAL, 0, 1, SET_DEATH_SIGNAL), (RETURN, 0, 0, ERROR | EPERM), (RETURN, 0, 0, ALLOW))
    for numbers, flags in ((OPEN, 1), (OPENAT, 2)):
        load = (LOAD, 0, 0, ARGUMENT + 8 * flags)
        when(numbers, load, (IF_ANY_BIT, 0, 1, WRITING), (RETURN, 0, 0, ERROR | EACCES), (RETURN, 0, 0, ALLOW))
    refusals = [at for command in SIGNALLING for at in ((IF_EQUAL, 0, 1, command), (RETURN, 0, 0, ERROR | EPERM))]
    when(FCNTL, (LOAD, 0, 0, ARGUMENT + 8), *refusals, (RETURN, 0, 0, ALLOW))
    when(IOCTL, (RETURN, 0, 0, ERROR | ENOTTY))
    for numbers in (CLONE3, OPENAT2):  # their flags are in memory, where no filter can look; libc knows another way
        when(numbers, (RETURN, 0, 0, ERROR | ENOSYS))
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
