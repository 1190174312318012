"""What the radix tree promises, said without a tree and without speed: the oracle of its tests.

Sequences, locks, and an LRU of tokens: a cached token is known by its whole prefix, a tuple that ends with it, and a
lock by the sequence that it covers. `lru` lists the tokens that no lock covers, the next to be evicted first; a use
moves the tokens of a sequence to its end, the last token first. `ends` are the places where an edge of the tree ends,
since eviction takes whole edges. Nothing is checked: the tests call it with what is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Prefix = tuple[Any, ...]


class NaiveRadixCache:
    def __init__(self) -> None:
        self.slot: dict[Prefix, int] = {}
        self.locks: list[Prefix] = []
        self.lru: list[Prefix] = []
        self.ends: set[Prefix] = set()

    def cached(self, key: Sequence[Any]) -> Prefix:
        """The longest cached prefix of key."""
        return max((tuple(key[:n]) for n in range(len(key) + 1) if n == 0 or tuple(key[:n]) in self.slot), key=len)

    def num_locks(self, prefix: Prefix) -> int:
        return sum(lock[: len(prefix)] == prefix for lock in self.locks)

    def slots(self, prefix: Prefix) -> list[int]:
        return [self.slot[prefix[: n + 1]] for n in range(len(prefix))]

    def use(self, prefix: Prefix) -> None:
        """Cut an edge at the end of prefix, and renew its unlocked tokens."""
        if prefix:
            self.ends.add(prefix)
        for n in range(len(prefix), 0, -1):
            token = prefix[:n]
            if token in self.lru:
                self.lru.remove(token)
            if self.num_locks(token) == 0:
                self.lru.append(token)

    def match(self, key: Sequence[Any]) -> list[int]:
        prefix = self.cached(key)
        self.use(prefix)
        return self.slots(prefix)

    def insert(self, key: Sequence[Any], value: Sequence[int]) -> int:
        prefix = self.cached(key)
        self.use(prefix)
        for n in range(len(prefix), len(key)):
            self.slot[tuple(key[: n + 1])] = value[n]
        self.use(tuple(key))
        return len(prefix)

    def lock(self, prefix: Prefix) -> None:
        self.locks.append(prefix)
        self.lru = [token for token in self.lru if prefix[: len(token)] != token]

    def unlock(self, prefix: Prefix) -> None:
        self.locks.remove(prefix)
        for n in range(len(prefix), 0, -1):
            if self.num_locks(prefix[:n]) == 0:
                self.lru.append(prefix[:n])

    def evict(self, num_tokens: int) -> list[int]:
        slots: list[int] = []
        while len(slots) < num_tokens and self.lru:
            leaf = self.lru[0]
            start = max((n for n in range(len(leaf)) if leaf[:n] in self.ends), default=0)
            slots += self.slots(leaf)[start:]
            self.ends.remove(leaf)
            for n in range(start, len(leaf)):
                self.lru.remove(leaf[: n + 1])
                del self.slot[leaf[: n + 1]]
        return slots


def contents(tree: Any) -> dict[Prefix, int]:
    """The slot of each token in a real tree, by its whole prefix."""
    found: dict[Prefix, int] = {}
    nodes = [((), tree.root)]
    for prefix, node in nodes:
        found |= {(*prefix, *node.key[: i + 1]): slot for i, slot in enumerate(node.value)}
        nodes += [((*prefix, *node.key), child) for child in node.children.values()]
    return found
