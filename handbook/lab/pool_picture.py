"""A block pool with prefix caching as a picture: its state as plain values, and those values as marks.

From top to bottom: the blocks as cards with tokens, `ref_cnt`, hash and parent, and arrows from parent to child; the
free queue from head to tail; the requests with the blocks that hold their tokens. What a colour says, a border and a
word say too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from handbook.lab.played import Look, PlayedRequest, count, label
from handbook.lab.scene import FAINT, INK, MARGIN, WIDTH, Line, Mark, Rect, Text, shorten, text_width

INSIDE, GAP, ROW = WIDTH - 2 * MARGIN, 12, 46
LINES = 6  # lines of tokens on a card; a block of more tokens says how many are left out


@dataclass(frozen=True)
class Block:
    """A block after a step. `words` is None when nobody knows what is in it; `mark` is hit or taken, by this step."""

    refs: int = 0
    queued: bool = True
    hash: Any = None
    parent: Any = None
    words: Sequence[str] | None = ()
    mark: str = ""
    lost: Any = None  # the hash that this step took from it


@dataclass(frozen=True)
class PoolState:
    """All of a pool after a step, as values that no later step changes."""

    block_size: int
    blocks: tuple[Block, ...]
    queue: tuple[int, ...]
    joined: frozenset[int]  # the blocks that this step put into the queue
    requests: tuple[PlayedRequest, ...]


IN_USE = Look("in use", "#dcebf8", "#0b5394", 1.5)
TAKEN = Look("just taken", "#dcebf8", "#0b5394", 4)
EVICTED = Look("just evicted", "#fbdfd0", "#a63c00", 4)
HIT_FREE = Look("hit, free", "#d3f0e3", "#006b4b", 4)
HIT_IN_USE = Look("hit, in use", "#d3f0e3", "#006b4b", 4)
CACHED = Look("free, cached", "#fff4cf", "#7d5800", 1.5, dashed=True)
NO_HASH = Look("free, no hash", "#f1f2f2", "#6a747d", 1.5, dashed=True)
EMPTY = Look("free, empty", "#ffffff", "#6a747d", 1.5, dashed=True)
WRONG = Look("inconsistent", "#ffffff", "#000000", 4, dashed=True)


def short(key: Any) -> str:
    """The first 4 hexadecimal digits of a hash."""
    if key is None:
        return "none"
    return key.hex()[:4] if isinstance(key, bytes) else f"{hash(key) & 0xFFFF:04x}"


def look(block: Block) -> Look:
    """The look of a block. A count of 0 outside the queue, or a count inside it, is a fault of the pool, and shown."""
    if block.queued == (block.refs > 0):
        return WRONG
    if block.mark == "hit":
        return HIT_FREE if block.queued else HIT_IN_USE
    if block.mark == "taken":
        return TAKEN if block.lost is None else EVICTED
    if not block.queued:
        return IN_USE
    return CACHED if block.hash is not None else EMPTY if block.words == () else NO_HASH


def draw_pool(state: PoolState, waiting: Sequence[PlayedRequest], top: float) -> list[Mark]:
    """The marks of `state` from y = `top` downwards. `waiting` are requests of the play that came later than it."""
    marks, top = _cards(state, top)
    queue, top = _queue(state, top)
    return marks + queue + _requests(state, waiting, top)


def _cards(state: PoolState, top: float) -> tuple[list[Mark], float]:
    rows = ceil(len(state.blocks) / 6)
    columns = ceil(len(state.blocks) / rows)
    width = min(140.0, (INSIDE - (columns - 1) * GAP) / columns)
    lines = min(state.block_size, LINES)
    height, lanes = 30 + 17 * lines + 62, 30
    marks: list[Mark] = [label(top, f"pool: {count(len(state.blocks), 'block')} of {count(state.block_size, 'token')}")]
    for number, block in enumerate(state.blocks):
        x, y = MARGIN + number % columns * (width + GAP), top + 22 + number // columns * (height + lanes)
        marks += _card(number, block, state.block_size, lines, Rect(x, y, width, height))
    for row in range(rows):
        numbers = range(row * columns, min((row + 1) * columns, len(state.blocks)))
        middles = {number: MARGIN + number % columns * (width + GAP) + width / 2 for number in numbers}
        marks += _chain(state, middles, top + 22 + row * (height + lanes) + height)
    return marks, top + 22 + rows * (height + lanes) + 2


def _card(number: int, block: Block, block_size: int, lines: int, box: Rect) -> list[Mark]:
    at, x, y, right = look(block), box.x, box.y, box.x + box.width
    marks: list[Mark] = [
        Rect(x, y, box.width, box.height, at.fill, at.strong, at.line, at.dashed, name=f"block {number}: {at.label}"),
        Rect(x, y, box.width, 22, at.strong, at.strong, at.line),
        Text(x + 8, y + 16, str(number), 14, bold=True, fill="#ffffff"),
        Text(right - 7, y + 16, at.label, 12, "end", fill="#ffffff"),
    ]
    words = ["unknown"] if block.words is None else [*block.words, *["·"] * (block_size - len(block.words))]
    if len(words) > lines:
        words = [*words[: lines - 1], f"+ {block_size - lines + 1} more"]
    written = len(block.words or ())
    for line, word in enumerate(words):
        ink = INK if line < written else FAINT
        word = shorten(word, 13, box.width - 18)
        marks.append(Text(x + 9, y + 40 + 17 * line, word, 13, mono=True, fill=ink, name=f"token {number}"))
    y += 30 + 17 * lines
    marks.append(Line(((x + 6, y), (right - 6, y)), at.strong, 0.75, arrow=False))
    key = block.lost if block.hash is None else block.hash
    values = [str(block.refs), short(key), "–" if block.hash is None else short(block.parent)]
    for line, (name, value) in enumerate(zip(("ref_cnt", "hash", "parent"), values, strict=True)):
        marks.append(Text(x + 9, y + 18 + 17 * line, name, 12, fill=FAINT))
        marks.append(Text(right - 9, y + 18 + 17 * line, value, 12, "end", value not in ("none", "–"), mono=True,
                          name=f"{name} {number}"))  # fmt: skip
    if block.lost is not None:
        left = right - 9 - text_width(values[1], 12)
        marks.append(Line(((left - 3, y + 31), (right - 6, y + 31)), at.strong, 2, arrow=False, name="struck"))
    return marks


def _chain(state: PoolState, middles: dict[int, float], bottom: float) -> list[Mark]:
    """Arrows from parent to child under one row of cards, in lanes where they do not cross each other's way."""
    owner = {state.blocks[number].hash: number for number in middles if state.blocks[number].hash is not None}
    links = [
        (owner[state.blocks[child].parent], child) for child in owner.values() if state.blocks[child].parent in owner
    ]
    marks: list[Mark] = []
    lanes: list[list[range]] = [[], [], []]
    for parent, child in sorted(links, key=lambda link: abs(link[0] - link[1])):
        span = range(min(parent, child), max(parent, child))
        lane = next((n for n in range(3) if not any(set(span) & set(other) for other in lanes[n])), 2)
        lanes[lane].append(span)
        side = 1 if child > parent else -1
        x0, x1, y = middles[parent] + 22 * side, middles[child] - 8 * side, bottom + 10 + 7 * lane
        points = ((x0, bottom + 3), (x0, y), (x1, y), (x1, bottom + 3))
        marks.append(Line(points, INK, name=f"chain {parent} {child}"))
    return marks


