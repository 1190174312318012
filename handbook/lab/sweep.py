"""Many replays at once: traces x block sizes x capacities x policies, on all cores or on a cluster.

Each replay is one task of joblib, so the backend is joblib's business. On a cluster whose machines have this package
(`pip install -e '.[cluster]'` brings dask's part):

    with dask.distributed.Client("scheduler:8786"), joblib.parallel_config(backend="dask"):
        rows = sweep(traces, capacities, policies, block_sizes)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from joblib import Parallel, delayed

from handbook.eviction import Policy, replay

Requests = Sequence[list[Any]]


@dataclass(frozen=True)
class Trace:
    """Requests as lists of block ids, equal id meaning equal whole prefix, and the size of a block in tokens."""

    requests: Requests
    block_size: int


@dataclass(frozen=True)
class Row:
    """The outcome of one replay: hits and num_blocks are block references, in blocks of block_size tokens."""

    trace: str
    block_size: int
    capacity_tokens: int
    policy: str
    hits: int
    num_blocks: int

    @property
    def hit_rate(self) -> float:
        """Block hits of block references."""
        return self.hits / self.num_blocks


def coarser(trace: Trace, block_size: int) -> Trace:
    """The same trace in larger blocks: the last id of each group of blocks tells the whole prefix up to there."""
    factor, rest = divmod(block_size, trace.block_size)
    if factor < 1 or rest:
        raise ValueError(f"blocks of {trace.block_size} tokens cannot be put together to blocks of {block_size}.")
    requests = [blocks[factor - 1 :: factor] + blocks[-1:] * (len(blocks) % factor > 0) for blocks in trace.requests]
    return Trace(requests, block_size)


def sweep(
    traces: Mapping[str, Trace],
    capacities: Iterable[int],
    policies: Mapping[str, Callable[[], Policy]],
    block_sizes: Iterable[int] | None = None,
    n_jobs: int = -1,
) -> list[Row]:
    """Every combination, policies changing fastest, then capacities, then block sizes.

    capacities are in tokens; a policy is made anew for each replay; block_sizes are multiples of the traces' own, which
    is what None means.
    """
    capacities, sizes = list(capacities), None if block_sizes is None else list(block_sizes)
    rows, tasks = [], []
    for name, trace in traces.items():
        for block_size in sizes or [trace.block_size]:
            requests = coarser(trace, block_size).requests
            num_blocks = sum(map(len, requests))
            for capacity, (policy_name, policy) in product(capacities, policies.items()):
                rows.append(Row(name, block_size, capacity, policy_name, 0, num_blocks))
                tasks.append(delayed(replay)(requests, capacity // block_size, policy()))
    return [replace(row, hits=hits) for row, hits in zip(rows, Parallel(n_jobs=n_jobs)(tasks), strict=True)]
