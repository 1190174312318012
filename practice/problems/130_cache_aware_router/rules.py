"""The rules of problem 130, as plainly as they can be put: the oracle, and the state that a story shows.

Each prefix of full blocks gets a number when it is first seen, found by its parent's number and the tokens of its
last block. So two have the same number exactly when all tokens are the same, and nothing is hashed that could collide.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from practice.grader.contract import Table

MOST_SHOWN = 8  # workers of the table, and blocks of each index


class RouterRules:
    def __init__(
        self,
        num_workers: int,
        *,
        block_size: int = 16,
        match_threshold: float = 0.5,
        balance_abs: int = 32,
        balance_rel: float = 1.1,
        index_blocks: int = 4096,
    ) -> None:
        self.block_size, self.match_threshold, self.index_blocks = block_size, match_threshold, index_blocks
        self.balance_abs, self.balance_rel = balance_abs, balance_rel
        self.loads, self.num_requests = [0] * num_workers, [0] * num_workers
        self.indexes = [OrderedDict[int, None]() for _ in range(num_workers)]  # the oldest first
        self.prefixes: dict[tuple[int, tuple[int, ...]], int] = {}  # numbered from 1; 0 is the empty prefix

    def route(self, tokens: list[int]) -> int:
        prefixes = self.full_blocks(tokens)
        matches = [leading(prefixes, index) for index in self.indexes]
        low, high, best = min(self.loads), max(self.loads), max(matches)
        candidates = list(range(len(self.loads)))
        if high - low > self.balance_abs and high > self.balance_rel * low:
            pass
        elif best * self.block_size > self.match_threshold * len(tokens):
            candidates = [worker for worker in candidates if matches[worker] == best]
        worker = min(candidates, key=lambda worker: (self.loads[worker], self.num_requests[worker], worker))
        remember(prefixes, self.indexes[worker], self.index_blocks)
        self.loads[worker] += 1
        self.num_requests[worker] += 1
        return worker

    def finish(self, worker: int) -> None:
        self.loads[worker] -= 1

    def full_blocks(self, tokens: list[int]) -> list[int]:
        numbers, parent = [], 0
        for end in range(self.block_size, len(tokens) + 1, self.block_size):
            block = parent, tuple(tokens[end - self.block_size : end])
            parent = self.prefixes.setdefault(block, len(self.prefixes) + 1)
            numbers.append(parent)
        return numbers

    def tables(self) -> list[Table]:
        rows = [
            (str(worker), str(self.loads[worker]), str(self.num_requests[worker]), str(len(index)), self._shown(index))
            for worker, index in enumerate(self.indexes[:MOST_SHOWN])
        ]
        if len(self.indexes) > MOST_SHOWN:
            rows.append(("...", "", "", "", f"+{len(self.indexes) - MOST_SHOWN}"))
        return [Table("workers", ("worker", "load", "requests so far", "blocks", "index, newest first"), tuple(rows))]

    def _shown(self, index: OrderedDict[int, None]) -> str:
        by_number = list(self.prefixes)
        shown = []
        for number in list(reversed(index))[:MOST_SHOWN]:
            path: list[str] = []
            while number:
                number, tokens = by_number[number - 1]
                path.insert(0, f"[{' '.join(map(str, tokens))}]")
            shown.append(" > ".join(path if len(path) <= 4 else [path[0], "...", *path[-2:]]))
        return ", ".join(shown) + (f", ... +{len(index) - MOST_SHOWN}" if len(index) > MOST_SHOWN else "")


def leading(prefixes: Sequence[int], index: OrderedDict[int, None]) -> int:
    """How many of the prefixes the index holds, consecutive from the first. Changes nothing."""
    for number, prefix in enumerate(prefixes):
        if prefix not in index:
            return number
    return len(prefixes)


def remember(prefixes: Sequence[int], index: OrderedDict[int, None], most: int) -> None:
    """Make every prefix the most recent, from the last to the first; then the oldest go until `most` remain."""
    for prefix in reversed(prefixes):
        index.pop(prefix, None)
        index[prefix] = None
    while len(index) > most:
        index.popitem(last=False)
