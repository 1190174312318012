# verdict: TLE | group: full_index | diagnosis: searches_index
"""The oldest block is searched for in the whole index."""

from collections import OrderedDict
from hashlib import sha256


class CacheAwareRouter:
    def __init__(
        self, num_workers, *, block_size=16, match_threshold=0.5, balance_abs=32, balance_rel=1.1, index_blocks=4096
    ):
        self.block_size = block_size
        self.match_threshold = match_threshold
        self.balance_abs = balance_abs
        self.balance_rel = balance_rel
        self.index_blocks = index_blocks
        self.load = [0] * num_workers
        self.total = [0] * num_workers
        self.clock = 0
        self.index = [OrderedDict() for _ in range(num_workers)]

    def keys(self, tokens):
        keys, parent = [], ""
        for start in range(0, len(tokens) - self.block_size + 1, self.block_size):
            block = tokens[start : start + self.block_size]
            parent = sha256(f"{parent} {block}".encode()).hexdigest()
            keys.append(parent)
        return keys

    def match(self, worker, keys):
        count = 0
        for key in keys:
            if key not in self.index[worker]:
                break
            count += 1
        return count

    def least(self, workers):
        return min(workers, key=lambda worker: (self.load[worker], self.total[worker], worker))

    def insert(self, worker, keys):
        index = self.index[worker]
        for key in reversed(keys):
            self.clock += 1
            index[key] = self.clock
        while len(index) > self.index_blocks:
            del index[min(index, key=index.get)]

    def route(self, tokens):
        keys = self.keys(tokens)
        everyone = range(len(self.load))
        matches = [self.match(worker, keys) for worker in everyone]
        best, low, high = max(matches), min(self.load), max(self.load)
        if high - low > self.balance_abs and high > self.balance_rel * low:
            worker = self.least(everyone)
        elif best * self.block_size > self.match_threshold * len(tokens):
            worker = self.least([worker for worker in everyone if matches[worker] == best])
        else:
            worker = self.least(everyone)
        self.insert(worker, keys)
        self.load[worker] += 1
        self.total[worker] += 1
        return worker

    def finish(self, worker):
        self.load[worker] -= 1
