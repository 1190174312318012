from __future__ import annotations


class CacheAwareRouter:
    """Sends a request where its prefix is cached, unless the loads are too uneven.

    `python practice/judge.py show 130` shows the rules. Only `route` and `finish` are called by the judge: the other
    methods are a suggestion of steps, and you may replace them by your own.
    """

    def __init__(
        self,
        num_workers: int,
        *,
        block_size: int = 16,
        match_threshold: float = 0.5,
        balance_abs: int = 32,
        balance_rel: float = 1.1,
        index_blocks: int = 4096,
    ) -> None:
        raise NotImplementedError("130, step 1: what does the router remember of each worker?")

    def keys(self, tokens: list[int]) -> list[bytes]:
        """One key for each full block: equal exactly when all tokens up to its end are."""
        raise NotImplementedError("130, step 2: a key for each full block, chained through its parent's")

    def match(self, worker: int, keys: list[bytes]) -> int:
        """How many leading blocks the worker's index holds. Looking up renews nothing."""
        raise NotImplementedError("130, step 3: look the keys up in one worker's index, from the first block on")

    def imbalanced(self) -> bool:
        """Whether the loads are so far apart that the cache must wait."""
        raise NotImplementedError("130, step 4: compare largest and smallest load, by difference and by product")

    def remember(self, worker: int, keys: list[bytes]) -> None:
        """Make all blocks the most recent, the last first, so that a parent outlives its children."""
        raise NotImplementedError("130, step 5: renew the blocks in one worker's index, then let the oldest go")

    def route(self, tokens: list[int]) -> int:
        """The worker for a request, which counts towards its load until `finish`."""
        raise NotImplementedError("130, step 6: choose the candidates, then one of them, then write down what was sent")

    def finish(self, worker: int) -> None:
        """A request that was routed to the worker has ended."""
        raise NotImplementedError("130, step 7: the worker's load falls by one")
