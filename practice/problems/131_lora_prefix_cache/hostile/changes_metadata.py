# verdict: AC
# ruff: noqa: PTH101, PTH110, PTH116
"""Right answers; tries to set modes, times, owners and attributes of files (to what they are: it may succeed)."""

import os

from reference import PrefixCache  # noqa: F401

for path in (".", "..", "../marker", os.__file__):
    now = os.stat(path) if os.path.exists(path) else os.stat(".")
    for attempt in (
        lambda path, now: os.chmod(path, now.st_mode & 0o7777),
        lambda path, now: os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns)),
        lambda path, now: os.chown(path, now.st_uid, now.st_gid),
        lambda path, now: os.setxattr(path, "user.judge", b"here"),
        lambda path, now: os.removexattr(path, "user.judge"),
    ):
        try:
            attempt(path, now)
        except (OSError, AttributeError):
            continue
        print("SUCCEEDED")
