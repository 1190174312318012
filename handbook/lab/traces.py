"""Recorded workloads in Mooncake's format, read and written: one JSON object a line, plain or gzip.

    {"timestamp": 27482, "input_length": 1061, "output_length": 52, "hash_ids": [46, 47, 2353]}

timestamp is in milliseconds; hash_ids has one id for each block of the prompt, the last of which may be partial; equal
id means equal whole prefix. The block size is not in the file: in the public traces it is 512.
Source: kvcache-ai/Mooncake, FAST25-release/traces. Traces of your own come from `handbook.lab.trace_sources`.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any


class TraceError(ValueError):
    """Which line is wrong, why, and what to do."""


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One line of a trace. Lengths are in tokens."""

    timestamp: int
    input_length: int
    output_length: int
    hash_ids: list[int]


@contextmanager
def opened(path: str | Path) -> Iterator[BufferedReader]:
    """The file at path, or standard input for `-`, as bytes."""
    if str(path) == "-":
        yield sys.stdin.buffer  # type: ignore[misc]  # a BufferedReader in fact
        return
    with Path(path).open("rb") as file:
        yield file


def read(file: BufferedReader, block_size: int) -> Iterator[TraceRequest]:
    """The requests of a trace, one by one as they are asked for.

    A line that is malformed, that does not fit the block size, or that gives an id another prefix than before is a
    TraceError with its number.
    """
    if block_size < 1:
        raise ValueError(f"a block holds at least one token; got block size {block_size}.")
    parents: dict[int, int | None] = {}
    lines = _lines(file)
    for number, line in lines:
        request = _parsed(number, line)
        if -(-request.input_length // block_size) != len(request.hash_ids):
            raise TraceError(_wrong_size(number, request, block_size, lines))
        parent = None
        for block in request.hash_ids:
            if parents.setdefault(block, parent) != parent:
                raise TraceError(
                    f"line {number}: id {block} comes after {_name(parent)} here, and after {_name(parents[block])} in "
                    "an earlier place. Equal id must mean equal whole prefix: chain each block's hash to its parent's."
                )
            parent = block
        yield request


def load(path: str | Path, block_size: int) -> list[TraceRequest]:
    """All requests of the trace at path; errors as in `read`."""
    with opened(path) as file:
        return list(read(file, block_size))


def write(path: str | Path, requests: Iterable[TraceRequest]) -> None:
    """Write a trace, gzip if the name ends so."""
    path = Path(path)
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", encoding="utf-8", newline="\n") as file:
        for request in requests:
            file.write(json.dumps(asdict(request)) + "\n")


def _lines(file: BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, with their numbers; unpacked if they begin as gzip does."""
    number = 0
    try:
        for line in gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file:
            number += 1
            if line.strip():
                yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"after line {number}: the gzip data are damaged ({error}). Get the file again.") from None


def _parsed(number: int, line: bytes) -> TraceRequest:
    try:
        raw = json.loads(line)
    except ValueError as error:
        raise TraceError(f"line {number} is no JSON: {error}.") from None
    if not isinstance(raw, dict):
        raise TraceError(f"line {number} is no JSON object but {_short(raw)}.")
    for name in TraceRequest.__slots__:
        if name not in raw:
            raise TraceError(f"line {number} lacks {name!r}; a line has {', '.join(TraceRequest.__slots__)}.")
    ids = raw["hash_ids"]
    if type(ids) is not list or set(map(type, ids)) != {int}:
        raise TraceError(f"line {number}: hash_ids must be a list of whole numbers, at least one; got {_short(ids)}.")
    for name, least in (("timestamp", 0), ("input_length", 1), ("output_length", 0)):
        value = raw[name]
        if not isinstance(value, int | float) or isinstance(value, bool) or value < least or value % 1 != 0:
            raise TraceError(f"line {number}: {name} must be a whole number, at least {least}; got {_short(value)}.")
    return TraceRequest(int(raw["timestamp"]), int(raw["input_length"]), int(raw["output_length"]), ids)


def _wrong_size(number: int, wrong: TraceRequest, block_size: int, rest: Iterator[tuple[int, bytes]]) -> str:
    """What is wrong, and the block sizes that this line and the next thousand agree on."""
    least, most = 1, sys.maxsize
    following = (_parsed(*line) for line in islice(rest, 1000))
    try:
        for request in (wrong, *following):
            length, num_blocks = request.input_length, len(request.hash_ids)
            least = max(least, -(-length // num_blocks))
            if num_blocks > 1:
                most = min(most, (length - 1) // (num_blocks - 1))
    except TraceError:
        pass  # of the lines before it enough is known
    needed = -(-wrong.input_length // block_size)
    facts = (
        f"line {number}: for {wrong.input_length} tokens in blocks of {block_size}, hash_ids should have length "
        f"{needed}, but it has {len(wrong.hash_ids)}. "
    )
    if least > most:
        return facts + "No block size fits this line and those after it: lengths and ids do not belong together."
    power = 1 << (least - 1).bit_length()  # the least power of two that may be it
    sizes = power if power <= most else least if least == most else f"{least} to {most}"
    return facts + f"A block size of {sizes} would fit."


def _name(parent: int | None) -> str:
    return "nothing" if parent is None else str(parent)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
