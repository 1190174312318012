# verdict: AC
"""Right answers; goes past Python, and asks the kernel itself for a process, a file, a socket, another program."""

import ctypes
import os

from reference import PrefixCache  # noqa: F401

libc = ctypes.CDLL(None, use_errno=True)
X86_64 = {
    "fork": (57,),
    "fork in the numbering of x32": (0x40000000 + 57,),
    "clone": (56, 17, 0, 0, 0, 0),
    "open for writing": (2, b"left-by-a-submission", os.O_CREAT | os.O_WRONLY, 0o600),
    "socket": (41, 2, 1, 0),
    "ptrace": (101, 16, os.getppid(), 0, 0),
    "memfd_create": (319, b"kept", 0),
}
AARCH64 = {
    "clone": (220, 17, 0, 0, 0, 0),
    "openat for writing": (56, -100, b"left-by-a-submission", os.O_CREAT | os.O_WRONLY, 0o600),
    "socket": (198, 2, 1, 0),
    "ptrace": (117, 16, os.getppid(), 0, 0),
    "memfd_create": (279, b"kept", 0),
}
EVERYWHERE = {
    "clone3": (435, (ctypes.c_uint64 * 11)(0, 0, 0, 0, 17), 88),
    "io_uring_setup": (425, 1, (ctypes.c_uint64 * 15)()),
    "a call of the future": (1000,),
}
calls = {"x86_64": X86_64, "aarch64": AARCH64}.get(os.uname().machine, {}) | EVERYWHERE
for name, (number, *arguments) in calls.items():
    if libc.syscall(number, *arguments) >= 0:
        print("SUCCEEDED", name)
