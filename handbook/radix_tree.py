"""Prefix caching with a radix tree: prompts that begin alike share the path of what they have in common.

The idea: the edge to a node carries a run of tokens and the KV slot of each, and a path from the root spells a prefix.
A prompt is followed down the tree as long as it agrees, to the token; where it leaves an edge, the edge is cut.
All nodes that nobody locks stand in ONE list. Whatever is used is renewed in it from the deepest node up to the
root, so every child stands before its parent, and the head of the list is always a leaf: the least recently used
one, the next to be evicted. (The free queue of hash blocks keeps the same order by freeing the last block first.)

Invariants: siblings differ in the first token of their edges, and no edge but the root's is empty; a node is in `lru`
exactly when its `lock_ref` is 0, children before parents; evictable and protected size are the tokens in and outside.
Source: RadixAttention (SGLang, arXiv 2312.07104); in SGLang 0.5.23 `RadixCache` (srt/mem_cache/radix_cache.py) and
`UnifiedRadixCache`.
"""

# Woven from notebooks/zh/04_radix_tree.ipynb by make build: edit it there.

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False, repr=False, slots=True)
class Node:
    """A node, and the edge that leads to it: a run of tokens and the KV slot of each."""

    key: list[Hashable]
    value: list[int]
    parent: Node | None = None
    children: dict[Hashable, Node] = field(default_factory=dict)  # by the first token of their edges
    lock_ref: int = 0  # locks on this node and on nodes below it
    num_locks: int = 0  # those on this node itself

    def __repr__(self) -> str:
        tokens = ", ".join(map(repr, self.key[:8])) + ", ..." * (len(self.key) > 8)
        return f"the node of {len(self.key)} tokens [{tokens}]"


def as_list(items: Sequence[Any]) -> list[Any]:
    """items, copied if they are no list, whose slices would never equal those of an edge."""
    return items if isinstance(items, list) else list(items)


def common_length(edge: list[Any], key: list[Any], start: int) -> int:
    """How many tokens edge and key[start:] share at their beginnings.

    Slices are compared, at the speed of C, and most edges agree whole. Otherwise the compared window doubles until it
    holds the first difference, and is halved down to it: time in proportion to the key, however long the edge.
    """
    if edge == key[start : start + len(edge)]:
        return len(edge)
    low, high = 0, 1
    while edge[low:high] == key[start + low : start + high]:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if edge[low:middle] == key[start + low : start + middle]:
            low = middle
        else:
            high = middle
    return low


