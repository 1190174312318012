# verdict: AC
"""A tree of prefixes that is walked by recursion, and tables that are freed on the way back."""

import sys
from collections import OrderedDict, deque

sys.setrecursionlimit(50_000)


class Node:
    def __init__(self):
        self.block = None
        self.children = {}


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.block_size = block_size
        self.counts = [0] * num_blocks
        self.nodes = [None] * num_blocks
        self.idle = OrderedDict((block, True) for block in range(num_blocks))
        self.roots = {}

    def path(self, node, tokens, at):
        end = at + self.block_size
        if end > len(tokens):
            return deque()
        child = node.children.setdefault(tuple(tokens[at:end]), Node())
        rest = self.path(child, tokens, end)
        rest.appendleft(child)
        return rest

    def allocate(self, tokens, lora_id=None):
        path = list(self.path(self.roots.setdefault(lora_id, Node()), tokens, 0))
        table = []
        for node in path[: (len(tokens) - 1) // self.block_size]:
            if node.block is None:
                break
            table.append(node.block)
        num_hits = len(table)
        num_all = -(len(tokens) // -self.block_size)
        if num_all - num_hits > len(self.idle) - sum(block in self.idle for block in table):
            return None
        for block in table:
            self.counts[block] += 1
            self.idle.pop(block, None)
        for number in range(num_hits, num_all):
            block = self.idle.popitem(last=False)[0]
            self.counts[block] = 1
            if self.nodes[block]:
                self.nodes[block].block = self.nodes[block] = None
            if number < len(path) and path[number].block is None:
                self.nodes[block] = path[number]
                path[number].block = block
            table.append(block)
        return table, num_hits * self.block_size

    def free(self, block_table, at=0):
        if at == len(block_table):
            return
        self.free(block_table, at + 1)
        block = block_table[at]
        self.counts[block] -= 1
        if self.counts[block] == 0:
            self.idle[block] = True
