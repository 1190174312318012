# verdict: AC
"""The time of each use is kept, and the oldest come from a queue with outdated entries."""

from collections import defaultdict, deque


class CacheAwareRouter:
    def __init__(
        self, num_workers, *, block_size=16, match_threshold=0.5, balance_abs=32, balance_rel=1.1, index_blocks=4096
    ):
        self.n, self.size, self.threshold = num_workers, block_size, match_threshold
        self.abs, self.rel, self.limit = balance_abs, balance_rel, index_blocks
        self.loads, self.counts = defaultdict(int), defaultdict(int)
        self.used = [{} for _ in range(num_workers)]  # prefix -> time of its last use
        self.uses = [deque() for _ in range(num_workers)]  # (time, prefix), the oldest first
        self.prefixes, self.time = {}, 0

    def route(self, tokens):
        prefixes, parent = [], 0
        for block in zip(*[iter(tokens)] * self.size):
            parent = self.prefixes.setdefault((parent, block), len(self.prefixes) + 1)
            prefixes.append(parent)

        def rank(worker):
            return self.loads[worker], self.counts[worker], worker

        low = min(self.loads[worker] for worker in range(self.n))
        high = max(self.loads[worker] for worker in range(self.n))
        by_cache = {}
        if high - low <= self.abs or high <= self.rel * low:
            for worker in range(self.n):
                match = 0
                for prefix in prefixes:
                    if prefix not in self.used[worker]:
                        break
                    match += self.size
                by_cache.setdefault(match, []).append(worker)
        best = max(by_cache, default=0)
        worker = min(by_cache[best] if best > self.threshold * len(tokens) else range(self.n), key=rank)

        for prefix in reversed(prefixes):
            self.time += 1
            self.used[worker][prefix] = self.time
            self.uses[worker].append((self.time, prefix))
        while len(self.used[worker]) > self.limit:
            time, prefix = self.uses[worker].popleft()
            if self.used[worker].get(prefix) == time:
                del self.used[worker][prefix]
        self.loads[worker] += 1
        self.counts[worker] += 1
        return worker

    def finish(self, worker):
        self.loads[worker] -= 1
