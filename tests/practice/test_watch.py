"""Watching a file: one answer a save, and none for anything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from practice.grader.submissions import saves


class Stop(Exception):
    """No more happens."""


def watched(path: Path, *events: Callable[[], object]) -> list[bytes]:
    """What is seen when these things happen one after another."""
    seen: list[bytes] = []
    happening = iter(events)

    def wait() -> None:
        event = next(happening, None)
        if event is None:
            raise Stop
        event()

    try:
        for content in saves(path, 100, wait):
            seen.append(content)
    except Stop:
        pass
    return seen


def test_each_new_content_is_seen_once(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"one")
    same = path.write_bytes
    assert watched(path, lambda: same(b"one"), lambda: same(b"two"), path.touch, lambda: same(b"one")) == [
        b"one",
        b"two",
        b"one",
    ]


def test_a_file_that_is_being_replaced_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"one")
    assert watched(path, path.unlink, lambda: None, lambda: path.write_bytes(b"two")) == [b"one", b"two"]
    path.unlink()
    assert watched(path, path.mkdir, path.rmdir, lambda: path.write_bytes(b"three")) == [b"three"]
