"""What a report consists of, before it is text for a terminal or HTML for a notebook."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Toned:
    """A piece of text that is good, bad, dim or strong; `link` is a path from the repository's root, if it leads on."""

    text: str
    tone: str = ""
    link: str = ""


Piece = Union[str, Toned]  # noqa: UP007 (evaluated at run time, where Python 3.10 is the oldest)


@dataclass(frozen=True)
class Heading:
    text: str


@dataclass(frozen=True)
class Line:
    """A sentence or two."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Grid:
    """A table. Without columns it has no header; `numbers` are the columns that are aligned to the right."""

    columns: tuple[Piece, ...]
    rows: tuple[tuple[Piece, ...], ...]
    numbers: tuple[int, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class Beside:
    """Two tables to be compared."""

    left: Grid
    right: Grid


@dataclass(frozen=True)
class Code:
    """Lines that are shown as they are; the one at index `marked` is the one that matters."""

    lines: tuple[str, ...]
    marked: int | None = None


Block = Union[Heading, Line, Grid, Beside, Code]  # noqa: UP007
Page = Sequence[Block]


def line(*pieces: Piece) -> Line:
    return Line(pieces)


def text_of(piece: Piece) -> str:
    return clean(piece if isinstance(piece, str) else piece.text)


def tone_of(piece: Piece) -> str:
    return "" if isinstance(piece, str) else piece.tone


def clean(text: str) -> str:
    """The text with what would move the cursor, change colours or turn the reading direction written out."""
    return "".join(char if _harmless(char) else char.encode("unicode_escape").decode() for char in text)


def one_line(text: str) -> str:
    """The text, as of a file's name, with whatever would break a line or a table written out."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _harmless(char: str) -> bool:
    return char in "\n\t" or char.isprintable() or unicodedata.category(char) == "Zs"


def width(text: str) -> int:
    """Columns on a terminal: a Chinese character takes two, a combining mark none."""
    return sum(
        0 if unicodedata.category(char) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def padded(text: str, columns: int, right: bool = False) -> str:
    space = " " * (columns - width(text))
    return space + text if right else text + space
