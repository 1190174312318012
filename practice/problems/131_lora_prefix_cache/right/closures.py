# verdict: AC
"""No attributes at all: the constructor makes the two functions. A key is the number of a pair (parent, tokens)."""

from collections import Counter, OrderedDict


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        queue, held = OrderedDict((block, True) for block in range(num_blocks)), Counter()
        numbers, block_of, number_of = {}, {}, {}

        def number(parent, tokens):
            return numbers.setdefault((parent, tokens), len(numbers))

        def allocate(tokens, lora_id=None):
            prefix, prefixes = number(None, ("adapter", lora_id)), []
            for start in range(0, len(tokens) // block_size * block_size, block_size):
                prefix = number(prefix, tuple(tokens[start : start + block_size]))
                prefixes.append(prefix)
            found = [block_of.get(prefix) for prefix in prefixes[: (len(tokens) - 1) // block_size]]
            hits = found[: found.index(None)] if None in found else found
            needed = -(-len(tokens) // block_size) - len(hits)
            if needed > len(queue) - len(queue.keys() & set(hits)):
                return None
            for block in hits:
                queue.pop(block, False)
            new = [queue.popitem(last=False)[0] for _ in range(needed)]
            for block in new:
                if block in number_of:
                    del block_of[number_of.pop(block)]
            table = [*hits, *new]
            held.update(table)
            for prefix, block in zip(prefixes, table):
                if prefix not in block_of:
                    block_of[prefix], number_of[block] = block, prefix
            return table, block_size * len(hits)

        def free(block_table):
            held.subtract(block_table)
            queue.update((block, True) for block in reversed(block_table) if held[block] == 0)

        self.allocate, self.free = allocate, free
