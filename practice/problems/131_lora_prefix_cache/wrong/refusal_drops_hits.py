# verdict: WA | group: shortage | diagnosis: refusal_holds_hits
"""The hits leave the queue before it is known whether the rest suffices, and a refusal does not put them back."""

from collections import OrderedDict
from hashlib import sha256


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.block_size = block_size
        self.references = [0] * num_blocks
        self.queue = OrderedDict.fromkeys(range(num_blocks))
        self.key_of, self.block_of = {}, {}

    def keys(self, tokens, lora_id):
        keys, parent = [], repr(lora_id).encode()
        for start in range(0, len(tokens) - self.block_size + 1, self.block_size):
            parent = sha256(parent + repr(tokens[start : start + self.block_size]).encode()).digest()
            keys.append(parent)
        return keys

    def allocate(self, tokens, lora_id=None):
        keys, hits = self.keys(tokens, lora_id), []
        for key in keys[: (len(tokens) - 1) // self.block_size]:
            if key not in self.block_of:
                break
            hits.append(self.block_of[key])
        num_new = -(-len(tokens) // self.block_size) - len(hits)
        for block in hits:
            self.queue.pop(block, None)
        if num_new > len(self.queue):
            return None
        table = hits + [self.take() for _ in range(num_new)]
        for block in table:
            self.references[block] += 1
        for key, block in zip(keys, table, strict=False):
            if key not in self.block_of:
                self.block_of[key], self.key_of[block] = block, key
        return table, len(hits) * self.block_size

    def take(self):
        block, _ = self.queue.popitem(last=False)
        self.block_of.pop(self.key_of.pop(block, None), None)
        return block

    def free(self, block_table):
        for block in reversed(block_table):
            self.references[block] -= 1
            if self.references[block] == 0:
                self.queue[block] = None
