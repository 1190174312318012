# verdict: TLE | group: large_pool | diagnosis: searches_pool
"""Before each call the lists are copied, in case it must be undone; the free queue is a linked list of numbers."""

from hashlib import sha256


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.block_size = block_size
        self.ref = [0] * num_blocks
        self.after = [*range(1, num_blocks + 1), 0]  # of each free block, and last of the end, which is no block
        self.before = [num_blocks, *range(num_blocks)]
        self.num_free = self.end = num_blocks
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
        saved = self.ref[:], self.key_of[:], self.after[:], self.before[:], self.block_of.copy(), self.num_free
        for block in hits:
            if self.ref[block] == 0:
                self.unlink(block)
            self.ref[block] += 1
        if num_new > self.num_free:
            self.ref, self.key_of, self.after, self.before, self.block_of, self.num_free = saved
            return None
        new = [self.take() for _ in range(num_new)]
        for key, block in zip(keys[len(hits) :], new):
            if key not in self.block_of:
                self.block_of[key] = block
                self.key_of[block] = key
        return hits + new, len(hits) * self.block_size

    def unlink(self, block):
        before, after = self.before[block], self.after[block]
        self.after[before], self.before[after] = after, before
        self.num_free -= 1

    def take(self):
        block = self.after[self.end]
        self.unlink(block)
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
                last = self.before[self.end]
                self.after[last] = self.before[self.end] = block
                self.before[block], self.after[block] = last, self.end
                self.num_free += 1
