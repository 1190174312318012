# verdict: AC
"""Right answers; tries every way to a process that would outlive it."""

import os
import subprocess
import sys

from reference import PrefixCache  # noqa: F401

SLEEP = [sys.executable, "-c", "import time; time.sleep(30)"]


def fork():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(SLEEP[0], SLEEP)
        os._exit(0)


for attempt in (
    fork,
    lambda: os.forkpty(),
    lambda: os.posix_spawn(SLEEP[0], SLEEP, {}),
    lambda: subprocess.Popen(SLEEP, start_new_session=True),
    lambda: os.execv(SLEEP[0], SLEEP),
):
    try:
        attempt()
    except OSError:
        continue
    print("SUCCEEDED")
if os.system("sleep 30 &") == 0:
    print("SUCCEEDED")
