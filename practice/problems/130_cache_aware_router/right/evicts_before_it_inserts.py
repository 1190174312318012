# verdict: AC
"""Room is made before each block instead of at the end: the most recent ones are the same."""

from collections import OrderedDict
from hashlib import blake2b


class Recent(OrderedDict):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def use(self, key):
        if key in self:
            self.move_to_end(key)
            return
        while len(self) >= self.limit:
            self.popitem(last=False)
        self[key] = True


class CacheAwareRouter:
    def __init__(
        self, num_workers, *, block_size=16, match_threshold=0.5, balance_abs=32, balance_rel=1.1, index_blocks=4096
    ):
        self.block_size = block_size
        self.enough = match_threshold
        self.too_uneven = lambda low, high: high - low > balance_abs and high > balance_rel * low
        self.recent = [Recent(index_blocks) for _ in range(num_workers)]
        self.load = {worker: 0 for worker in range(num_workers)}
        self.seen = {worker: 0 for worker in range(num_workers)}

    def route(self, tokens):
        names = self.names(tokens, 0, b"")
        matches = {worker: self.held(worker, names) for worker in self.load}
        best = max(matches.values())
        candidates = set(self.load)
        if self.too_uneven(min(self.load.values()), max(self.load.values())):
            pass
        elif best * self.block_size > self.enough * len(tokens):
            candidates = {worker for worker, match in matches.items() if match == best}
        lightest = min(self.load[worker] for worker in candidates)
        candidates = {worker for worker in candidates if self.load[worker] == lightest}
        fewest = min(self.seen[worker] for worker in candidates)
        worker = min(worker for worker in candidates if self.seen[worker] == fewest)
        for name in names[::-1]:
            self.recent[worker].use(name)
        self.load[worker] += 1
        self.seen[worker] += 1
        return worker

    def names(self, tokens, start, name):
        names = []
        while start + self.block_size <= len(tokens):
            piece = ",".join(map(str, tokens[start : start + self.block_size]))
            name = blake2b(name + piece.encode(), digest_size=24).digest()
            names.append(name)
            start += self.block_size
        return names

    def held(self, worker, names):
        low = 0
        while low < len(names) and names[low] in self.recent[worker]:
            low += 1
        return low

    def finish(self, worker):
        self.load[worker] -= 1
