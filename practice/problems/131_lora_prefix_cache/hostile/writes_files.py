# verdict: AC
# ruff: noqa: PTH102, PTH104, PTH107, PTH118, PTH123, PTH211, SIM115
"""Right answers; tries to leave something behind in its own folder, beside it, and in shared memory."""

import os
import tempfile

from reference import PrefixCache  # noqa: F401


def attempts(place):
    path, neighbour = os.path.join(place, "left-by-a-submission"), os.path.join(place, "marker")
    yield lambda: open(path, "w").write("here")
    yield lambda: os.close(os.open(path, os.O_CREAT | os.O_RDONLY))
    yield lambda: os.mkdir(path)
    yield lambda: os.symlink("/", path)
    yield lambda: os.mkfifo(path)
    yield lambda: os.link(neighbour, path)
    yield lambda: os.rename(neighbour, path)
    yield lambda: os.truncate(neighbour, 0)
    yield lambda: os.remove(neighbour)
    yield lambda: tempfile.NamedTemporaryFile(dir=place, delete=False)
    yield lambda: os.memfd_create("kept")


for place in (".", "..", "/dev/shm"):
    for attempt in attempts(place):
        try:
            attempt()
        except OSError:
            continue
        print("SUCCEEDED")
