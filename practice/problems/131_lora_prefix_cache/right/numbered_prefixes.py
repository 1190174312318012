# verdict: AC
"""No hash at all: every prefix gets a number, found by its parent's number and the tokens of its last block."""


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        self.size = block_size
        self.numbers = {}  # (number of the parent, tokens) -> number
        self.where = {}  # number -> block
        self.holds = {}  # block -> number
        self.users = dict.fromkeys(range(num_blocks), 0)
        self.waiting = dict.fromkeys(range(num_blocks), 0)  # free block -> when it was freed
        self.order = [(0, block) for block in range(num_blocks)]  # (when, block), some of them outdated
        self.head = 0
        self.now = 0

    def number(self, parent, tokens):
        return self.numbers.setdefault((parent, tokens), len(self.numbers))

    def allocate(self, tokens, lora_id=None):
        size, chain = self.size, []
        parent = "base" if lora_id is None else f"adapter {lora_id}"
        for end in range(size, len(tokens) + 1, size):
            parent = self.number(parent, tuple(tokens[end - size : end]))
            chain.append(parent)
        most = (len(tokens) - 1) // size
        cached = 0
        while cached < most and chain[cached] in self.where:
            cached += 1
        table = [self.where[number] for number in chain[:cached]]
        missing = (len(tokens) + size - 1) // size - cached
        if len(self.waiting) - len([block for block in table if block in self.waiting]) < missing:
            return None
        for block in table:
            self.waiting.pop(block, None)
        for _ in range(missing):
            table.append(self.oldest())
        for block in table:
            self.users[block] += 1
        for number, block in zip(chain[cached:], table[cached:]):
            if number not in self.where:
                self.where[number] = block
                self.holds[block] = number
        return table, size * cached

    def oldest(self):
        while True:
            when, block = self.order[self.head]
            self.head += 1
            if self.waiting.get(block) == when:
                del self.waiting[block]
                if block in self.holds:
                    del self.where[self.holds.pop(block)]
                return block

    def free(self, block_table):
        for block in block_table[::-1]:
            self.users[block] -= 1
            if not self.users[block]:
                self.now += 1
                self.waiting[block] = self.now
                self.order.append((self.now, block))
