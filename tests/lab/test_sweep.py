"""Every combination is replayed once, in one process, in several, and on a cluster, with equal results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import joblib
import pytest
from distributed import Client, LocalCluster

from handbook.eviction import FIFO, LRU, Lease, Policy, RandomEviction, replay
from handbook.lab.sweep import Trace, coarser, sweep
from handbook.lab.trace_sources import Traffic, from_tokens, generate

POLICIES: dict[str, Callable[[], Policy]] = {
    "LRU": LRU,
    "FIFO": FIFO,
    "random": partial(RandomEviction, seed=1),
    "lease": partial(Lease, 30),
}


@pytest.fixture(scope="module")
def traces():
    traffic = Traffic(gap=20, user_length=500, system_length=300)
    return {
        f"seed {seed}": Trace([request.hash_ids for request in generate(200, 64, seed, traffic)], 64) for seed in (1, 2)
    }


@pytest.fixture(scope="module")
def rows(traces):
    return sweep(traces, [10_000, 40_000], POLICIES, [64, 128], n_jobs=1)


def test_every_combination_has_its_row_in_the_order_promised(rows, traces):
    combinations = [(row.trace, row.block_size, row.capacity_tokens, row.policy) for row in rows]
    assert combinations == [
        (trace, block_size, capacity, policy)
        for trace in traces
        for block_size in (64, 128)
        for capacity in (10_000, 40_000)
        for policy in POLICIES
    ]


def test_a_row_is_what_one_replay_gives(rows, traces):
    row = next(row for row in rows if (row.trace, row.block_size, row.policy) == ("seed 2", 128, "lease"))
    requests = coarser(traces["seed 2"], 128).requests
    assert row.hits == replay(requests, 10_000 // 128, Lease(30)) > 0
    assert row.hit_rate == row.hits / sum(map(len, requests))


def test_without_block_sizes_each_trace_keeps_its_own(traces):
    (row,) = sweep({"a": traces["seed 1"]}, [10_000], {"LRU": LRU}, n_jobs=1)
    assert (row.block_size, row.hits) == (64, replay(traces["seed 1"].requests, 10_000 // 64, LRU()))


def test_several_processes_give_equal_numbers(rows, traces):
    with joblib.parallel_config(backend="loky"):
        assert sweep(traces, [10_000, 40_000], POLICIES, [64, 128], n_jobs=2) == rows


def test_a_cluster_of_two_worker_processes_gives_equal_numbers(rows, traces):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        assert sweep(traces, [10_000, 40_000], POLICIES, [64, 128]) == rows
        executed = client.run(lambda dask_worker: dask_worker.state.executed_count)
        assert len(executed) == 2
        assert sum(executed.values()) > 0, "the replays ran there, not here"


def test_coarser_blocks_are_those_that_the_prompts_themselves_give():
    prompts = [list(range(length)) for length in (1, 63, 64, 65, 128, 190, 192, 193, 500)] + [[7] * 300, [7] * 257]

    def as_first_seen(requests):
        names: dict[Any, int] = {}
        return [[names.setdefault(block, len(names)) for block in request] for request in requests]

    fine, coarse = ([request.hash_ids for request in from_tokens(prompts, size)] for size in (64, 192))
    assert as_first_seen(coarser(Trace(fine, 64), 192).requests) == as_first_seen(coarse)


@pytest.mark.parametrize("block_size", [32, 96, 0])
def test_blocks_that_cannot_be_put_together_are_an_error(block_size):
    with pytest.raises(ValueError, match=f"blocks of 64 tokens cannot be put together to blocks of {block_size}"):
        coarser(Trace([[0]], 64), block_size)
