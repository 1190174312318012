"""What parent and child say to each other: frames of a length and its bytes; calls as marshal, replies as JSON.

The parent trusts no reply. A reply has its call's number, plain data, and at most `MAX_REPLY` bytes, and becomes
plain data here or is `Garbled`; nothing of it is ever run, and it never says whether an answer is right. Reading takes
time in proportion to its length, whatever the bytes: so there are no dicts, since ints can be chosen that all collide.
"""

from __future__ import annotations

import json
import marshal
import re
from dataclasses import dataclass
from typing import Any

from practice.grader.contract import Foreign

MAX_REPLY = 1 << 20  # bytes; parsed, the worst megabyte takes some 30 in memory
MAX_DEPTH = 20  # of lists in lists: an honest reply stays below, and what handles the values here may recurse
MAX_TEXT, MAX_FRAMES = 1000, 8  # of what is told of exceptions and of values that are no plain data
MAX_DIGITS = 1300  # of an int, whose reading takes time in proportion to their square
TOO_LONG = re.compile(rb"(?<!\d)\d{%d}" % MAX_DIGITS)  # each run of digits is looked at once, from its beginning


class Garbled(Exception):
    """Bytes that the judge's own host in the child would not have sent."""


@dataclass(frozen=True)
class Value:
    value: Any  # plain data, in which a `Foreign` stands for anything else
    changed: bool = False  # it is what the latest list or tuple, returned by an earlier call, has become


@dataclass(frozen=True)
class Raised:
    """An exception in the learner's code; `kind` is error, memory, syntax or missing."""

    kind: str
    type_name: str
    text: str
    frames: tuple[tuple[int, str], ...]  # line and function of the learner's own frames, the innermost last


def frame(number: int, *message: Any) -> bytes:
    """A call as bytes; `number` comes back with its reply. The message is ours, so it may be marshal."""
    data = marshal.dumps((number, *message))
    return len(data).to_bytes(4, "big") + data


def parse(data: bytes, number: int) -> Value | Raised:
    """The reply to call `number`."""
    try:
        if TOO_LONG.search(data):
            raise ValueError("an int too long to be read")
        reply, end = DECODER.raw_decode(data.decode("ascii"))
        if end != len(data):
            raise ValueError("something after the reply")
        if data.count(b"[") > MAX_DEPTH and _depth(reply) > MAX_DEPTH:
            raise ValueError("lists nested too deeply")
        replied, kind, *rest = reply
        if type(replied) is not int or replied != number:
            raise ValueError("not the reply to this call")
        if kind in ("value", "changed"):
            (value,) = rest
            return Value(value, kind == "changed")
        if kind not in ("error", "memory", "syntax", "missing"):
            raise ValueError("no such kind of reply")
        name, text, frames = rest
        shown = tuple((_line(line), _text(function)) for line, function in frames[-MAX_FRAMES:])
        return Raised(kind, _text(name), _text(text), shown)
    except (ValueError, TypeError, RecursionError) as error:
        raise Garbled(str(error)) from None


def _restore(pairs: list[tuple[str, Any]]) -> Any:
    """The value of a JSON object, which is always one key, the kind of the value, and its parts."""
    ((kind, parts),) = pairs
    if kind == "t" and type(parts) is list:
        return tuple(parts)
    if kind == "f":
        name, text = parts
        return Foreign(_text(name), re.sub(r"0x[0-9a-fA-F]{6,}", "0x...", _text(text)))  # the same in every run
    raise ValueError("no such kind of value")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("text is missing")
    return value[:MAX_TEXT]


def _line(value: Any) -> int:
    if type(value) is not int:
        raise ValueError("a line number is missing")
    return value


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level := [part for parts in level if isinstance(parts, list | tuple) for part in parts]:
        depth += 1
        if depth > MAX_DEPTH:
            break
    return depth


DECODER = json.JSONDecoder(object_pairs_hook=_restore)