def _queue(state: PoolState, top: float) -> tuple[list[Mark], float]:
    width, height, columns = 74, 28, 7
    free = f"free queue: {len(state.queue)} of {count(len(state.blocks), 'block')}"
    marks: list[Mark] = [label(top, f"{free}; allocate takes the head, free adds to the tail")]
    top += 22
    marks.append(Text(MARGIN, top + 19, "head" if state.queue else "empty", 13, bold=True))
    for place, number in enumerate(state.queue):
        x, y = MARGIN + 48 + place % columns * (width + 8), top + place // columns * (height + 8)
        block = state.blocks[number]
        at, line = look(replace(block, mark="")), 3.5 if number in state.joined else 1.5
        marks.append(Rect(x, y, width, height, at.fill, at.strong, line, at.dashed))
        marks.append(Text(x + 9, y + 19, str(number), 14, bold=True, name="queue"))
        marks.append(
            Text(x + width - 8, y + 19, "–" if block.hash is None else short(block.hash), 12, "end", mono=True)
        )
        if place == len(state.queue) - 1:
            marks.append(Text(x + width + 8, y + 19, "tail", 13, bold=True))
    return marks, top + ceil(len(state.blocks) / columns) * (height + 8) + 10


def _requests(state: PoolState, waiting: Sequence[PlayedRequest], top: float) -> list[Mark]:
    marks: list[Mark] = [label(top, "requests: their tokens, and the block that holds them")]
    top += 20
    for request in (*state.requests, *waiting):
        marks.append(Text(MARGIN, top + 17, request.name, 15, bold=True))
        marks.append(Text(MARGIN + 18, top + 16, count(len(request.words), "token"), 12))
        marks.append(Text(MARGIN + 18, top + 33, request.status, 12, fill=FAINT))
        table, top = _table(request, state.block_size, top)
        marks += table
    return marks


def _table(request: PlayedRequest, block_size: int, top: float) -> tuple[list[Mark], float]:
    """The request's tokens in groups of a block, each with the number of the block that holds it."""
    left, right = MARGIN + 112.0, WIDTH - MARGIN
    marks: list[Mark] = []
    x, end = left, top + 2 * ROW
    for start in range(0, len(request.words), block_size):
        place, words = start // block_size, " ".join(request.words[start : start + block_size])
        width = min(max(text_width(words, 12) + 15, 66), 150)
        rest = len(request.words) - start
        if x + width > right and top + ROW < end:
            x, top = left, top + ROW
        if x + width + (80 if rest > block_size else 0) > right and top + ROW >= end:
            marks.append(Text(x + 4, top + 16, "+ " + count(rest, "token"), 12, fill=FAINT))
            break
        at, under = EMPTY, ""
        if place < len(request.table):
            at, under = IN_USE, f"block {request.table[place]}"
        if place < max(len(request.found), request.num_cached // block_size):
            at, under = HIT_IN_USE, under or f"in block {request.found[place]}"
        marks.append(Rect(x, top, width, 23, at.fill, at.strong, 1.5, at.dashed))
        marks.append(Text(x + 7, top + 16, shorten(words, 12, width - 14), 12, mono=True))
        marks.append(Text(x + width / 2, top + 37, under, 12, "middle", name=f"table {request.name}"))
        x += width + 6
    return marks, top + ROW
