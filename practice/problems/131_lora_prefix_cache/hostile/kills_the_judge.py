# verdict: AC
"""Right answers; tries to kill, stop, trace or starve the process above it, once it knows that it may not."""

import os
import resource
import signal

from reference import PrefixCache  # noqa: F401


def denied():
    raise PermissionError


parent = os.getppid()
for ask, attempt in (  # the question does no harm where nothing protects the judge
    (lambda: os.kill(parent, 0), lambda: os.kill(parent, signal.SIGKILL)),
    (lambda: os.killpg(os.getpgid(parent), 0), lambda: os.killpg(os.getpgid(parent), signal.SIGKILL)),
    (lambda: os.kill(-1, 0), lambda: os.kill(-1, signal.SIGTERM)),
    (lambda: os.pidfd_open(parent), denied),
    (lambda: resource.prlimit(parent, resource.RLIMIT_CPU), denied),
    (lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent)), denied),
    (lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent)), denied),
):
    for harm in (ask, attempt):
        try:
            harm()
        except (OSError, AttributeError):
            continue
        print("SUCCEEDED")
        break
