"""An engine after a step as a picture: its state as plain values, and those values as marks.

From top to bottom: the blocks of the pool with their holders and how full they are; the tokens of the step, packed
behind each other in one batch; the requests with their tokens in groups of a block, and the block table underneath.
A request's colour stands beside its letter; what was computed in this step is dark, what is stored is light.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from handbook.lab.played import count, label
from handbook.lab.scene import FAINT, INK, MARGIN, WIDTH, Line, Mark, Rect, Text, shorten, text_width

INSIDE, CARD, ROW = WIDTH - 2 * MARGIN, 52, 66
LEFT = MARGIN + 196  # where the tokens of the requests begin
COLOURS = ("#0b5394", "#a63c00", "#006b4b", "#7d5800", "#6b3fa0", "#9c1c5b", "#3d5a1e", "#40474f")
LIGHT = ("#dcebf8", "#fbdfd0", "#d3f0e3", "#fff4cf", "#e8ddf5", "#fbdce9", "#e3edd6", "#e3e6e9")
DASH, WHITE = "#6a747d", "#ffffff"


@dataclass(frozen=True)
class SeenRequest:
    """A request after a step. Its tokens `start` to `stop` - 1 were computed in this step, those before are stored."""

    place: int  # in order of arrival: 0 is A
    label: str
    status: str
    num_tokens: int
    num_prompt: int
    start: int
    stop: int
    table: tuple[int, ...]
    answer: str

    @property
    def name(self) -> str:
        return name_of(self.place)


@dataclass(frozen=True)
class Packed:
    """A request's part of the step's batch."""

    place: int
    num_tokens: int
    decodes: bool


@dataclass(frozen=True)
class EngineState:
    """All of an engine after a step, as values that no later step changes."""

    block_size: int
    num_blocks: int
    budget: int  # tokens
    batch: tuple[Packed, ...]
    requests: tuple[SeenRequest, ...]
    taken: frozenset[int]  # blocks handed out in this step
    freed: frozenset[int]  # blocks given back in it, and free now

    def holders(self, block: int) -> list[SeenRequest]:
        return [request for request in self.requests if block in request.table]


def name_of(place: int) -> str:
    return "ABCDEFGH"[place]


def draw_engine(state: EngineState, largest: int, top: float) -> list[Mark]:
    """The marks of `state` from y = `top` downwards; no step of the play packs more than `largest` tokens."""
    marks, top = _pool(state, top)
    batch, top = _batch(state, min(state.budget, max(largest, 16)), top)
    return marks + batch + _requests(state, top)


def _pool(state: EngineState, top: float) -> tuple[list[Mark], float]:
    free = sum(not state.holders(block) for block in range(state.num_blocks))
    size = f"{count(state.num_blocks, 'block')} of {count(state.block_size, 'token')}"
    marks: list[Mark] = [label(top, f"pool: {size}, {free} free; in each, its holder and the slots that are written")]
    rows = ceil(state.num_blocks / 14)
    columns = max(10, ceil(state.num_blocks / rows))
    pitch = (INSIDE + 8) / columns
    for block in range(state.num_blocks):
        row, column = divmod(block, columns)
        marks += _card(state, block, Rect(MARGIN + column * pitch, top + 20 + row * (CARD + 8), pitch - 8, CARD))
    return marks, top + 20 + rows * (CARD + 8) + 6


def _card(state: EngineState, block: int, box: Rect) -> list[Mark]:
    x, y, width, holders = box.x, box.y, box.width, state.holders(block)
    strong, light, who = DASH, WHITE, "freed" if block in state.freed else "free"
    if holders:
        strong, light = COLOURS[holders[0].place], LIGHT[holders[0].place]
        who = "".join(holder.name for holder in holders)
    line = 3.5 if block in state.taken or block in state.freed else 1.5
    marks: list[Mark] = [
        Rect(x, y, width, CARD, light, strong, line, not holders, name=f"block {block}: {who}"),
        Text(x + 6, y + 17, str(block), 12, fill=FAINT),
    ]
    if not holders:
        return [*marks, Text(x + width / 2, y + 40, who, 11, "middle", fill=FAINT)]
    marks.append(Text(x + width - 6, y + 17, shorten(who, 13, width - 26), 13, "end", True))
    for holder in holders[:1]:
        written = min(max(holder.stop - holder.table.index(block) * state.block_size, 0), state.block_size)
        marks.append(Rect(x + 6, y + 30, width - 12, 12, WHITE, strong, 1))
        if written:
            marks.append(Rect(x + 6, y + 30, (width - 12) * written / state.block_size, 12, strong, name="written"))
    return marks


def _batch(state: EngineState, shown: int, top: float) -> tuple[list[Mark], float]:
    """The budget as a row of `shown` places (a budget that no step comes near is not drawn to its end)."""
    total, decodes = sum(p.num_tokens for p in state.batch), sum(p.num_tokens for p in state.batch if p.decodes)
    said = f"batch of this step: {total} of at most {count(state.budget, 'token')}"
    marks: list[Mark] = [label(top, f"{said}: {decodes} decode, {total - decodes} prefill")]
    place, x, y = INSIDE / shown, float(MARGIN), top + 20
    marks.append(Rect(x, y, INSIDE, 30, WHITE, DASH, 1.5, True, name="budget"))
    for packed in state.batch:
        width, what = packed.num_tokens * place, "decode" if packed.decodes else "prefill"
        name, colour = name_of(packed.place), COLOURS[packed.place]
        fill, ink = (LIGHT[packed.place], INK) if packed.decodes else (colour, WHITE)
        marks.append(Rect(x, y, width, 30, fill, colour, 2, name=f"{what} of {name}: {packed.num_tokens}"))
        if place > 10:
            marks += [
                Line(((x + n * place, y + 24), (x + n * place, y + 30)), WHITE, 1, arrow=False)
                for n in range(1, packed.num_tokens)
            ]
        words = [f"{name} {what} {packed.num_tokens}", f"{name} {packed.num_tokens}", name]
        said = next((word for word in words if text_width(word, 12) < width - 4), "")
        marks.append(Text(x + width / 2, y + 18, said, 12, "middle", bold=said == name, fill=ink))
        x += width
    return marks, y + 46


def _requests(state: EngineState, top: float) -> list[Mark]:
    shades = "dark: computed in this step; light: K and V stored; white: not computed yet"
    marks: list[Mark] = [label(top, f"requests and block tables ({shades})")]
    most = max((ceil(request.num_tokens / state.block_size) for request in state.requests), default=1)
    group = min((WIDTH - MARGIN - LEFT) / most, 74.0)
    for place, request in enumerate(state.requests):
        marks += _request(request, state.block_size, group, top + 22 + place * ROW)
    return marks


def _request(request: SeenRequest, block_size: int, group: float, top: float) -> list[Mark]:
    strong, light = COLOURS[request.place], LIGHT[request.place]
    marks: list[Mark] = [
        Rect(MARGIN, top, 24, 24, strong),
        Text(MARGIN + 12, top + 17, request.name, 14, "middle", True, fill=WHITE),
        Text(MARGIN + 32, top + 10, shorten(request.label, 11, LEFT - MARGIN - 38), 11, mono=True, name="label"),
        Text(MARGIN + 32, top + 26, shorten(request.status, 11, LEFT - MARGIN - 38), 11, fill=FAINT, name="status"),
    ]
    for place in range(ceil(request.num_tokens / block_size)):
        first, x = place * block_size, LEFT + place * group
        last = min(first + block_size, request.num_tokens)
        slot = (group - 4) / block_size
        for begin, end, fill in ((0, request.start, light), (request.start, request.stop, strong)):
            begin, end = max(begin, first), min(end, last)
            if begin < end:
                what = f"{'stored' if fill == light else 'new'} {request.name}: {end - begin}"
                marks.append(Rect(x + (begin - first) * slot, top, (end - begin) * slot, 20, fill, name=what))
        marks.append(Rect(x, top, (last - first) * slot, 20, "none", strong, 1, not request.table))
        if place < len(request.table):
            number = Text(x + (group - 4) / 2, top + 32, str(request.table[place]), 11, "middle", mono=True,
                          name=f"table {request.name}")  # fmt: skip
            marks.append(number)
    told = f"{request.num_prompt} prompt + {request.num_tokens - request.num_prompt} new: {request.answer}"
    told = shorten(told, 12, WIDTH - MARGIN - LEFT)
    return [*marks, Text(LEFT, top + 48, told, 12, mono=True, name=f"answer {request.name}")]


def names(places: Sequence[int]) -> str:
    """'A', 'A and B', 'A, B and C'."""
    letters = [name_of(place) for place in places]
    return "".join(letters) if len(letters) < 2 else f"{', '.join(letters[:-1])} and {letters[-1]}"
