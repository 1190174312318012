"""A radix tree as plain values: what a step did to it is seen by comparing the values before and after.

Any tree whose nodes have `key` and `children` can be observed, finished or not; `lock_ref`, the lru list and the two
sizes are taken if it has them. Observing walks from the root and calls none of its methods, so it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from handbook.lab.played import each, lower, printable

Tree = Any  # a `handbook.radix_tree.RadixCache`, or as much of one as has been built
WORDS = 60  # tokens of an edge that are kept to be shown


@dataclass(frozen=True)
class TreeNode:
    """A node after a step. `marks` say what the step did to it: hit, split, new, evicted (then it is a ghost)."""

    number: int  # 0 is the root; the others are numbered as they appear
    parent: int | None
    words: tuple[str, ...]  # the beginning of its edge
    length: int  # tokens of its edge
    lock: int | None  # None: nodes have no locks yet
    place: int | None  # in the lru list, from 1; 0: it is not in it; None: there is no such list yet
    marks: frozenset[str]
    used: int  # the step that used it last
    node: Any = field(repr=False, compare=False)  # the node itself, to know it again

    @property
    def name(self) -> str:
        return f"node {self.number}" if self.number else "the root"


@dataclass(frozen=True)
class TreeState:
    """All of a tree after a step, as values that no later step changes. A parent stands before its children."""

    step: int
    nodes: tuple[TreeNode, ...]
    lru: tuple[int, ...] | None  # numbers of nodes, head first; None: the tree has no such list yet
    evictable: int | None
    protected: int | None
    next_number: int

    def marked(self, mark: str) -> list[TreeNode]:
        return [node for node in self.nodes if mark in node.marks]

    @property
    def alive(self) -> list[TreeNode]:
        return [node for node in self.nodes if "evicted" not in node.marks]

    def cuts(self) -> list[tuple[TreeNode, TreeNode]]:
        """Upper and lower part of each edge that the step cut."""
        parts = {node.number: node for node in self.marked("split")}
        return [(parts[node.parent], node) for node in parts.values() if node.parent in parts]

    def older_locked(self, gone: Iterable[TreeNode]) -> list[TreeNode]:
        """Locked leaves that were used longer ago than any of the evicted ones."""
        parents, first = {node.parent for node in self.alive}, min(node.used for node in gone)
        return [node for node in self.alive if node.number not in parents and node.lock and node.used < first]


def observe(
    tree: Tree, before: TreeState | None = None, hits: Iterable[Any] = (), used: Iterable[Any] = ()
) -> TreeState:
    """The tree now; compared with `before`, its nodes are marked. `hits` and `used` are nodes of the tree itself."""
    step, next_number = (before.step + 1, before.next_number) if before else (0, 0)
    old = {id(seen.node): seen for seen in before.alive} if before else {}
    lru = getattr(tree, "lru", None)
    place = {id(node): place for place, node in enumerate(lru or (), 1)}
    hit, numbers = {id(node) for node in hits}, {key: seen.number for key, seen in old.items()}
    just_used = hit | {id(node) for node in used}
    nodes: list[TreeNode] = []
    stack: list[tuple[Any, int | None]] = [(tree.root, None)]
    while stack:
        node, parent = stack.pop()
        key, seen, children = id(node), old.get(id(node)), list(getattr(node, "children", {}).values())
        if key not in numbers:
            numbers[key], next_number = next_number, next_number + 1
        below = [old[id(child)] for child in children if id(child) in old]
        marks = {"hit"} if key in hit else set()
        if before and (seen is None or len(node.key) < seen.length):
            marks.add("split" if seen or below else "new")
        last = max((other.used for other in ([seen] if seen else below)), default=step)
        if key in just_used or (seen and key in place and not seen.place):  # unlocking is a use
            last = step
        words = tuple(printable(str(token)) for token in node.key[:WORDS])
        lock, at = getattr(node, "lock_ref", None), None if lru is None else place.get(key, 0)
        nodes.append(TreeNode(numbers[key], parent, words, len(node.key), lock, at, frozenset(marks), last, node))
        stack += [(child, numbers[key]) for child in reversed(children)]
    listed = None if lru is None else tuple(numbers[id(node)] for node in lru if id(node) in numbers)
    sizes = getattr(tree, "evictable_size", None), getattr(tree, "protected_size", None)
    return TreeState(step, tuple(_with_ghosts(nodes, list(old.values()))), listed, *sizes, next_number)


def _with_ghosts(nodes: list[TreeNode], old: list[TreeNode]) -> list[TreeNode]:
    """`nodes`, and those of `old` that are gone, where they stood; not those whose edge went to their parent."""
    lengths, now = {seen.number: seen.length for seen in old}, {node.number: node for node in nodes}
    order = {seen.number: place for place, seen in enumerate(old)}
    children: dict[int | None, list[TreeNode]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    for seen in old:
        parent = now.get(-1 if seen.parent is None else seen.parent)
        if seen.number in now or (parent and parent.length > lengths[parent.number]):
            continue
        siblings = children.setdefault(seen.parent, [])
        later = [place for place, node in enumerate(siblings) if order.get(node.number, len(old)) > order[seen.number]]
        siblings.insert(min(later, default=len(siblings)), replace(seen, marks=frozenset({"evicted"})))
    found: list[TreeNode] = []
    stack = children[None][::-1]
    while stack:
        found.append(stack.pop())
        stack += reversed(children.get(found[-1].number, []))
    return found


def these(nodes: Sequence[TreeNode], one: str, many: str) -> str:
    """'Node 3 is', 'The root and nodes 1 and 2 are'."""
    numbers = [node.number for node in nodes if node.number]
    if len(numbers) == len(nodes):
        return each("node", numbers, one, many)
    return f"The root and {lower(each('node', numbers, many, many))}" if numbers else f"The root {one}"
