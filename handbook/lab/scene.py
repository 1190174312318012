"""Pictures as lists of marks: a box, a line of text, a line with an arrow, each drawn by one logic in two ways.

`svg(height, marks)` gives a picture for a browser, `contact_sheet(height, scenes)` a PNG with many of them. Units are
px, y grows downwards, a picture is `WIDTH` wide. Both are the same to the byte in every run, and load nothing.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import atan2, ceil, cos, pi, sin

import PIL.Image
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon

WIDTH, MARGIN = 760, 20  # px; a picture is shown at the width of the notebook, at most 900 px
INK, FAINT, PAPER = "#1c2733", "#66717d", "#fdfdfb"
# DejaVu comes with matplotlib and is the widest of these: what fits there fits everywhere. _CJK: for Chinese tokens.
_CJK = sorted({"Noto Sans CJK SC", "Microsoft YaHei", "PingFang SC", "SimHei"} & set(font_manager.get_font_names()))
_SANS, _MONO = ["DejaVu Sans", *_CJK], ["DejaVu Sans Mono", *_CJK]
_SVG_SANS = "DejaVu Sans,Verdana,Segoe UI,Helvetica,Arial,sans-serif"
_SVG_MONO = "DejaVu Sans Mono,Menlo,Consolas,monospace"


def text_width(string: str, size: float) -> float:
    """Px that `string` takes in the fixed-width font of `size` px, and seldom more than it takes in the other."""
    return 0.602 * size * sum(places(character) for character in string)


def places(character: str) -> int:
    """A CJK character is as wide as two others."""
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(string: str, size: float, width: float) -> str:
    """`string` if it fits in `width` px, else as much of it as fits, ending in an ellipsis."""
    if text_width(string, size) <= width:
        return string
    while string and text_width(string + "…", size) > width:
        string = string[:-1]
    return string + "…"


@dataclass(frozen=True)
class Rect:
    """A box with round corners. `name` is not drawn: it says what the mark stands for (in SVG: data-name)."""

    x: float
    y: float
    width: float
    height: float
    fill: str = "none"
    stroke: str = "none"
    line: float = 1.0
    dashed: bool = False
    name: str = ""

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def svg(self) -> str:
        dash = ' stroke-dasharray="5 3"' if self.dashed else ""
        return (
            f'<rect x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}" rx="4"'
            f' fill="{self.fill}" stroke="{self.stroke}" stroke-width="{self.line:g}"{dash}{_name(self.name)}/>'
        )

    def plot(self, axes: Axes, scale: float) -> None:
        style = (0, (5 / self.line, 3 / self.line)) if self.dashed else "-"
        shape = "round,pad=0,rounding_size=4"
        axes.add_patch(
            FancyBboxPatch((self.x, self.y), self.width, self.height, shape, fc=self.fill, ec=self.stroke,
                           lw=self.line * scale, ls=style)
        )  # fmt: skip


@dataclass(frozen=True)
class Text:
    """One line of text on the baseline `y`; `anchor` (start, middle, end) says which end of it `x` is."""

    x: float
    y: float
    string: str
    size: float = 13
    anchor: str = "start"
    bold: bool = False
    mono: bool = False
    fill: str = INK
    name: str = ""

    @property
    def bottom(self) -> float:
        return self.y + 0.3 * self.size

    def svg(self) -> str:
        extra = f' text-anchor="{self.anchor}"' if self.anchor != "start" else ""
        extra += f' fill="{self.fill}"' if self.fill != INK else ""
        extra += ' font-weight="bold"' if self.bold else ""
        extra += f' font-family="{_SVG_MONO}"' if self.mono else ""
        return (
            f'<text x="{self.x:g}" y="{self.y:g}" font-size="{self.size:g}"{extra}{_name(self.name)}>'
            f"{escape(self.string)}</text>"
        )

    def plot(self, axes: Axes, scale: float) -> None:
        align = {"start": "left", "middle": "center", "end": "right"}[self.anchor]
        weight, family = "bold" if self.bold else "normal", _MONO if self.mono else _SANS
        axes.text(self.x, self.y, self.string, ha=align, va="baseline", fontsize=self.size * scale, color=self.fill,
                  weight=weight, family=family, parse_math=False)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A line through `points`, with a head at the last one if it is an `arrow`."""

    points: tuple[tuple[float, float], ...]
    stroke: str = FAINT
    line: float = 1.5
    arrow: bool = True
    name: str = ""

    @property
    def bottom(self) -> float:
        return max(y for _, y in self.points)

    def _head(self) -> list[tuple[float, float]]:
        (x0, y0), (x, y) = self.points[-2:]
        angle, size = atan2(y - y0, x - x0), 8
        sides = [(x - size * cos(angle + turn), y - size * sin(angle + turn)) for turn in (pi / 7, -pi / 7)]
        return [(x, y), *sides]

    def svg(self) -> str:
        path = f'<path d="{_path(self.points)}" fill="none" stroke="{self.stroke}" stroke-width="{self.line:g}"'
        head = f'<path d="{_path(self._head())}z" fill="{self.stroke}"/>' if self.arrow else ""
        return f"{path}{_name(self.name)}/>{head}"

    def plot(self, axes: Axes, scale: float) -> None:
        axes.plot(*zip(*self.points, strict=True), color=self.stroke, lw=self.line * scale)
        if self.arrow:
            axes.add_patch(Polygon(self._head(), fc=self.stroke, ec="none"))


Mark = Rect | Text | Line


def _name(name: str) -> str:
    return f' data-name="{escape(name)}"' if name else ""


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in points)


def svg(height: float, inside: str) -> str:
    """A picture of `height` px around the SVG elements `inside`."""
    box = f'viewBox="0 0 {WIDTH} {height:g}" width="100%" style="display:block" role="img"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="{_SVG_SANS}" fill="{INK}">{inside}</svg>'


def contact_sheet(height: float, scenes: Sequence[Sequence[Mark]]) -> bytes:
    """The scenes, two in a row, as one PNG."""
    gap, dpi, rows = 12, 100, ceil(len(scenes) / 2)
    width, total = 2 * WIDTH + gap, rows * (height + gap) - gap
    figure = Figure(figsize=(width / dpi, total / dpi), dpi=dpi, facecolor="white")
    for place, scene in enumerate(scenes):
        left, upper = place % 2 * (WIDTH + gap), place // 2 * (height + gap)
        box = (left / width, 1 - (upper + height) / total, WIDTH / width, height / total)
        axes = figure.add_axes(box, xlim=(0, WIDTH), ylim=(height, 0))
        axes.set_axis_off()
        for mark in scene:
            mark.plot(axes, 72 / dpi)
    png, small = io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png")
    palette = PIL.Image.open(png).convert("RGB").quantize(256, dither=PIL.Image.Dither.NONE)  # a third of the bytes
    palette.save(small, "png", optimize=True)
    return small.getvalue()
