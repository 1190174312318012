# verdict: WA | group: objects | diagnosis: shared_state
"""The state is kept in the class, and made anew for each object."""

from collections import OrderedDict
from hashlib import sha256


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        PrefixCache.block_size = block_size
        PrefixCache.ref = [0] * num_blocks
        PrefixCache.queue = OrderedDict.fromkeys(range(num_blocks))
        PrefixCache.key_of = [None] * num_blocks
        PrefixCache.block_of = {}

    def keys(self, tokens, lora_id):
        keys, parent = [], f"lora {lora_id}"
        for start in range(0, len(tokens) - PrefixCache.block_size + 1, PrefixCache.block_size):
            block = tokens[start : start + PrefixCache.block_size]
            parent = sha256(f"{parent} {block}".encode()).hexdigest()
            keys.append(parent)
        return keys

    def allocate(self, tokens, lora_id=None):
        keys = self.keys(tokens, lora_id)
        hits = []
        for key in keys[: (len(tokens) - 1) // PrefixCache.block_size]:
            if key not in PrefixCache.block_of:
                break
            hits.append(PrefixCache.block_of[key])
        num_new = -(-len(tokens) // PrefixCache.block_size) - len(hits)
        if num_new > len(PrefixCache.queue) - sum(PrefixCache.ref[block] == 0 for block in hits):
            return None
        for block in hits:
            PrefixCache.queue.pop(block, None)
            PrefixCache.ref[block] += 1
        new = [self.take() for _ in range(num_new)]
        for key, block in zip(keys[len(hits) :], new):
            if key not in PrefixCache.block_of:
                PrefixCache.block_of[key] = block
                PrefixCache.key_of[block] = key
        return hits + new, len(hits) * PrefixCache.block_size

    def take(self):
        block, _ = PrefixCache.queue.popitem(last=False)
        PrefixCache.ref[block] = 1
        key = PrefixCache.key_of[block]
        if key is not None:
            del PrefixCache.block_of[key]
            PrefixCache.key_of[block] = None
        return block

    def free(self, block_table):
        for block in reversed(block_table):
            PrefixCache.ref[block] -= 1
            if PrefixCache.ref[block] == 0:
                PrefixCache.queue[block] = None
