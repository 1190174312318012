"""What a trace says of its cache: hit rates by capacity, and the capacity for most of the hits, in words and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from handbook.capacity import History, LRUCurve, optimum

SHARES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Row:
    """One capacity. Rates are block hits of block references."""

    capacity_tokens: int
    capacity_bytes: int | None
    lru: float
    optimum: float


@dataclass(frozen=True)
class Need:
    """The least capacity with which LRU has this share of the hits of an unlimited cache."""

    share: float
    capacity_tokens: int
    capacity_bytes: int | None


@dataclass(frozen=True)
class Report:
    """The answers for one trace. Bytes are None where no model was named."""

    num_requests: int
    num_blocks: int
    block_size: int
    bytes_per_token: int | None
    unlimited: float
    rows: list[Row]
    needs: list[Need]


def report(history: History, block_size: int, bytes_per_token: int | None = None) -> Report:
    """Capacities go from the longest request's to where LRU misses nothing more. There must be a request."""
    curve, best = LRUCurve(history), 0
    num_blocks, max_hits = history.num_blocks, history.max_hits

    def in_bytes(num_tokens: int) -> int | None:
        return bytes_per_token and bytes_per_token * num_tokens

    rows = []
    for tokens in _ladder(max(history.sizes) * block_size, curve.bends[-1] * block_size):
        capacity = tokens // block_size
        best = best if best == max_hits else optimum(history, capacity)
        rows.append(Row(tokens, in_bytes(tokens), curve.at(capacity) / num_blocks, best / num_blocks))
    needed = {share: curve.needed(share * max_hits) * block_size for share in SHARES if max_hits}
    needs = [Need(share, tokens, in_bytes(tokens)) for share, tokens in needed.items()]
    return Report(len(history.sizes), num_blocks, block_size, bytes_per_token, max_hits / num_blocks, rows, needs)


def _ladder(least: int, enough: int) -> Iterator[int]:
    """1, 2 and 5 times powers of ten: those from `least` to the first that is enough."""
    steps = [step for power in range(19) for step in (10**power, 2 * 10**power, 5 * 10**power) if step >= least]
    yield steps[0]
    yield from (after for before, after in takewhile(lambda pair: pair[0] < enough, pairwise(steps)))


def text(found: Report) -> str:
    """The report as a table with a conclusion."""
    lines = [
        f"{found.num_requests:,} requests, {found.num_blocks:,} blocks of {found.block_size} tokens; "
        f"an unlimited cache hits {found.unlimited:.1%} of them.",
        "",
        f"{'capacity (tokens)':>19}{_gigabytes('GB', found)}{'LRU':>9}{'optimum':>10}",
    ]
    for row in found.rows:
        size = _gigabytes(row.capacity_bytes, found)
        lines.append(f"{row.capacity_tokens:>19,}{size}{row.lru:>9.1%}{row.optimum:>10.1%}")
    lines.append("")
    for need in found.needs:
        size = f", {need.capacity_bytes / 1e9:,.1f} GB" if need.capacity_bytes is not None else ""
        lines.append(f"LRU has {need.share:.0%} of the possible hits with {need.capacity_tokens:,} tokens{size}.")
    if not found.needs:
        lines.append("No block is used twice: no cache would help.")
    lines.append("Left out: running requests pin their blocks, and generated tokens have no ids in a trace.")
    return "\n".join(lines)


def _gigabytes(value: str | int | None, found: Report) -> str:
    if found.bytes_per_token is None or value is None:
        return ""
    return f"{value if isinstance(value, str) else f'{value / 1e9:,.1f}':>12}"


def plot(found: Report, history: History, path: Path) -> None:
    """Hit rate over capacity: LRU, the optimum, and what an unlimited cache hits."""
    curve = LRUCurve(history)
    tokens = [row.capacity_tokens for row in found.rows]
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    dense = np.geomspace(tokens[0], tokens[-1], 300) if len(tokens) > 1 else np.array(tokens)
    lru = [curve.at(int(capacity) // found.block_size) / found.num_blocks * 100 for capacity in dense]
    axes.axhline(found.unlimited * 100, color="0.5", linestyle=":", label="unlimited cache")
    axes.plot(tokens, [row.optimum * 100 for row in found.rows], "s--", color="#d95f02", label="offline optimum")
    axes.plot(dense, lru, color="#1b4e8a", label="LRU")
    for need in found.needs:
        if need.share == 0.9:
            axes.axvline(need.capacity_tokens, color="#1b4e8a", linewidth=0.8, linestyle="-.")
            size = f" ({need.capacity_bytes / 1e9:,.0f} GB)" if need.capacity_bytes is not None else ""
            axes.set_title(f"LRU has 90% of the possible hits with {need.capacity_tokens / 1e6:,.2f}M tokens{size}")
    axes.set(xscale="log", xlabel="capacity (tokens)", ylabel="block hits (% of block references)", ylim=(0, None))
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
