# verdict: AC
"""No hash at all, and all blocks that are held are counted: an index never holds a block without its parent."""


class Worker:
    def __init__(self, number):
        self.number = number
        self.load = 0
        self.requests = 0
        self.blocks = {}  # the newest last

    def rank(self):
        return self.load, self.requests, self.number


class CacheAwareRouter:
    def __init__(
        self, num_workers, *, block_size=16, match_threshold=0.5, balance_abs=32, balance_rel=1.1, index_blocks=4096
    ):
        self.workers = [Worker(number) for number in range(num_workers)]
        self.block_size = block_size
        self.match_threshold = match_threshold
        self.balance = balance_abs, balance_rel
        self.index_blocks = index_blocks
        self.names = {}

    def path(self, tokens):
        name = None
        for start in range(0, len(tokens) // self.block_size * self.block_size, self.block_size):
            step = name, tuple(tokens[start : start + self.block_size])
            name = self.names.setdefault(step, len(self.names))
            yield name

    def choose(self, path, num_tokens):
        loads = sorted(worker.load for worker in self.workers)
        gap = loads[-1] - loads[0]
        if gap > self.balance[0] and loads[-1] > self.balance[1] * loads[0]:
            return min(self.workers, key=Worker.rank)
        held = {worker.number: sum(name in worker.blocks for name in path) for worker in self.workers}
        most = max(held.values())
        if most * self.block_size <= self.match_threshold * num_tokens:
            return min(self.workers, key=Worker.rank)
        return min(self.workers, key=lambda worker: (-held[worker.number], *worker.rank()))

    def route(self, tokens):
        path = list(self.path(tokens))
        worker = self.choose(path, len(tokens))
        worker.load += 1
        worker.requests += 1
        for name in reversed(path):
            worker.blocks[name] = worker.blocks.pop(name, None)
        surplus = len(worker.blocks) - self.index_blocks
        if surplus > 0:
            for name in [name for name, _ in zip(worker.blocks, range(surplus))]:
                del worker.blocks[name]
        return worker.number

    def finish(self, worker):
        self.workers[worker].load -= 1
