# verdict: AC
"""One hash object reads the prompt once and is asked after each block; the queue drops stale entries when they come up.

Blocks that were never given out are a counter, so that an empty pool costs nothing.
"""

from collections import deque
from hashlib import blake2b


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.size, self.num_free, self.untouched = block_size, num_blocks, iter(range(num_blocks))
        self.returned = deque()  # block, number of the return
        self.waiting = {}  # block -> the number of its last return, while it waits
        self.num_returns = 0
        self.holders = {}
        self.owner, self.name = {}, {}

    def digests(self, tokens, lora_id):
        state = blake2b(b"base" if lora_id is None else b"adapter %d" % lora_id, digest_size=24)
        state.update(b":")
        for place, token in enumerate(tokens, 1):
            state.update(token.to_bytes(8, "big"))
            if place % self.size == 0:
                yield state.digest()

    def allocate(self, tokens, lora_id=None):
        names = list(self.digests(tokens, lora_id))
        hits = []
        for name in names[: (len(tokens) - 1) // self.size]:
            if name not in self.owner:
                break
            hits.append(self.owner[name])
        idle = {block for block in hits if block in self.waiting}
        num_new = (len(tokens) + self.size - 1) // self.size - len(hits)
        if num_new + len(idle) > self.num_free:
            return
        self.num_free -= num_new + len(idle)
        for block in hits:
            self.waiting.pop(block, None)
            self.holders[block] = self.holders.get(block, 0) + 1
        table = hits + [self.next_free() for _ in range(num_new)]
        for name, block in zip(names, table):
            if self.owner.setdefault(name, block) == block:
                self.name[block] = name
        return table, len(hits) * self.size

    def next_free(self):
        block = next(self.untouched, None)
        while block is None:
            block, number = self.returned.popleft()
            if self.waiting.get(block) != number:
                block = None
        self.waiting.pop(block, None)
        self.owner.pop(self.name.pop(block, None), None)
        self.holders[block] = 1
        return block

    def free(self, block_table):
        for block in block_table[::-1]:
            self.holders[block] -= 1
            if not self.holders[block]:
                self.num_returns += 1
                self.num_free += 1
                self.waiting[block] = self.num_returns
                self.returned.append((block, self.num_returns))
