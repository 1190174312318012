"""What a decode step costs the engine itself: as much as its running requests need, whatever else there is or was."""

from __future__ import annotations

import pytest

from handbook.lab.counting import Copied, lines
from tests.bench.scheduler import POOLS, decode, decoding_engine

USUAL = {"num_blocks": 4000, "num_running": 4, "num_tokens": 100, "num_finished": 3}


def cost(kind: str, **situation: int) -> tuple[int, int]:
    """Lines of the handbook that 16 decode steps execute, and tokens that they copy out of their sequences."""
    engine = decoding_engine(kind, **(USUAL | situation))
    for request in engine.running:
        request.token_ids = Copied(request.token_ids)
    before = Copied.num_tokens
    return lines(decode, engine), Copied.num_tokens - before


@pytest.mark.parametrize(
    "changed",
    [{"num_blocks": 40_000}, {"num_tokens": 900}, {"num_finished": 300}],
    ids=["more blocks", "longer sequences", "more that have finished"],
)
@pytest.mark.parametrize("kind", POOLS)
def test_a_decode_step_costs_the_same_with(kind, changed):
    assert cost(kind, **changed) == cost(kind)


@pytest.mark.parametrize("kind", POOLS)
def test_four_times_the_requests_cost_at_most_four_times_as_much(kind):
    few, many = cost(kind), cost(kind, num_running=16)
    assert few[0] < many[0] <= 4 * few[0]
    assert many[1] == 4 * few[1]


@pytest.mark.parametrize("kind", POOLS)
def test_of_all_that_wait_for_blocks_only_the_first_is_looked_up(kind):
    counts = []
    for num_more in (0, 20):
        engine = decoding_engine(kind, **USUAL, num_waiting=40)
        for _ in range(num_more):
            engine.add_request(engine.waiting[0].token_ids, engine.waiting[0].params)
        counts.append(lines(decode, engine))
        assert len(engine.waiting) == 1 + num_more
    assert counts[0] == counts[1]
