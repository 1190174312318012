"""The rules of problem 131, as plainly as they can be put: the oracle, and the state that a story shows.

A prefix is a place in a tree: it is reached from its adapter's root by its blocks, one after another. So two blocks
have the same key exactly when adapter and all tokens are the same, and nothing is hashed that could collide.
"""

from __future__ import annotations

from collections import OrderedDict

from practice.grader.contract import Table

MOST_SHOWN = 16  # rows of a table, blocks of the queue: more than a story's small pool has


class Prefix:
    """A place in the tree of prefixes; `block` is the block that is registered for it."""

    __slots__ = "block", "longer"

    def __init__(self) -> None:
        self.block: int | None = None
        self.longer: dict[tuple[int, ...], Prefix] = {}  # by the tokens of the next block


class PrefixCacheRules:
    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.references = [0] * num_blocks
        self.queue = OrderedDict.fromkeys(range(num_blocks))  # free blocks, the head first
        self.adapters: dict[int | None, Prefix] = {}
        self.registered: dict[int, Prefix] = {}  # by block
        self.contents: dict[int, tuple[int | None, list[int], int]] = {}  # adapter, tokens, where in them a block ends

    def allocate(self, tokens: list[int], lora_id: int | None = None) -> tuple[list[int], int] | None:
        size = self.block_size
        prefix, full = self.adapters.setdefault(lora_id, Prefix()), []
        for end in range(size, len(tokens) + 1, size):
            prefix = prefix.longer.setdefault(tuple(tokens[end - size : end]), Prefix())
            full.append(prefix)

        hits: list[int] = []
        for prefix in full[: (len(tokens) - 1) // size]:
            if prefix.block is None:
                break
            hits.append(prefix.block)
        num_new = -(-len(tokens) // size) - len(hits)
        if num_new > len(self.queue) - sum(block in self.queue for block in hits):
            return None

        for block in hits:
            self.queue.pop(block, None)
            self.references[block] += 1
        new = [self._take() for _ in range(num_new)]
        for number, block in enumerate(new, len(hits)):
            self.contents[block] = lora_id, tokens, min((number + 1) * size, len(tokens))
            if number < len(full) and full[number].block is None:
                full[number].block, self.registered[block] = block, full[number]
        return hits + new, len(hits) * size

    def _take(self) -> int:
        block, _ = self.queue.popitem(last=False)
        self.references[block] = 1
        if block in self.registered:
            self.registered.pop(block).block = None
        return block

    def free(self, block_table: list[int]) -> None:
        for block in reversed(block_table):
            self.references[block] -= 1
            if self.references[block] == 0:
                self.queue[block] = None

    def tables(self) -> list[Table]:
        known = [block for block in sorted(self.contents) if self.references[block] or block in self.registered]
        rows = [self._row(block) for block in known[:MOST_SHOWN]]
        if len(known) > MOST_SHOWN:
            rows.append(("...", f"+{len(known) - MOST_SHOWN}", "", "", ""))
        queue = " ".join(map(str, list(self.queue)[:MOST_SHOWN])) or "empty"
        if len(self.queue) > MOST_SHOWN:
            queue += f" ... +{len(self.queue) - MOST_SHOWN}"
        return [
            Table("blocks", ("block", "references", "lora_id", "prefix and content", "state"), tuple(rows)),
            Table("free queue, from the head", (), ((queue,),)),
        ]

    def _row(self, block: int) -> tuple[str, ...]:
        lora_id, tokens, end = self.contents[block]
        parts = [
            f"[{' '.join(map(str, tokens[start : min(start + self.block_size, end)]))}]"
            for start in range(0, end, self.block_size)
        ]
        shown = parts if len(parts) <= 4 else [parts[0], "...", *parts[-2:]]
        state = "cached" if block in self.registered else "copy" if end % self.block_size == 0 else "not full"
        return str(block), str(self.references[block]), str(lora_id), " > ".join(shown), state
