"""The textbook radix cache: baseline of the benchmark, oracle of the eviction order, and what people write first.

Tokens are compared one by one, the rest of the key is copied at every node, and each eviction collects all leaves of
the tree in a heap ordered by last use. Nothing is checked.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any


class PlainNode:
    __slots__ = ("children", "key", "last_use", "lock_ref", "parent", "value")

    def __init__(self, key: list[Any], value: list[int], parent: PlainNode | None) -> None:
        self.key, self.value, self.parent = key, value, parent
        self.children: dict[Any, PlainNode] = {}
        self.lock_ref = self.last_use = 0

    def __lt__(self, other: PlainNode) -> bool:
        return self.last_use < other.last_use


class PlainRadixCache:
    def __init__(self) -> None:
        self.root = PlainNode([], [], None)
        self.clock = 0
        self.evictable_size = self.protected_size = 0

    def total_size(self) -> int:
        return self.evictable_size + self.protected_size

    def match_prefix(self, key: Sequence[Any]) -> tuple[list[int], PlainNode]:
        self.clock += 1
        node, slots = self.root, []
        while key and key[0] in node.children:
            child = node.children[key[0]]
            length = 0
            for ours, theirs in zip(child.key, key, strict=False):
                if ours != theirs:
                    break
                length += 1
            if length < len(child.key):
                child = self._split(child, length)
            child.last_use = self.clock
            slots += child.value
            node, key = child, key[length:]
        return slots, node

    def _split(self, node: PlainNode, length: int) -> PlainNode:
        upper = PlainNode(node.key[:length], node.value[:length], node.parent)
        upper.lock_ref = node.lock_ref
        upper.children[node.key[length]] = node
        assert node.parent is not None
        node.parent.children[upper.key[0]] = upper
        node.key, node.value, node.parent = node.key[length:], node.value[length:], upper
        return upper

    def insert(self, key: Sequence[Any], value: Sequence[int]) -> int:
        slots, node = self.match_prefix(key)
        if len(slots) < len(key):
            leaf = PlainNode(list(key[len(slots) :]), list(value[len(slots) :]), node)
            leaf.last_use = self.clock
            node.children[leaf.key[0]] = leaf
            self.evictable_size += len(leaf.key)
        return len(slots)

    def inc_lock_ref(self, node: PlainNode) -> None:
        above: PlainNode | None = node
        while above is not None:
            if above.lock_ref == 0:
                self.evictable_size -= len(above.key)
                self.protected_size += len(above.key)
            above.lock_ref += 1
            above = above.parent

    def dec_lock_ref(self, node: PlainNode) -> None:
        self.clock += 1
        above: PlainNode | None = node
        while above is not None:
            above.lock_ref -= 1
            if above.lock_ref == 0:
                self.evictable_size += len(above.key)
                self.protected_size -= len(above.key)
                above.last_use = self.clock
            above = above.parent

    def evict(self, num_tokens: int) -> list[int]:
        leaves = self._leaves()
        heapq.heapify(leaves)
        slots: list[int] = []
        while len(slots) < num_tokens and leaves:
            leaf = heapq.heappop(leaves)
            parent = leaf.parent
            assert parent is not None
            del parent.children[leaf.key[0]]
            self.evictable_size -= len(leaf.key)
            slots += leaf.value
            if parent is not self.root and not parent.children and parent.lock_ref == 0:
                heapq.heappush(leaves, parent)
        return slots

    def _leaves(self) -> list[PlainNode]:
        """All leaves that nobody locks."""
        leaves, stack = [], [self.root]
        while stack:
            node = stack.pop()
            if node.children:
                stack.extend(node.children.values())
            elif node.lock_ref == 0 and node is not self.root:
                leaves.append(node)
        return leaves
