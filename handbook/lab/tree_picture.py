"""A radix tree as a picture. A node is a row: a box with the tokens of its edge, and at the right what it counts.

A box begins where its parent's box ends, or, where paths are long, a little to the right of where that begins. Below
the tree stands its lru list from head to tail. What a colour says, a border and a word say too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from handbook.lab.played import Look, clip, count, label
from handbook.lab.scene import FAINT, MARGIN, PAPER, WIDTH, Line, Mark, Rect, Text, svg, text_width
from handbook.lab.theatre import wrap
from handbook.lab.tree_state import Tree, TreeNode, TreeState, observe

ROW, BOX, GAP = 34, 25, 24  # px: from row to row, the height of a box, and from a box to its child's
STATE, TOKENS, LOCK, LRU = 532, 650, 697, WIDTH - MARGIN  # the columns: where the first begins, and the others end
WIDEST, NARROWEST = 280.0, 180.0  # a box of which there is more to show
MOST = 18  # rows; of a larger tree the rest is counted
STEPS = (
    999,
    170,
    140,
    115,
    95,
    78,
    64,
    52,
    42,
    34,
    28,
    22,
    18,
)  # px at most from a box's beginning to its child's; 18 always fits

HIT = Look("hit", "#d3f0e3", "#006b4b", 3)
HIT_SPLIT = Look("hit + split", "#d3f0e3", "#006b4b", 3, dashed=True)
SPLIT = Look("split", "#d9f0f7", "#00647d", 3, dashed=True)
NEW = Look("new", "#f8e0ef", "#8f1d65", 3)
EVICTED = Look("evicted", "#fbdfd0", "#a63c00", 3, dashed=True)
LOCKED = Look("locked", "#dcebf8", "#0b5394", 1.5)
CACHED = Look("evictable", "#fff4cf", "#7d5800", 1.5, dashed=True)
PLAIN = Look("", "#ffffff", "#6a747d", 1.5)


def look(node: TreeNode) -> Look:
    """The look of a node: what the step did to it, or else whether it is locked."""
    if "evicted" in node.marks:
        return EVICTED
    if "new" in node.marks:
        return NEW
    if "hit" in node.marks:
        return HIT_SPLIT if "split" in node.marks else HIT
    if "split" in node.marks:
        return SPLIT
    if not node.number or node.lock is None:
        return PLAIN
    return LOCKED if node.lock else CACHED


def words_of(node: TreeNode, size: float = 12, width: float = WIDEST) -> str:
    """The edge as text of at most `width` px."""
    return clip([*node.words, *["…"] * (node.length > len(node.words))] if node.number else ["root"], size, width)


def _inset(node: TreeNode) -> float:
    """From the beginning of a box to its words: room for the number."""
    return 18 + 9.2 * len(str(node.number)) if node.number else 9


def _wish(node: TreeNode) -> float:
    """The width that the box of a node needs to show all."""
    return min(WIDEST, _inset(node) + text_width(words_of(node), 12) + 10)


def visible(state: TreeState) -> list[TreeNode]:
    """At most `MOST` nodes: leaves to which nothing happened go first, the last of them first."""
    nodes = list(state.nodes)
    while len(nodes) > MOST:
        parents = {node.parent for node in nodes}
        leaves = [node for node in nodes if node.number not in parents]
        nodes.remove(([node for node in leaves if not node.marks] or leaves)[-1])
    return nodes


def _starts(nodes: Sequence[TreeNode], step: float) -> dict[int, float]:
    """Where each box begins if a child's begins at most `step` px to the right of its parent's."""
    starts = {nodes[0].number: float(MARGIN)}
    widths = {node.number: _wish(node) for node in nodes}
    for node in nodes[1:]:
        parent = node.parent or 0
        most = step if parent else GAP  # nothing is written in the root, so its children stand below it
        starts[node.number] = starts[parent] + min(widths[parent] + GAP, most)
    return starts


def fitting_step(states: Iterable[TreeState]) -> float:
    """The largest step with which all boxes of all states can be read; the same for a play keeps boxes in place."""
    scenes = [visible(state) for state in states]
    for step in STEPS:
        starts = [_starts(nodes, step) for nodes in scenes]
        ends = [at[node.number] + min(_wish(node), NARROWEST) for nodes, at in zip(scenes, starts, strict=True)
                for node in nodes]  # fmt: skip
        if max(ends, default=0) <= STATE - 12:
            break
    return step


def tree_height(state: TreeState) -> float:
    """Px that `draw_tree` takes."""
    return 22 + ROW * min(MOST, len(state.nodes)) + 20 * (len(state.nodes) > MOST)


def draw_tree(state: TreeState, top: float, step: float) -> list[Mark]:
    """The tree from y = `top` downwards."""
    nodes = visible(state)
    starts, total = _starts(nodes, step), sum(node.length for node in state.alive)
    marks: list[Mark] = [label(top, f"tree: {count(len(state.alive) - 1, 'node')}, {count(total, 'token')}")]
    for end, heading, _ in _columns(nodes[0]):
        marks.append(Text(end, top + 12, heading, 12, "end", fill=FAINT))
    top += 22
    boxes: dict[int, Rect] = {}
    for row, node in enumerate(nodes):
        at, x = look(node), starts[node.number]
        box = Rect(x, top + ROW * row, min(_wish(node), STATE - 12 - x), BOX, at.fill, at.strong, at.line, at.dashed,
                   name=f"{node.name}: {at.label}")  # fmt: skip
        boxes[node.number] = box
        if node.parent is not None:
            cut = at is SPLIT and boxes[node.parent].name.endswith("split")
            marks.append(_edge(boxes[node.parent], box, SPLIT if cut else PLAIN))
        marks += [box, *_row(node, box)]
    if len(nodes) < len(state.nodes):
        rest = f"+ {count(len(state.nodes) - len(nodes), 'more node')}, for which there is no room here"
        marks.append(Text(MARGIN, top + ROW * len(nodes) + 12, rest, 12, fill=FAINT))
    return marks


def _edge(parent: Rect, child: Rect, at: Look) -> Line:
    x, y = child.x - 12, child.y + BOX / 2
    start = (x, parent.bottom) if x < parent.x + parent.width else (parent.x + parent.width, parent.y + BOX / 2)
    corner = ((x, start[1]),) if start[0] != x else ()
    return Line((start, *corner, (x, y), (child.x, y)), at.strong, at.line, arrow=False, name="edge")


def _columns(node: TreeNode) -> list[tuple[float, str, str]]:
    """Where each of its columns ends, its heading, and what it says of the node."""
    columns: list[tuple[float, str, str]] = [(TOKENS, "tokens", str(node.length))]
    if node.lock is not None:
        columns.append((LOCK, "lock", str(node.lock)))
    if node.place is not None:
        columns.append((LRU, "lru", str(node.place or "–")))
    return columns


def _row(node: TreeNode, box: Rect) -> list[Mark]:
    at, y, gone = look(node), box.y + 17, "evicted" in node.marks
    words, x = words_of(node, 12, box.width - _inset(node) - 8), box.x + _inset(node)
    marks: list[Mark] = [Text(x, y, words, 12, mono=True, name=f"edge of {node.name}")]
    if node.number:
        marks.insert(0, Text(box.x + 9, y, str(node.number), 13, bold=True, fill=at.strong))
    if gone:
        marks.append(Line(((x - 2, y - 4), (x + text_width(words, 12) + 2, y - 4)), at.strong, 1.5, False, "struck"))
    middle = box.y + BOX / 2
    marks.append(Line(((box.x + box.width + 5, middle), (STATE - 5, middle)), "#e4e7e3", 1, arrow=False))
    marks.append(Text(STATE, y, at.label, 12, bold=at.line > 2, fill=at.strong, name=f"state of {node.name}"))
    for end, heading, value in [] if gone else _columns(node):
        bold = heading == "lock" and value != "0"
        marks.append(Text(end, y, value, 12, "end", bold, mono=True, name=f"{heading} of {node.name}"))
    return marks


def draw_lru(state: TreeState, top: float) -> tuple[list[Mark], float]:
    """The lru list from y = `top` downwards, what was evicted from it struck; and where it ends."""
    if state.lru is None:
        return [], top
    chips = [*sorted(state.marked("evicted"), key=lambda node: node.place or 0)]
    by_number = {node.number: node for node in state.alive}
    chips += [by_number[number] for number in state.lru]
    marks: list[Mark] = [label(top, "lru list: what nobody locks; the head is evicted next, a use moves to the tail")]
    x, top = MARGIN + 48.0, top + 22
    marks.append(Text(MARGIN, top + 18, "head" if chips else "empty", 13, bold=True))
    for place, node in enumerate(chips):
        at, gone = look(node), "evicted" in node.marks
        words = words_of(node, 12, 112)
        width = _inset(node) + text_width(words, 12) + 9
        if x + width + (44 if place == len(chips) - 1 else 0) > WIDTH - MARGIN:
            x, top = MARGIN + 48.0, top + BOX + 8
        marks.append(Rect(x, top, width, BOX, at.fill, at.strong, at.line, at.dashed))
        left = x + _inset(node)
        if node.number:
            marks.append(Text(x + 9, top + 17, str(node.number), 13, bold=True, fill=at.strong))
        marks.append(Text(left, top + 17, words, 12, mono=True, name="gone" if gone else f"queued {node.number}"))
        if gone:
            marks.append(Line(((left - 2, top + 13), (x + width - 8, top + 13)), at.strong, 1.5, arrow=False))
        x += width + 8
    if chips:
        marks.append(Text(x, top + 18, "tail", 13, bold=True))
    return marks, top + BOX + 12


class TreePicture:
    """A tree as it stood when this picture was made: an SVG in a notebook, an indented list in plain text."""

    def __init__(self, state: TreeState, title: str = "") -> None:
        self.state, self.title = state, title

    def scene(self) -> tuple[float, list[Mark]]:
        """Its height, and its marks."""
        top = 12.0
        marks: list[Mark] = []
        for line in wrap(self.title, 16 * 0.6):
            marks.append(Text(MARGIN, top := top + 22, line, 16, bold=True, name="title"))
        marks += draw_tree(self.state, top + 14, fitting_step([self.state]))
        queue, top = draw_lru(self.state, top + 14 + tree_height(self.state) + 8)
        marks += queue
        sizes = {"evictable_size": self.state.evictable, "protected_size": self.state.protected}
        if said := ", ".join(f"{name} {size}" for name, size in sizes.items() if size is not None):
            marks.append(Text(MARGIN, top := top + 14, said, 13, mono=True, name="sizes"))
        height = max(mark.bottom for mark in marks) + 14
        paper = Rect(0.5, 0.5, WIDTH - 1, height - 1, PAPER, "#d5d8d2")
        return height, [paper, *marks]

    def svg(self) -> str:
        height, marks = self.scene()
        return svg(height, "".join(mark.svg() for mark in marks))

    def __str__(self) -> str:
        depth: dict[int | None, int] = {None: -1}
        lines = [self.title] if self.title else []
        for node in self.state.nodes:
            depth[node.number] = depth[node.parent] + 1
            said = [f"{heading} {value}" for _, heading, value in _columns(node)]
            lines.append("  " * depth[node.number] + ", ".join([words_of(node), *said, look(node).label]).rstrip(", "))
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "image/svg+xml": self.svg()}


def show_tree(tree: Tree, title: str = "", before: TreePicture | None = None, hit: Any = None) -> TreePicture:
    """The tree as it is now; marked: what changed since the picture `before`, and the path to the node `hit`."""
    return TreePicture(observe(tree, before.state if before else None, hits=path_to(hit)), title)


def path_to(node: Any) -> list[Any]:
    """The node and those above it, without the root: their edges spell a prefix."""
    path = []
    while node is not None and node.parent is not None:
        path.append(node)
        node = node.parent
    return path
