"""The engine and its pool: blocks that others hold, pools that two want, and where K and V live."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from handbook.mini_llm import Transformer
from handbook.nano_engine import LLMEngine
from handbook.paged import BlockPool
from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.radix import RadixBlockPool
from tests.engines import (
    EXPECTED,
    LONGEST,
    MODEL,
    PROMPTS,
    SHARED,
    assert_drained,
    drain,
    each_cache,
    each_pool,
    greedy,
    make_engine,
)

# ---- pools that others use, too


@each_pool
def test_blocks_held_outside_stop_an_admission_with_an_error_until_they_are_free(caching):
    engine = make_engine(caching, 8, 4)
    outside = engine.pool.allocate(4)
    engine.add_request(PROMPTS[2], greedy())
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"request 0 .*4 of 8 blocks.*held outside"):
            engine.step()
    engine.pool.free(outside)
    assert drain(engine) == {0: EXPECTED[2]}


@each_pool
def test_blocks_held_outside_stop_a_running_request_with_an_error_until_they_are_free(caching):
    engine = make_engine(caching, 8, 4)
    outside = engine.pool.allocate(3)
    for index in (2, 6):
        engine.add_request(PROMPTS[index], greedy())
    with pytest.raises(RuntimeError, match=r"request 0 .*0 of 8 blocks.*held outside"):
        for _ in range(20):
            engine.step()
    assert len(engine.running[0].output_token_ids) > 0
    engine.pool.free(outside)
    assert drain(engine) == {0: EXPECTED[2], 1: EXPECTED[6]}


@each_pool
def test_a_generate_that_blocks_held_outside_stop_gives_back_all_it_had(caching):
    engine = make_engine(caching, 8, 4)
    outside = engine.pool.allocate(3)
    with pytest.raises(RuntimeError, match="held outside"):
        engine.generate([PROMPTS[2], PROMPTS[6]], greedy())
    engine.pool.free(outside)
    assert_drained(engine)
    assert engine.generate([PROMPTS[2]], greedy()) == [EXPECTED[2]]


@each_cache
def test_hits_that_somebody_holds_are_not_counted_as_free(caching):
    engine = make_engine(caching, 8, 4)
    engine.generate([PROMPTS[0]], greedy(1))
    outside = engine.pool.lookup(PROMPTS[0])
    engine.pool.touch(outside)
    assert engine.generate([PROMPTS[1]], greedy()) == [EXPECTED[1]]
    assert engine.pool.num_free == 4
    engine.pool.free(outside)
    assert_drained(engine)


@each_cache
def test_hits_that_nobody_holds_are_not_handed_out_as_new_blocks(caching):
    """Two of three free blocks are hits, so that two more cannot be had, though three are free."""
    engine = make_engine(caching, 8, 4)
    engine.generate([SHARED[:8]], greedy(1))
    outside = engine.pool.allocate(5)
    engine.add_request(SHARED[:16], greedy(1))
    with pytest.raises(RuntimeError, match="3 of 8"):
        engine.step()
    engine.pool.free(outside)
    assert drain(engine) == {1: EXPECTED[0][:1]}


@each_cache
def test_a_caching_pool_serves_one_engine_only(caching):
    engine = make_engine(caching, 8, 4)
    with pytest.raises(ValueError, match="another engine"):
        LLMEngine(MODEL, pool=engine.pool)
    assert engine.generate([PROMPTS[6]], greedy()) == [EXPECTED[6]]


@each_cache
def test_a_caching_pool_with_registered_blocks_is_refused(caching):
    """Somebody registered them by hand: a look-up would hit them, though no K and V were ever computed."""
    pool = PrefixCachingBlockPool(8, 4) if caching == "blocks" else RadixBlockPool(32, 4)
    table = pool.allocate(2) or []
    pool.free(pool.cache_blocks(PROMPTS[6], table, 8))
    with pytest.raises(ValueError, match="2 registered blocks of this pool were computed by no engine"):
        LLMEngine(MODEL, pool=pool)
    pool.allocate(8)
    pool.free(range(8)) if caching == "blocks" else [pool.free([block]) for block in range(8)]
    assert LLMEngine(MODEL, pool=pool).generate([PROMPTS[6]], greedy()) == [EXPECTED[6]]


def test_an_engine_that_could_not_be_made_leaves_its_pool_free_for_another():
    pool = PrefixCachingBlockPool(8, 4)
    with pytest.raises(AttributeError):
        LLMEngine(None, pool=pool)  # type: ignore[arg-type]
    assert LLMEngine(MODEL, pool=pool).generate([PROMPTS[6]], greedy()) == [EXPECTED[6]]


def test_two_engines_share_a_plain_pool():
    pool = BlockPool(16, 4)
    engines = [LLMEngine(MODEL, pool=pool) for _ in range(2)]
    for engine, index in zip(engines, (2, 5), strict=True):
        engine.add_request(PROMPTS[index], greedy())
    outputs: list[Sequence[int]] = [[], []]
    for _ in range(LONGEST):
        for i, engine in enumerate(engines):
            for request in engine.step():
                outputs[i] = request.output_token_ids
        pool.check_invariants()
    assert outputs == [EXPECTED[2], EXPECTED[5]]
    assert pool.num_free == 16


# ---- where K and V live


def test_a_given_pools_own_sizes_win():
    engine = LLMEngine(MODEL, pool=BlockPool(5, 2), num_blocks=99, block_size=7)
    assert tuple(engine.kv_cache.keys.shape) == (2, 2, 5, 2, 10)


def test_k_and_v_have_the_dtype_of_the_model():
    engine = LLMEngine(Transformer.random(MODEL.config, 0, torch.bfloat16), num_blocks=16, block_size=4)
    assert engine.kv_cache.keys.dtype == engine.kv_cache.values.dtype == torch.bfloat16
    assert len(engine.generate([PROMPTS[5]], greedy(3))[0]) == 3
