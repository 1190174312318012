"""A bar on standard error, for what takes a while; only where somebody looks at it."""

from __future__ import annotations

import io
import sys
from typing import TextIO

WIDTH = 30


class Bar:
    """Shows how many of how many are done, and leaves nothing behind. Use it as a context manager."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr or io.StringIO()
        self.shown = False

    def __enter__(self) -> Bar:
        return self

    def __call__(self, done: int, total: int) -> None:
        if self.stream.isatty() and total:
            full = WIDTH * done // total
            self.stream.write(f"\r[{'#' * full}{'.' * (WIDTH - full)}] {done}/{total}")
            self.stream.flush()
            self.shown = True

    def __exit__(self, *error: object) -> None:
        if self.shown:
            self.stream.write("\r" + " " * (WIDTH + 20) + "\r")
            self.stream.flush()
