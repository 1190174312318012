# verdict: WA | group: queue | diagnosis: smallest_number
"""The free blocks are a set, which gives them out by their numbers."""

from hashlib import sha256


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.block_size = block_size
        self.ref = [0] * num_blocks
        self.queue = set(range(num_blocks))
        self.key_of = [None] * num_blocks
        self.block_of = {}

    def keys(self, tokens, lora_id):
        keys, parent = [], f"lora {lora_id}"
        for start in range(0, len(tokens) - self.block_size + 1, self.block_size):
            block = tokens[start : start + self.block_size]
            parent = sha256(f"{parent} {block}".encode()).hexdigest()
            keys.append(parent)
        return keys

    def allocate(self, tokens, lora_id=None):
        keys = self.keys(tokens, lora_id)
        hits = []
        for key in keys[: (len(tokens) - 1) // self.block_size]:
            if key not in self.block_of:
                break
            hits.append(self.block_of[key])
        num_new = -(-len(tokens) // self.block_size) - len(hits)
        if num_new > len(self.queue) - sum(self.ref[block] == 0 for block in hits):
            return None
        for block in hits:
            self.queue.discard(block)
            self.ref[block] = self.ref[block] + 1
        new = [self.take() for _ in range(num_new)]
        for key, block in zip(keys[len(hits) :], new):
            if key not in self.block_of:
                self.block_of[key] = block
                self.key_of[block] = key
        return hits + new, len(hits) * self.block_size

    def take(self):
        block = self.queue.pop()
        self.ref[block] = 1
        key = self.key_of[block]
        if key is not None:
            del self.block_of[key]
            self.key_of[block] = None
        return block

    def free(self, block_table):
        for block in reversed(block_table):
            self.ref[block] -= 1
            if self.ref[block] == 0:
                self.queue.add(block)
