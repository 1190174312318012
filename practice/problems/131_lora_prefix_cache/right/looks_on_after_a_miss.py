# verdict: AC
"""The look-up goes on after a miss, and blocks that are not full are registered too: neither can be told apart."""

from collections import OrderedDict


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.block_size = block_size
        self.ref_cnt = [0] * num_blocks
        self.free_queue = OrderedDict.fromkeys(range(num_blocks))
        self.ids = {}
        self.block_of = {}
        self.id_of = {}

    def prefix_ids(self, tokens, lora_id):
        ids, parent = [], -1 if lora_id is None else -2 - lora_id
        for start in range(0, len(tokens), self.block_size):
            name = (parent, tuple(tokens[start : start + self.block_size]))
            parent = self.ids.setdefault(name, len(self.ids))
            ids.append(parent)
        return ids

    def allocate(self, tokens, lora_id=None):
        ids = self.prefix_ids(tokens, lora_id)
        most_hits = (len(tokens) - 1) // self.block_size
        hits = [self.block_of[each] for each in ids[:most_hits] if each in self.block_of]
        num_new = len(ids) - len(hits)
        if num_new + sum(block in self.free_queue for block in hits) > len(self.free_queue):
            return None
        for block in hits:
            self.free_queue.pop(block, None)
        new = []
        for each in ids[len(hits) :]:
            block, _ = self.free_queue.popitem(last=False)
            if block in self.id_of:
                del self.block_of[self.id_of.pop(block)]
            if each not in self.block_of:
                self.block_of[each] = block
                self.id_of[block] = each
            new.append(block)
        for block in hits + new:
            self.ref_cnt[block] += 1
        return hits + new, len(hits) * self.block_size

    def free(self, block_table):
        while block_table:
            block = block_table.pop()
            self.ref_cnt[block] -= 1
            if self.ref_cnt[block] == 0:
                self.free_queue[block] = None
