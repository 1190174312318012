"""What stands above the tree in its theatre: the request being played, the running hit rate, and the slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handbook.lab.played import PlayedRequest, clip, count, label
from handbook.lab.scene import FAINT, MARGIN, WIDTH, Mark, Rect, Text, shorten, text_width
from handbook.lab.tree_picture import BOX, CACHED, HIT, LOCKED, NEW, PLAIN
from handbook.lab.tree_state import TreeState

LEFT, HALF = MARGIN + 112.0, (WIDTH - 2 * MARGIN - 30) / 2
COLUMNS, TALL = 40, 40  # hit rates that are drawn, the latest ones, and px of a rate of 100%


@dataclass(frozen=True)
class Played:
    """What a step shows, as values that no later step changes."""

    tree: TreeState
    request: PlayedRequest | None  # the one that the step is about
    requests: tuple[PlayedRequest, ...]
    rates: tuple[tuple[str, int, int], ...]  # for each request that ran: its name, and hits and tokens up to it
    capacity: int


def draw_panels(state: Played, names: Sequence[str], top: float) -> tuple[list[Mark], float]:
    """The panels from y = `top` downwards, and where they end; `names` are those of all requests of the play."""
    middle = top + 74
    marks = [*_request(state, names, top), *_rates(state, names, middle), *_slots(state, middle)]
    return marks, middle + 36 + TALL + 34


def _request(state: Played, names: Sequence[str], top: float) -> list[Mark]:
    status = dict.fromkeys(names, "waiting") | {request.name: request.status for request in state.requests}
    said = [f"{what}: {', '.join(who)}" for what in ("running", "ended", "no room", "waiting")
            if (who := [name for name in status if status[name] == what])]  # fmt: skip
    marks: list[Mark] = [label(top, shorten(f"requests {'; '.join(said)}", 12, WIDTH - 2 * MARGIN))]
    request, top = state.request, top + 20
    if request is None:
        return marks
    x = MARGIN + max(18, text_width(request.name, 15) + 8)
    marks.append(Text(MARGIN, top + 17, request.name, 15, bold=True))
    marks.append(Text(x, top + 16, count(len(request.words), "token"), 12, name="played"))
    marks.append(Text(x, top + 33, request.status, 12, fill=FAINT))
    ran, looked_up = request.status == "ended" or bool(request.table), request.status in ("looked up", "running")
    hits = request.num_cached if ran else len(request.found) if looked_up else 0
    rest = "computed" if ran else "not found" if looked_up else "not looked up yet"
    parts = [(HIT, request.words[:hits], "hit"), (NEW if ran else PLAIN, request.words[hits:], rest)]
    parts = [part for part in parts if part[1]]
    wishes = [max(120.0, text_width(clip(words, 12, 600), 12) + 18) for _, words, _ in parts]
    room, x = WIDTH - MARGIN - LEFT - 8 * (len(parts) - 1), LEFT
    if sum(wishes) > room:  # each gets what it needs, up to half, or what the other one leaves
        wishes = [min(wish, max(room / len(wishes), room - sum(wishes) + wish)) for wish in wishes]
    for (at, words, what), width in zip(parts, wishes, strict=True):
        marks.append(Rect(x, top, width, BOX, at.fill, at.strong, at.line, at.dashed, name=f"{what} part"))
        marks.append(Text(x + 9, top + 17, clip(words, 12, width - 16), 12, mono=True))
        marks.append(Text(x + 1, top + 39, f"{what}: {len(words)}", 12, fill=at.strong, name="part"))
        x += width + 8
    return marks


def _rates(state: Played, names: Sequence[str], top: float) -> list[Mark]:
    """A column for each request that ran, as high as the hit rate up to it, and a place for each that did not."""
    said = "hit rate after each request"
    if state.rates:
        _, hits, tokens = state.rates[-1]
        said = f"hit rate so far: {hits} of {count(tokens, 'token')}, {_percent(hits, tokens)}"
    marks: list[Mark] = [label(top, said)]
    ran = {name: (hits, tokens) for name, hits, tokens in state.rates}
    last = max((place for place, name in enumerate(names) if name in ran), default=0)
    first = max(0, last + 1 - COLUMNS)
    rates = [(name, *ran.get(name, (0, 0))) for name in names[first : first + COLUMNS]]
    pitch = min(48.0, HALF / max(1, len(rates)))
    base, wide = top + 36 + TALL, pitch >= 36
    for place, (name, hits, tokens) in enumerate(rates):
        x, width = MARGIN + place * pitch, pitch * 0.8
        marks.append(Rect(x, base - TALL, width, TALL, PLAIN.fill, "#c9cec8", 1, name="rate"))
        if hits:
            high = TALL * hits / tokens
            marks.append(Rect(x, base - high, width, high, HIT.strong, name=f"rate {name}"))
        if wide:
            marks.append(Text(x + width / 2, base - TALL - 4, _percent(hits, tokens) if tokens else "", 11, "middle"))
            marks.append(Text(x + width / 2, base + 13, shorten(name, 11, width), 11, "middle", fill=FAINT))
    return marks


def _percent(hits: int, tokens: int) -> str:
    return f"{100 * hits / tokens:.0f}%"


def _slots(state: Played, top: float) -> list[Mark]:
    """The memory as one bar: what is locked, what could be evicted, what is free."""
    left = WIDTH - MARGIN - HALF
    protected, evictable = state.tree.protected or 0, state.tree.evictable or 0
    free = max(0, state.capacity - protected - evictable)
    marks: list[Mark] = [Text(left, top + 12, f"memory: {count(state.capacity, 'slot')}", 12, fill=FAINT)]
    x, y, total = left, top + 36 + TALL - BOX, max(1, protected + evictable + free)
    parts = [(LOCKED, protected, "protected"), (CACHED, evictable, "evictable"), (PLAIN, free, "free")]
    for place, (at, size, what) in enumerate(parts):
        width = HALF * size / total
        if size:
            marks.append(Rect(x, y, width, BOX, at.fill, at.strong, at.line, at.dashed, name=what))
        x += width
        middle = left + HALF * (place + 0.5) / 3
        marks.append(Rect(middle - 50, y + BOX + 7, 10, 10, at.fill, at.strong, 1.5))
        marks.append(Text(middle - 35, y + BOX + 16, f"{what} {size}", 12, name="size"))
    return marks
