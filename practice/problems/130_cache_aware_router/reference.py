from __future__ import annotations

import struct
from collections import OrderedDict
from hashlib import sha256


class CacheAwareRouter:
    """Sends a request where its prefix is cached, unless the loads are too uneven."""

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
        self.block_size = block_size
        self.as_bytes = struct.Struct(f"<{block_size}q").pack
        self.match_threshold = match_threshold
        self.balance_abs = balance_abs
        self.balance_rel = balance_rel
        self.index_blocks = index_blocks
        self.loads = [0] * num_workers
        self.num_requests = [0] * num_workers
        self.indexes: list[OrderedDict[bytes, None]] = [OrderedDict() for _ in range(num_workers)]  # the oldest first

    def keys(self, tokens: list[int]) -> list[bytes]:
        """One key for each full block: equal exactly when all tokens up to its end are."""
        keys: list[bytes] = []
        key = b""
        for start in range(0, len(tokens) - self.block_size + 1, self.block_size):
            key = sha256(key + self.as_bytes(*tokens[start : start + self.block_size])).digest()
            keys.append(key)
        return keys

    def match(self, worker: int, keys: list[bytes]) -> int:
        """How many leading blocks the worker's index holds. Looking up renews nothing."""
        index = self.indexes[worker]
        for number, key in enumerate(keys):
            if key not in index:
                return number
        return len(keys)

    def imbalanced(self) -> bool:
        """Whether the loads are so far apart that the cache must wait."""
        low, high = min(self.loads), max(self.loads)
        return high - low > self.balance_abs and high > self.balance_rel * low

    def remember(self, worker: int, keys: list[bytes]) -> None:
        """Make all blocks the most recent, the last first, so that a parent outlives its children."""
        index = self.indexes[worker]
        for key in reversed(keys):
            index[key] = None
            index.move_to_end(key)
        while len(index) > self.index_blocks:
            index.popitem(last=False)

    def route(self, tokens: list[int]) -> int:
        """The worker for a request, which counts towards its load until `finish`."""
        keys = self.keys(tokens)
        candidates = list(range(len(self.loads)))
        if not self.imbalanced():
            matches = [self.match(worker, keys) for worker in candidates]
            best = max(matches)
            if best * self.block_size > self.match_threshold * len(tokens):
                candidates = [worker for worker in candidates if matches[worker] == best]
        worker = min(candidates, key=lambda worker: (self.loads[worker], self.num_requests[worker], worker))
        self.remember(worker, keys)  # on every path
        self.loads[worker] += 1
        self.num_requests[worker] += 1
        return worker

    def finish(self, worker: int) -> None:
        """A request that was routed to the worker has ended."""
        self.loads[worker] -= 1
