# verdict: AC
"""Workers are objects that compare; each forgets through a heap of uses, from which stale ones are dropped when met."""

from hashlib import sha1
from heapq import heappop, heappush
from itertools import count, takewhile


class Worker:
    clock = count()

    def __init__(self, number):
        self.number, self.load, self.total = number, 0, 0
        self.last_use, self.uses = {}, []

    def __lt__(self, other):
        return (self.load, self.total, self.number) < (other.load, other.total, other.number)

    def match(self, keys):
        return sum(1 for _ in takewhile(self.last_use.__contains__, keys))

    def use(self, keys, room):
        for key in reversed(keys):
            self.last_use[key] = next(self.clock)
            heappush(self.uses, (self.last_use[key], key))
        while len(self.last_use) > room:
            time, key = heappop(self.uses)
            if self.last_use.get(key) == time:
                del self.last_use[key]


class CacheAwareRouter:
    def __init__(self, num_workers, **options):
        defaults = dict(block_size=16, match_threshold=0.5, balance_abs=32, balance_rel=1.1, index_blocks=4096)
        vars(self).update(defaults, **options)
        self.workers = list(map(Worker, range(num_workers)))

    def route(self, tokens):
        running, keys = sha1(), []
        for place, token in enumerate(tokens, 1):
            running.update(b"%d," % token)
            if place % self.block_size == 0:
                keys.append(running.digest())
        low, high = min(w.load for w in self.workers), max(w.load for w in self.workers)
        asked = self.workers
        if high - low <= self.balance_abs or high <= self.balance_rel * low:
            matches = [worker.match(keys) for worker in self.workers]
            if max(matches) * self.block_size > self.match_threshold * len(tokens):
                asked = [worker for worker, match in zip(self.workers, matches) if match == max(matches)]
        chosen = min(asked)
        chosen.load, chosen.total = chosen.load + 1, chosen.total + 1
        chosen.use(keys, self.index_blocks)
        return chosen.number

    def finish(self, worker):
        self.workers[worker].load -= 1
