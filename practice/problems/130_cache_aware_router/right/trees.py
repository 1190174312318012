# verdict: AC
"""A tree of prefixes for each worker, walked by recursion; a node that is forgotten is a leaf."""

import sys
from collections import OrderedDict

sys.setrecursionlimit(50_000)


class Tree:
    def __init__(self, limit):
        self.limit = limit
        self.children = {}
        self.leaves_first = OrderedDict()  # id -> (children of the parent, block): an order in which parents come last

    def match(self, children, blocks, at=0):
        if at == len(blocks) or blocks[at] not in children:
            return 0
        return 1 + self.match(children[blocks[at]], blocks, at + 1)

    def add(self, children, blocks, at=0):
        if at < len(blocks):
            below = children.setdefault(blocks[at], {})
            self.add(below, blocks, at + 1)
            self.leaves_first[id(below)] = children, blocks[at]
            self.leaves_first.move_to_end(id(below))

    def shrink(self):
        while len(self.leaves_first) > self.limit:
            _, (children, block) = self.leaves_first.popitem(last=False)
            del children[block]


class CacheAwareRouter:
    def __init__(
        self, num_workers, *, block_size=16, match_threshold=0.5, balance_abs=32, balance_rel=1.1, index_blocks=4096
    ):
        self.block_size = block_size
        self.match_threshold = match_threshold
        self.balance_abs, self.balance_rel = balance_abs, balance_rel
        self.trees = [Tree(index_blocks) for _ in range(num_workers)]
        self.numbers = {}
        self.loads = [[0, 0, number] for number in range(num_workers)]  # load, requests, worker

    def route(self, tokens):
        num_full = len(tokens) // self.block_size
        blocks = [tuple(tokens[i * self.block_size : (i + 1) * self.block_size]) for i in range(num_full)]
        blocks = [self.numbers.setdefault(block, len(self.numbers)) for block in blocks]  # hashed once, not by worker
        lightest, heaviest = min(self.loads), max(self.loads)
        worker = lightest[-1]
        uneven = heaviest[0] - lightest[0] > self.balance_abs and heaviest[0] > self.balance_rel * lightest[0]
        if not uneven:
            best, _, candidate = min(
                (-tree.match(tree.children, blocks), load, load[-1]) for tree, load in zip(self.trees, self.loads)
            )
            if -best * self.block_size > self.match_threshold * len(tokens):
                worker = candidate
        tree = self.trees[worker]
        tree.add(tree.children, blocks)
        tree.shrink()
        self.loads[worker][0] += 1
        self.loads[worker][1] += 1
        return worker

    def finish(self, worker):
        self.loads[worker][0] -= 1