class RadixCache:
    """Which prefixes are cached, and in which KV slots. Sizes are in tokens, and a token is anything hashable."""

    def __init__(self) -> None:
        self.root = Node([], [])
        self.lru: OrderedDict[Node, None] = OrderedDict({self.root: None})  # unlocked nodes, evicted from the head
        self.evictable_size = self.protected_size = 0

    def find(self, key: Sequence[Hashable], start: Node | None = None) -> tuple[Node, int, int]:
        """Follow key down from start (the root) while it agrees; changes nothing.

        Returns the last node on the way, how many tokens of its edge agree, and how many tokens of key in all.
        """
        key = as_list(key)
        node = self.root if start is None else start
        length, total = len(node.key), 0
        while total < len(key) and length == len(node.key) and (child := node.children.get(key[total])):
            node, length = child, common_length(child.key, key, total)
            total += length
        return node, length, total

    def split(self, node: Node, length: int) -> Node:
        """The node that ends after `length` tokens of node's edge: node itself, or a new one cut off above it.

        `node` stays the lower part: who locked it holds all that it held, and the new part inherits the count. A split
        is no use: until the caller renews or locks the upper part, it stands behind its parent.
        """
        if length == len(node.key):
            return node
        upper = Node(node.key[:length], node.value[:length], node.parent, {node.key[length]: node}, node.lock_ref)
        assert node.parent is not None, "the root's edge is empty, so it is never cut"
        node.parent.children[upper.key[0]] = upper
        node.parent = upper
        del node.key[:length], node.value[:length]
        if upper.lock_ref == 0:
            self.lru[upper] = None
        return upper

    def path(self, node: Node) -> list[Node]:
        """node and all nodes above it, the root last. A node that is not in this tree (any more) is a ValueError."""
        path: list[Node] = []
        above: Node | None = node
        while above is not None:
            path.append(above)
            above = above.parent
        if not path or path[-1] is not self.root:
            raise ValueError(f"{node} is not in this tree; if it was evicted since its match, match the key again.")
        return path

    def slots(self, node: Node, above: Node | None = None) -> list[int]:
        """The KV slots of the prefix that ends at node, without those up to `above`."""
        path = self.path(node)
        slots: list[int] = []
        for each in reversed(path[: path.index(above or self.root)]):
            slots += each.value
        return slots

    def _use(self, node: Node) -> None:
        """Renew node and all above it, the deepest first, so that every child stands before its parent."""
        for each in self.path(node):
            if each.lock_ref == 0:
                self.lru.move_to_end(each)

    def insert(self, key: Sequence[Hashable], value: Sequence[int]) -> int:
        """Make key a cached prefix, token key[i] in slot value[i]. Returns how much of it was cached already.

        That part keeps its slots: those in value are the caller's to free. Different lengths are a ValueError.
        """
        if len(key) != len(value):
            raise ValueError(f"{len(key)} tokens with {len(value)} slots: give one slot for each token.")
        key, value = as_list(key), as_list(value)
        node, length, num_present = self.find(key)
        node = self.split(node, length)
        if num_present < len(key):
            node = self.add(node, key[num_present:], value[num_present:])
        self._use(node)
        return num_present

    def add(self, parent: Node, key: list[Hashable], value: list[int]) -> Node:
        """A new leaf under parent, which has no child with key's first token. The lists are the leaf's from now on."""
        leaf = parent.children[key[0]] = Node(key, value, parent)
        self.lru[leaf] = None
        self.evictable_size += len(leaf.key)
        return leaf

    def match_prefix(self, key: Sequence[Hashable]) -> tuple[list[int], Node]:
        """The KV slots of the longest cached prefix of key, and the node where it ends, cut off there if need be.

        A use of exactly that prefix: what lies below the cut is as old as before.
        """
        node, length, _ = self.find(key)
        node = self.split(node, length)
        self._use(node)
        return self.slots(node), node

    def inc_lock_ref(self, node: Node) -> None:
        """Lock node and all above it against eviction. A node that was evicted since its match is a ValueError."""
        for each in self.path(node):
            if each.lock_ref == 0:
                del self.lru[each]
                self.evictable_size -= len(each.key)
                self.protected_size += len(each.key)
            each.lock_ref += 1
        node.num_locks += 1

    def dec_lock_ref(self, node: Node) -> None:
        """Undo one `inc_lock_ref` of this node; that is a use of the nodes which nobody locks any more."""
        path = self.path(node)
        if node.num_locks == 0:
            raise ValueError(f"{node} is not locked itself, so it cannot be unlocked: unlock the node that you locked.")
        node.num_locks -= 1
        for each in path:  # the deepest first
            each.lock_ref -= 1
            if each.lock_ref == 0:
                self.lru[each] = None
                self.protected_size -= len(each.key)
                self.evictable_size += len(each.key)

    def evict(self, num_tokens: int) -> list[int]:
        """Remove least recently used leaves, whole, until num_tokens slots are free or all is locked; those slots."""
        if not isinstance(num_tokens, int) or num_tokens < 0:
            raise ValueError(f"cannot evict {num_tokens!r} tokens: give a whole number that is not negative.")
        slots: list[int] = []
        while len(slots) < num_tokens and self.evictable_size > 0:
            leaf, _ = self.lru.popitem(last=False)
            assert leaf.parent is not None, "the root stands behind all others"
            del leaf.parent.children[leaf.key[0]]
            leaf.parent = None
            self.evictable_size -= len(leaf.key)
            slots += leaf.value
        return slots

    def total_size(self) -> int:
        """Cached tokens."""
        return self.evictable_size + self.protected_size

    def check_invariants(self) -> None:
        """AssertionError naming the broken rule, if one is broken. For tests: it looks at every node."""
        assert self.root.parent is None and not self.root.key, "the root has no edge"
        nodes = [self.root]
        for node in nodes:
            assert len(node.key) == len(node.value), "an edge has one slot for each token"
            locks_below = sum(child.lock_ref for child in node.children.values())
            assert node.lock_ref == node.num_locks + locks_below, "lock_ref counts the locks here and below"
            assert node.num_locks >= 0, "a lock count is never negative"
            for token, child in node.children.items():
                assert child.key and child.key[0] == token, "a child is found by the first token of its edge"
                assert child.parent is node, "a child knows its parent"
            nodes += node.children.values()
        place = {node: place for place, node in enumerate(self.lru)}
        assert place.keys() == {node for node in nodes if node.lock_ref == 0}, "the list holds the unlocked nodes"
        for node in place:
            above = node.parent if node.parent in place else node
            assert place[node] <= place[above], "a child stands before its parent"
        evictable = sum(len(node.key) for node in place)
        assert self.evictable_size == evictable, "evictable_size is the tokens of unlocked nodes"
        assert self.total_size() == sum(len(node.key) for node in nodes), "protected_size is the tokens of locked nodes"

    def join(self, node: Node) -> list[int]:
        """Undo a split that no lock needs: node takes over the edge of its only child, a leaf that has all its locks.

        Returns the slots that it took over; none if it was not so, or if node is the root.
        """
        if node is self.root or len(node.children) != 1 or node.num_locks > 0 or node.lock_ref == 0:
            return []
        (leaf,) = node.children.values()
        if leaf.children:
            return []
        node.key += leaf.key
        node.value += leaf.value
        node.num_locks, node.children, leaf.parent = leaf.num_locks, {}, None
        return leaf.value
