# verdict: AC
"""Blocks are objects in a hand-made doubly linked list, and each adapter has a map of its own."""

import hashlib


class Block:
    def __init__(self, number):
        self.number = number
        self.count = 0
        self.digest = None
        self.map = None  # where the digest is registered
        self.before = self.after = None


class FreeList:
    def __init__(self):
        self.ends = Block(None)
        self.ends.before = self.ends.after = self.ends
        self.length = 0

    def append(self, block):
        last = self.ends.before
        last.after, block.before = block, last
        block.after, self.ends.before = self.ends, block
        self.length += 1

    def remove(self, block):
        block.before.after, block.after.before = block.after, block.before
        block.before = block.after = None
        self.length -= 1

    def pop(self):
        block = self.ends.after
        self.remove(block)
        return block


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.block_size = block_size
        self.blocks = [Block(number) for number in range(num_blocks)]
        self.free_list = FreeList()
        for block in self.blocks:
            self.free_list.append(block)
        self.maps = {}

    def digests(self, tokens):
        hasher = hashlib.sha256()
        for position, token in enumerate(tokens, 1):
            hasher.update(token.to_bytes(8, "big"))
            if position % self.block_size == 0:
                yield hasher.copy().digest()

    def allocate(self, tokens, lora_id=None):
        registered = self.maps.setdefault(lora_id, {})
        digests = list(self.digests(tokens))
        hits = []
        for digest in digests[: (len(tokens) - 1) // self.block_size]:
            block = registered.get(digest)
            if block is None:
                break
            hits.append(block)
        wanted = (len(tokens) - 1) // self.block_size + 1 - len(hits)
        idle = sum(1 for block in hits if block.count == 0)
        if self.free_list.length - idle < wanted:
            return None
        for block in hits:
            if block.count == 0:
                self.free_list.remove(block)
            block.count += 1
        table = list(hits)
        while wanted:
            block = self.free_list.pop()
            if block.digest is not None:
                del block.map[block.digest]
                block.digest = block.map = None
            block.count = 1
            if len(table) < len(digests) and digests[len(table)] not in registered:
                block.digest, block.map = digests[len(table)], registered
                registered[block.digest] = block
            table.append(block)
            wanted -= 1
        return [block.number for block in table], len(hits) * self.block_size

    def free(self, block_table):
        for number in reversed(block_table):
            block = self.blocks[number]
            block.count -= 1
            if block.count == 0:
                self.free_list.append(block)
