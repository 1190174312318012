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


class NaiveRadixPool:
    """The pool on top of it: a page is a token of the model, and each table holds one lock."""

    def __init__(self, num_blocks: int, page_size: int) -> None:
        self.page_size = page_size
        self.cache = NaiveRadixCache()
        self.holders = [0] * num_blocks
        self.queue = list(range(num_blocks))

    def pages(self, token_ids: Sequence[Any], num_tokens: int) -> Prefix:
        """The whole pages of the first num_tokens tokens: tuples, or the tokens themselves where a page is one."""
        starts = range(0, num_tokens - self.page_size + 1, self.page_size)
        if self.page_size == 1:
            return tuple(token_ids[:num_tokens])
        return tuple(tuple(token_ids[start : start + self.page_size]) for start in starts)

    def registered(self, table: Sequence[int]) -> Prefix:
        """The longest prefix whose slots a table begins with."""
        prefixes = [prefix for prefix in self.cache.slot if self.cache.slots(prefix) == list(table[: len(prefix)])]
        return max(prefixes, key=len, default=())

    def lookup(self, token_ids: Sequence[Any]) -> list[int]:
        return self.cache.slots(self.cache.cached(self.pages(token_ids, len(token_ids))))

    def touch(self, blocks: Sequence[int]) -> None:
        prefix = self.registered(blocks)
        if prefix:
            self.cache.ends.add(prefix)
            self.cache.lock(prefix)
        for block in blocks:
            self.holders[block] += 1

    def allocate(self, n: int) -> list[int] | None:
        if n > len(self.queue) + len(self.cache.lru):
            return None
        self.queue += self.cache.evict(n - len(self.queue))
        blocks, self.queue = self.queue[:n], self.queue[n:]
        for block in blocks:
            self.holders[block] = 1
        return blocks

    def free(self, table: Sequence[int]) -> None:
        prefix = self.registered(table)
        if prefix:
            self.cache.unlock(prefix)
        for block in table:
            self.holders[block] -= 1
        self.queue += table[len(prefix) :]

    def cache_blocks(self, token_ids: Sequence[Any], table: list[int], num_computed: int) -> list[int]:
        key, before = self.pages(token_ids, num_computed), self.registered(table)
        if len(key) <= len(before):
            return table
        num_present = self.cache.insert(key, table[: len(key)])
        self.cache.lock(key)
        if before:
            self.cache.unlock(before)
            self.forget_end(before)
        duplicates = table[len(before) : num_present]
        table = self.cache.slots(key) + table[len(key) :]
        for block in duplicates:
            self.holders[block] = 0
        for block in table[len(before) : num_present]:
            self.holders[block] += 1
        self.queue += duplicates
        return table

    def forget_end(self, prefix: Prefix) -> None:
        """An end that no table needs, with one edge below it that is a leaf, is none any more."""
        below = [end for end in self.cache.ends if len(end) > len(prefix) and end[: len(prefix)] == prefix]
        if len(below) == 1 and prefix not in self.cache.locks:
            self.cache.ends.remove(prefix)
