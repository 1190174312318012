"""Limits of a child on Windows: a job object, which also ends whatever the child has started. Not tested on Windows.

The child is put into the job while it waits for its first message, before it runs anything of the learner's.
Source: JOBOBJECT_EXTENDED_LIMIT_INFORMATION in the Windows API.
"""

from __future__ import annotations

import sys
from typing import Any

OUT_OF_TIME = 1816  # ERROR_NOT_ENOUGH_QUOTA: the exit status of a process that has used up its time
USER_TIME, ACTIVE_PROCESSES, MEMORY, NO_DIALOG, END_ON_CLOSE = 0x2, 0x8, 0x100, 0x400, 0x2000
EXTENDED_LIMITS = 9

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    class Basic(ctypes.Structure):
        _fields_ = (
            ("user_time_of_process", ctypes.c_int64),  # in units of 100 ns
            ("user_time_of_job", ctypes.c_int64),
            ("flags", wintypes.DWORD),
            ("least_working_set", ctypes.c_size_t),
            ("largest_working_set", ctypes.c_size_t),
            ("active_processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priority", wintypes.DWORD),
            ("scheduling", wintypes.DWORD),
        )

    class Extended(ctypes.Structure):
        _fields_ = (
            ("basic", Basic),
            ("counters", ctypes.c_uint64 * 6),
            ("memory_of_process", ctypes.c_size_t),
            ("memory_of_job", ctypes.c_size_t),
            ("peak_of_process", ctypes.c_size_t),
            ("peak_of_job", ctypes.c_size_t),
        )

    api = ctypes.WinDLL("kernel32")
    api.CreateJobObjectW.restype = wintypes.HANDLE
    api.CreateJobObjectW.argtypes = [ctypes.c_void_p, wintypes.LPCWSTR]
    api.SetInformationJobObject.argtypes = [wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD]
    api.AssignProcessToJobObject.argtypes = [wintypes.HANDLE, wintypes.HANDLE]
    api.CloseHandle.argtypes = [wintypes.HANDLE]

    def confine(process: int, memory: int, cpu_seconds: int) -> Any:
        """Limit the process with that handle; returns the job, to be kept as long as the process, or None."""
        limits = Extended()
        limits.basic.flags = USER_TIME | ACTIVE_PROCESSES | MEMORY | NO_DIALOG | END_ON_CLOSE
        limits.basic.user_time_of_process = cpu_seconds * 10_000_000
        limits.basic.active_processes = 1
        limits.memory_of_process = memory
        job = api.CreateJobObjectW(None, None)
        limited = api.SetInformationJobObject(job, EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
        if limited and api.AssignProcessToJobObject(job, process):
            return job
        close(job)
        return None

    def close(job: Any) -> None:
        """End all processes of the job."""
        if job:
            api.CloseHandle(job)

else:

    def confine(process: int, memory: int, cpu_seconds: int) -> Any:
        """Nothing: other systems have other limits."""

    def close(job: Any) -> None:
        """Nothing."""
