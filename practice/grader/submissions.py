"""Where a solution's source comes from: a file, each save of a file, or the `%%judge` cell of a notebook."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

INTERVAL = 0.3  # seconds between two looks at a file that is watched
LARGEST_NOTEBOOK = 32 << 20  # bytes; outputs count


class NoSubmission(Exception):
    """A file that holds no solution; a key of `words` says why."""


def read_source(path: Path, most: int) -> bytes:
    """The file's bytes; of one that is larger than `most` only a byte more, which is enough to refuse it."""
    if not path.is_file():
        raise FileNotFoundError(path)  # a pipe or a device would block or never end
    with path.open("rb") as file:
        return file.read(most + 1)


def saves(path: Path, most: int, wait: Callable[[], object]) -> Iterator[bytes]:
    """The content of `path` now, and again each time it has become another one. `wait` is called between two looks,
    which works on every system.

    A file that is missing for a moment is being replaced by an editor; one that was touched but not changed is no save.
    """
    content: bytes | None = None
    while True:
        with suppress(OSError):
            new = read_source(path, most)
            if new != content:
                content = new
                yield new
        wait()


def submission(path: Path, number: int, most: int) -> bytes:
    """The solution of problem `number` in a .py file, or in the last `%%judge` cell for it in a notebook."""
    if path.suffix != ".ipynb":
        return read_source(path, most)
    content = read_source(path, LARGEST_NOTEBOOK)
    if len(content) > LARGEST_NOTEBOOK:
        raise NoSubmission("notebook_too_large")
    try:
        sources = [_text(cell["source"]) for cell in json.loads(content)["cells"] if cell["cell_type"] == "code"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise NoSubmission("notebook_broken") from None
    cells = [source for source in sources if judged(source) == number]
    if not cells:
        raise NoSubmission("notebook_without_cell")
    return cells[-1].lstrip().partition("\n")[2].encode("utf-8", "surrogatepass")


def judged(source: str) -> int | None:
    """The number of the problem that a cell answers by its first line, `%%judge [--lang LANGUAGE] NUMBER`."""
    match = re.match(r"\s*%%judge(?:[ \t]+--\w+[ \t=]+\w+)*[ \t]+(\d{1,9})\b", source)
    return int(match[1]) if match else None


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
