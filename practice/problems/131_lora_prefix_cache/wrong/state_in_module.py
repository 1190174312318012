# verdict: WA | group: objects | diagnosis: shared_state
"""The state is kept in the module, and made anew for each object."""

from collections import OrderedDict
from hashlib import sha256


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.block_size = block_size
        global ref, queue, key_of, block_of
        ref = [0] * num_blocks
        queue = OrderedDict.fromkeys(range(num_blocks))
        key_of = [None] * num_blocks
        block_of = {}

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
            if key not in block_of:
                break
            hits.append(block_of[key])
        num_new = -(-len(tokens) // self.block_size) - len(hits)
        if num_new > len(queue) - sum(ref[block] == 0 for block in hits):
            return None
        for block in hits:
            queue.pop(block, None)
            ref[block] += 1
        new = [self.take() for _ in range(num_new)]
        for key, block in zip(keys[len(hits) :], new):
            if key not in block_of:
                block_of[key] = block
                key_of[block] = key
        return hits + new, len(hits) * self.block_size

    def take(self):
        block, _ = queue.popitem(last=False)
        ref[block] = 1
        key = key_of[block]
        if key is not None:
            del block_of[key]
            key_of[block] = None
        return block

    def free(self, block_table):
        for block in reversed(block_table):
            ref[block] -= 1
            if ref[block] == 0:
                queue[block] = None
