"""A page as HTML for a notebook: inline styles alone, readable on light and dark ground.

Colours are the surrounding ones; what has to stand out is bold, a word, or a badge that brings its own ground along.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape
from pathlib import Path
from urllib.parse import quote

from practice.grader.layout import Beside, Block, Code, Grid, Heading, Line, Page, Piece, Toned, text_of, tone_of

ROOT = Path(__file__).parents[2]

# White on these has a contrast of 5 to 1 and more, so a badge reads on any ground.
STYLES = {
    "": "",
    "good": "background:#1a7f37;color:#fff;border-radius:4px;padding:0 .4em",
    "bad": "background:#b3261e;color:#fff;border-radius:4px;padding:0 .4em",
    "dim": "opacity:.75",
    "strong": "font-weight:bold",
}
FAINT = "rgba(128,128,128,.14)"
RULE = "1px solid rgba(128,128,128,.5)"
CELL = f"border:{RULE};padding:.15em .6em;color:inherit;background:transparent"
MONO = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.92em"


def html(page: Page) -> str:
    inside = "\n".join(_block(block) for block in page)
    return f'<div style="line-height:1.5;color:inherit">\n{inside}\n</div>'


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f'<div style="font-weight:bold;margin-top:.8em">{escape(text_of(block.text))}</div>'
    if isinstance(block, Line):
        return f"<div>{''.join(map(_piece, block.pieces))}</div>"
    if isinstance(block, Code):
        rows = "\n".join(_code_row(row, index == block.marked) for index, row in enumerate(block.lines))
        style = f"background:{FAINT};color:inherit;padding:.5em .8em;margin:.3em 0;overflow-x:auto;{MONO}"
        return f'<pre style="{style}">{rows}</pre>'
    if isinstance(block, Beside):
        both = _table(block.left) + _table(block.right)
        return f'<div style="display:flex;flex-wrap:wrap;gap:.5em 2.5em">{both}</div>'
    return _table(block)


def _code_row(row: str, marked: bool) -> str:
    text = escape(text_of(row))
    return f'<span style="font-weight:bold">{text}</span>  &larr;' if marked else text


def _piece(piece: Piece) -> str:
    text, tone = escape(text_of(piece)), tone_of(piece)
    if isinstance(piece, Toned) and piece.link:
        path, _, heading = piece.link.partition("#")
        # Relative to the working folder, which in a notebook is the notebook's own.
        try:
            target = Path(os.path.relpath(ROOT / path)).as_posix()
        except ValueError:  # on another drive of Windows
            target = (ROOT / path).as_uri()
        target += f"#{heading}" if heading else ""
        return f'<a href="{escape(quote(target, safe="/#.-_"))}">{text}</a>'
    return f'<span style="{STYLES[tone]}">{text}</span>' if tone else text


def _table(grid: Grid) -> str:
    caption = f'<caption style="text-align:left;color:inherit">{escape(text_of(grid.title))}</caption>'
    head = f"<tr>{''.join(_cells('th', grid.columns, grid.numbers))}</tr>" if grid.columns else ""
    body = "".join(f"<tr>{''.join(_cells('td', row, grid.numbers))}</tr>" for row in grid.rows)
    style = "border-collapse:collapse;margin:.3em 0;color:inherit"
    return f'<table style="{style}">{caption if grid.title else ""}{head}{body}</table>'


def _cells(tag: str, row: tuple[Piece, ...], numbers: tuple[int, ...]) -> Iterator[str]:
    for index, cell in enumerate(row):
        side = "right" if index in numbers else "left"
        yield f'<{tag} style="{CELL};text-align:{side}">{_piece(cell)}</{tag}>'
