"""What is true of every picture: its texts can be read, and its marks can be found by name."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from functools import cache
from itertools import combinations

from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.ft2font import FT2Font

from handbook.lab.scene import Mark, Rect, Text


def named(svg: str, start: str) -> dict[str, list[str]]:
    """The texts of all marks whose name begins with `start`, by name, in the order of the picture."""
    found: dict[str, list[str]] = {}
    for node in ET.fromstring(svg).iter():
        if (name := node.get("data-name", "")).startswith(start):
            found.setdefault(name, []).append(node.text or "")
    return found


def assert_legible(height: float, scenes: Sequence[Sequence[Mark]]) -> None:
    """No text leaves its box or the picture, and none touches another."""
    for scene in scenes:
        boxes = [mark for mark in scene if isinstance(mark, Rect)]
        areas = {}
        for mark in scene:
            if isinstance(mark, Text) and mark.string:
                left, right = extent(mark)
                around = [box for box in boxes if box.x <= mark.x <= box.x + box.width and box.y < mark.y <= box.bottom]
                box = min(around, key=lambda box: box.width)
                assert box.x <= left and right <= box.x + box.width, f"{mark.string!r} leaves its box"
                areas[mark] = (left, right, mark.y - 0.75 * mark.size, mark.bottom)
        assert max(bottom for _, _, _, bottom in areas.values()) < height
        for one, two in combinations(areas, 2):
            (l1, r1, t1, b1), (l2, r2, t2, b2) = areas[one], areas[two]
            assert r1 <= l2 or r2 <= l1 or b1 <= t2 or b2 <= t1, f"{one.string!r} touches {two.string!r}"


def extent(mark: Text) -> tuple[float, float]:
    """Left and right end of a text in DejaVu, the widest of the fonts asked for; a Chinese character counts as `ww`."""
    font = dejavu(mark.mono, mark.bold)
    font.set_size(mark.size, 72)
    font.set_text(re.sub(r"[⺀-鿿＀-￯]", "ww", mark.string))
    width = font.get_width_height()[0] / 64
    start = mark.x - width * {"start": 0, "middle": 0.5, "end": 1}[mark.anchor]
    return start, start + width


@cache
def dejavu(mono: bool, bold: bool) -> FT2Font:
    return get_font(
        findfont(FontProperties(family=f"DejaVu Sans{' Mono' * mono}", weight="bold" if bold else "normal"))
    )
