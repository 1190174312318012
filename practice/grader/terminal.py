"""A page as text for a terminal, plain or coloured; by `rich`, where that is installed and colour is wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TextIO

from practice.grader.layout import (
    Beside,
    Block,
    Code,
    Grid,
    Heading,
    Line,
    Page,
    Piece,
    Toned,
    padded,
    text_of,
    tone_of,
    width,
)

COLOURS = {"good": "32", "bad": "31", "dim": "2", "strong": "1"}
LINE_WIDTH = 100  # a fixed one, since a report must not depend on the window


def wants_colour(stream: TextIO, refused: bool = False) -> bool:
    """Whether colour may go to `stream`: it is a terminal, and neither the user nor NO_COLOR refuses."""
    if refused or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    return sys.platform != "win32" or "WT_SESSION" in os.environ or "TERM" in os.environ


def show(page: Page, stream: TextIO, colour: bool) -> None:
    if colour:
        try:
            from practice.grader.rich_terminal import show_richly
        except ImportError:
            pass
        else:
            return show_richly(page, stream)
    stream.write(plain(page, colour))


def plain(page: Page, colour: bool = False) -> str:
    """The page as text, blocks parted by empty lines; it ends with a line break."""
    blocks = ["\n".join(row.rstrip() for row in _lines(block, colour)) for block in page]
    parted = ""
    for index, (block, text) in enumerate(zip(page, blocks, strict=True)):
        close = index and isinstance(block, Line) and isinstance(page[index - 1], (Line, Heading))
        parted += ("" if not index else "\n" if close else "\n\n") + text
    return parted + "\n"


def _lines(block: Block, colour: bool) -> Iterator[str]:
    if isinstance(block, Heading):
        yield _painted(block.text, "strong", colour)
    elif isinstance(block, Line):
        yield "".join(_painted(text_of(piece), tone_of(piece), colour) for piece in block.pieces)
    elif isinstance(block, Code):
        for index, row in enumerate(block.lines):
            marked = index == block.marked
            yield ("  > " if marked else "    ") + _painted(text_of(row), "strong" if marked else "", colour)
    elif isinstance(block, Grid):
        yield from _grid(block, colour)
    else:
        yield from _beside(block, colour)


def _painted(text: str, tone: str, colour: bool) -> str:
    return f"\x1b[{COLOURS[tone]}m{text}\x1b[0m" if colour and tone and text else text


def _grid(grid: Grid, colour: bool, indent: str = "  ") -> Iterator[str]:
    if grid.title:
        yield indent + _painted(text_of(grid.title), "dim", colour)
    widths = _widths(grid)
    if grid.columns:
        yield indent + _row([Toned(text_of(column), "dim") for column in grid.columns], widths, grid.numbers, colour)
    for row in grid.rows:
        yield indent + _row(row, widths, grid.numbers, colour)


def _widths(grid: Grid) -> list[int]:
    rows = [row for row in (grid.columns, *grid.rows) if row]
    return [max(width(text_of(cell)) for cell in column) for column in zip_longest(*rows, fillvalue="")]


def _row(row: Sequence[Piece], widths: Sequence[int], numbers: Sequence[int], colour: bool) -> str:
    cells = (
        _painted(padded(text_of(cell), columns, right=index in numbers), tone_of(cell), colour)
        for index, (cell, columns) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells)


def _beside(block: Beside, colour: bool) -> Iterator[str]:
    left, right = list(_grid(block.left, False, "")), list(_grid(block.right, False, ""))
    left_width = max(map(width, left), default=0)
    left_painted, right_painted = list(_grid(block.left, colour, "")), list(_grid(block.right, colour, ""))
    if left_width + 8 + max(map(width, right), default=0) > LINE_WIDTH:
        yield from ("  " + row for row in (*left_painted, "", *right_painted))
        return
    for index in range(max(len(left), len(right))):
        shown = left_painted[index] if index < len(left) else ""
        space = " " * (left_width - (width(left[index]) if index < len(left) else 0))
        yield f"  {shown}{space}      {right_painted[index] if index < len(right) else ''}"
