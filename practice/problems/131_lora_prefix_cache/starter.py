from __future__ import annotations


class PrefixCache:
    """Blocks of KV that are found again by their whole prefix; the free queue is an LRU cache.

    `python practice/judge.py show 131` shows the rules. Only `allocate` and `free` are called by the judge: the other
    methods are a suggestion of steps, and you may replace them by your own.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        raise NotImplementedError("131, step 1: what does the cache remember of each block, and how is it found again?")

    def keys(self, tokens: list[int], lora_id: int | None) -> list[bytes]:
        """One key for each full block: equal exactly when the adapter and all tokens up to its end are."""
        raise NotImplementedError("131, step 2: a key for each full block, chained through its parent's")

    def hits(self, tokens: list[int], keys: list[bytes]) -> list[int]:
        """The longest run of cached blocks from the first, with at least the last token left to compute."""
        raise NotImplementedError("131, step 3: look the keys up, from the first block on")

    def take(self) -> int:
        """The block at the head of the free queue, which loses its key."""
        raise NotImplementedError("131, step 4: take a block from the head of the free queue")

    def allocate(self, tokens: list[int], lora_id: int | None = None) -> tuple[list[int], int] | None:
        """A block table for the tokens, and how many of them are cached; None if the free blocks do not suffice."""
        raise NotImplementedError("131, step 5: count first, then change: hits, new blocks, registration")

    def free(self, block_table: list[int]) -> None:
        """Give back a table. The last block goes first, so that a child is forgotten before its parent."""
        raise NotImplementedError("131, step 6: drop the references, and queue what nobody holds any more")
