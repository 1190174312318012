# verdict: AC
"""The cache IS the free queue: a subclass of OrderedDict."""

from collections import Counter, OrderedDict
from hashlib import blake2b


class PrefixCache(OrderedDict):
    def __init__(self, num_blocks, block_size):
        super().__init__((block, None) for block in range(num_blocks))
        self.block_size = block_size
        self.holders = Counter()
        self.block_by_key = {}
        self.key_by_block = {}

    def chain(self, tokens, lora_id):
        key = b"" if lora_id is None else str(lora_id).encode()
        blocks = zip(*[iter(tokens)] * self.block_size)
        for block in blocks:
            key = blake2b(repr(block).encode(), key=blake2b(key, digest_size=32).digest()).digest()
            yield key

    def allocate(self, tokens, lora_id=None):
        chain = list(self.chain(tokens, lora_id))
        hits = []
        for key in chain:
            if key not in self.block_by_key:
                break
            hits.append(self.block_by_key[key])
        if len(hits) * self.block_size == len(tokens):
            hits.pop()
        new = divmod(len(tokens) - 1, self.block_size)[0] + 1 - len(hits)
        waiting = [block for block in hits if block in self]
        if len(self) - len(waiting) < new:
            return None
        for block in waiting:
            del self[block]
        table = hits + [self.popitem(last=False)[0] for _ in range(new)]
        for block in table[len(hits) :]:
            self.block_by_key.pop(self.key_by_block.pop(block, None), None)
        for block, key in zip(table, chain):
            if self.block_by_key.setdefault(key, block) == block:
                self.key_by_block[block] = key
        self.holders.update(table)
        return table, len(hits) * self.block_size

    def free(self, block_table):
        for block in reversed(block_table):
            self.holders[block] -= 1
            if not self.holders[block]:
                del self.holders[block]
                self[block] = None
