# verdict: AC
"""The free queue is a heap of (time, block) with outdated entries, and the whole state is two dicts of tuples."""

import heapq
from hashlib import sha1


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.block_size = block_size
        self.state = {block: (0, block) for block in range(num_blocks)}  # block -> (holders, time it was freed)
        self.cached = {}  # (adapter, digest) -> block
        self.name = {}
        self.heap = [(block, block) for block in range(num_blocks)]
        self.num_free = self.time = num_blocks

    def allocate(self, tokens, lora_id=None):
        names = []
        digest = sha1(b"first block").digest()
        for start in range(0, len(tokens) - len(tokens) % self.block_size, self.block_size):
            digest = sha1(digest + repr(tokens[start : start + self.block_size]).encode()).digest()
            names.append((lora_id, digest))
        found = []
        for name in names[: (len(tokens) - 1) // self.block_size]:
            try:
                found.append(self.cached[name])
            except KeyError:
                break
        needed = (len(tokens) + self.block_size - 1) // self.block_size - len(found)
        if needed > self.num_free - sum(not self.state[block][0] for block in found):
            return None
        for block in found:
            self.hold(block)
        table = found[:]
        while needed:
            time, block = heapq.heappop(self.heap)
            if self.state[block] != (0, time):
                continue
            self.hold(block)
            self.cached.pop(self.name.pop(block, None), None)
            table.append(block)
            needed -= 1
        for name, block in zip(names, table):
            if name not in self.cached:
                self.cached[name] = block
                self.name[block] = name
        return table, len(found) * self.block_size

    def hold(self, block):
        holders, time = self.state[block]
        self.num_free -= holders == 0
        self.state[block] = (holders + 1, time)

    def free(self, block_table):
        for block in reversed(block_table):
            holders, time = self.state[block]
            if holders == 1:
                self.num_free += 1
                self.time += 1
                time = self.time
                heapq.heappush(self.heap, (time, block))
            self.state[block] = (holders - 1, time)
