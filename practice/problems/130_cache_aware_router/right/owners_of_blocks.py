# verdict: AC
"""Asked the other way round: each block knows the workers that hold it, and a look-up narrows them down block by block.

A key is the number of a pair (number of the parent, tokens): nothing is hashed that could collide.
"""

from collections import OrderedDict, defaultdict


class CacheAwareRouter:
    def __init__(
        self, num_workers, *, block_size=16, match_threshold=0.5, balance_abs=32, balance_rel=1.1, index_blocks=4096
    ):
        self.size, self.room = block_size, index_blocks
        self.share, self.difference, self.factor = match_threshold, balance_abs, balance_rel
        self.standing = [(0, 0, number) for number in range(num_workers)]  # load, requests so far, number
        self.ages = [OrderedDict() for _ in range(num_workers)]
        self.owners, self.numbers = defaultdict(set), {}

    def route(self, tokens):
        chain = list(self.chain(tokens))
        loads = [load for load, _, _ in self.standing]
        even = max(loads) - min(loads) <= self.difference or max(loads) <= self.factor * min(loads)
        holders, depth = self.deepest(chain) if even else (None, 0)
        if not depth * self.size > self.share * len(tokens):
            holders = None
        load, total, chosen = min(self.standing if holders is None else map(self.standing.__getitem__, holders))
        self.standing[chosen] = load + 1, total + 1, chosen
        ages = self.ages[chosen]
        for block in chain[::-1]:
            ages.pop(block, None)
            ages[block] = True
            self.owners[block].add(chosen)
        while len(ages) > self.room:
            self.owners[ages.popitem(last=False)[0]].discard(chosen)
        return chosen

    def finish(self, worker):
        load, total, _ = self.standing[worker]
        self.standing[worker] = load - 1, total, worker

    def chain(self, tokens):
        parent = None
        for block in zip(*[iter(tokens)] * self.size):
            parent = self.numbers.setdefault((parent, block), len(self.numbers))
            yield parent

    def deepest(self, chain):
        holders = None
        for depth, block in enumerate(chain):
            owners = self.owners.get(block, set())
            left = owners if holders is None else holders & owners
            if not left:
                return holders, depth
            holders = left
        return holders, len(chain)
