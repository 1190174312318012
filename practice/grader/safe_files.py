"""Writing the learner's files so that nothing of theirs is ever lost.

A file is written beside its place and then moved there, so a crash leaves the old one or the new one, whole. What was
there and is different goes to the folder `earlier` beside it first.
"""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path


def write(path: Path, content: bytes) -> Path | None:
    """Put `content` at `path`; returns where the earlier, different content is kept, if there was one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = None
    if path.is_file() and (old := path.read_bytes()) != content:
        kept = _keep(path, old)
    replace(path, content)
    return kept


def replace(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step; the old content is gone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        os.chmod(name, _mode(path))  # noqa: PTH101
        with open(descriptor, "wb") as file:  # noqa: PTH123
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)  # noqa: PTH105
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """That of the file which is replaced; of a new one, what the user's mask leaves of reading and writing."""
    if path.exists():
        return path.stat().st_mode & 0o7777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _keep(path: Path, content: bytes) -> Path:
    folder = path.parent / "earlier"
    folder.mkdir(exist_ok=True)
    for number in count(1):
        place = folder / f"{path.stem}-{number}{path.suffix}"
        if place.is_file() and place.read_bytes() == content:
            return place
        if not place.exists():
            replace(place, content)
            return place
    raise AssertionError("counting does not end")
