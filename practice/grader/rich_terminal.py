"""A page shown by `rich`: the one file that imports it."""

from __future__ import annotations

from typing import TextIO

from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from practice.grader.layout import Beside, Block, Code, Grid, Heading, Line, Page, Piece, text_of, tone_of

STYLES = {"": "", "good": "green", "bad": "red", "dim": "dim", "strong": "bold"}


def show_richly(page: Page, stream: TextIO) -> None:
    console = Console(file=stream, force_terminal=True, highlight=False)
    for index, block in enumerate(page):
        if index and not (isinstance(block, Line) and isinstance(page[index - 1], (Line, Heading))):
            console.print()
        console.print(_renderable(block), soft_wrap=isinstance(block, (Line, Code)))


def _text(piece: Piece) -> Text:
    return Text(text_of(piece), style=STYLES[tone_of(piece)])


def _renderable(block: Block) -> RenderableType:
    if isinstance(block, Heading):
        return Text(text_of(block.text), style="bold")
    if isinstance(block, Line):
        return Text.assemble(*map(_text, block.pieces))
    if isinstance(block, Code):
        rows = (("  > " if index == block.marked else "    ") + text_of(row) for index, row in enumerate(block.lines))
        code = Syntax("", "python", theme="ansi_dark", background_color="default").highlight("\n".join(rows))
        code.rstrip()  # a text, since a `Syntax` would be cut at the window's edge, and a command must stay whole
        return code
    if isinstance(block, Beside):
        return Columns([_table(block.left), _table(block.right)], padding=(0, 4))
    return _table(block)


def _table(grid: Grid) -> Table:
    table = Table(show_header=bool(grid.columns), title=text_of(grid.title) or None, title_justify="left")
    for index, column in enumerate(grid.columns):
        table.add_column(_text(column), justify="right" if index in grid.numbers else "left")
    for row in grid.rows:
        table.add_row(*map(_text, row))
    return table
