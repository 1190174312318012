"""Blocks of 16: whole requests through a pool, the cost of evicting as it grows, and registering one more token."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from handbook.prefix_cache import PrefixCachingBlockPool
from tests.bench import streams
from tests.bench.measure import Row, in_turns
from tests.bench.streams import Stream
from tests.naive.plain_block_pool import PlainBlockPool

BLOCK_SIZE = 16


def num_blocks_for(num_tokens: int) -> int:
    return -(-num_tokens // BLOCK_SIZE)


def serve(pool: PrefixCachingBlockPool, work: list[tuple[list[int], list[int]]]) -> int:
    """Look each request up without its last token, compute the rest, register, free; the blocks hit."""
    num_hits = 0
    for token_ids, but_the_last in work:
        hashes: list[bytes] = []
        pool.extend_hashes(hashes, token_ids)
        hits = pool.lookup(but_the_last, hashes)
        pool.touch(hits)
        new = pool.allocate(num_blocks_for(len(token_ids)) - len(hits))
        assert new is not None
        pool.free(pool.cache_blocks(token_ids, hits + new, len(token_ids), hashes))
        num_hits += len(hits)
    return num_hits


def serve_plainly(pool: PlainBlockPool, work: list[tuple[list[int], list[int]]]) -> int:
    """The same with a pool that knows no hashes from outside."""
    num_hits = 0
    for token_ids, but_the_last in work:
        hits = pool.lookup(but_the_last)
        pool.touch(hits)
        new = pool.allocate(num_blocks_for(len(token_ids)) - len(hits))
        assert new is not None
        pool.free(pool.cache_blocks(token_ids, hits + new, len(token_ids)))
        num_hits += len(hits)
    return num_hits


def stream_row(name: str, stream: Stream, num_blocks: int, rounds: int) -> Row:
    """All requests of a stream through fresh pools of num_blocks."""
    work = [(token_ids, token_ids[:-1]) for token_ids in stream]
    num_hits = {
        "handbook": serve(PrefixCachingBlockPool(num_blocks, BLOCK_SIZE), work),
        "plain": serve_plainly(PlainBlockPool(num_blocks, BLOCK_SIZE), work),
    }
    assert num_hits["handbook"] == num_hits["plain"], "the two did different work"

    def handbook() -> Callable[[], object]:
        pool = PrefixCachingBlockPool(num_blocks, BLOCK_SIZE)
        return lambda: serve(pool, work)

    def plain() -> Callable[[], object]:
        pool = PlainBlockPool(num_blocks, BLOCK_SIZE)
        return lambda: serve_plainly(pool, work)

    times = in_turns({"plain": plain, "handbook": handbook}, rounds)
    num_tokens = sum(map(len, stream))
    return Row(
        "blocks",
        name,
        "request",
        {contestant: time / len(stream) * 1e6 for contestant, time in times.items()},
        "1.0 times",
        {"requests": len(stream), "hit rate": round(num_hits["plain"] * BLOCK_SIZE / num_tokens, 3)},
    )


def growth_row(num_requests: int, rounds: int, num_timed: int = 1000) -> Row:
    """Requests through pools that num_requests have filled, so that each evicts two blocks: flat if eviction is."""
    num_blocks = num_blocks_for(32 + 32 * num_requests)
    stream = streams.growth(num_requests + rounds * num_timed)
    work = [(token_ids, token_ids[:-1]) for token_ids in stream]
    pool, plain_pool = PrefixCachingBlockPool(num_blocks, BLOCK_SIZE), PlainBlockPool(num_blocks, BLOCK_SIZE)
    serve(pool, work[:num_requests])
    serve_plainly(plain_pool, work[:num_requests])
    parts = [work[first : first + num_timed] for first in range(num_requests, len(work), num_timed)]
    todo, plain_todo = iter(parts), iter(parts)

    def handbook() -> Callable[[], object]:
        part = next(todo)
        return lambda: serve(pool, part)

    def plain() -> Callable[[], object]:
        part = next(plain_todo)
        return lambda: serve_plainly(plain_pool, part)

    times = in_turns({"plain": plain, "handbook": handbook}, rounds)
    microseconds = {contestant: time / num_timed * 1e6 for contestant, time in times.items()}
    facts = {"requests": rounds * num_timed, "blocks in the pool": num_blocks}
    return Row("blocks", f"growth, {num_requests:,} requests fit", "request", microseconds, "1.0 times, flat", facts)


def decode_row(num_tokens: int, rounds: int) -> Row:
    """One more token after num_tokens, hashed and registered."""
    num_new, num_new_plain = 2000, 50

    def handbook() -> Callable[[], object]:
        pool = PrefixCachingBlockPool(num_blocks_for(num_tokens + num_new), BLOCK_SIZE)
        token_ids, hashes = list(range(num_tokens)), pool.block_hashes(range(num_tokens))
        table = pool.cache_blocks(token_ids, pool.allocate(pool.num_free) or [], num_tokens, hashes)

        def decode() -> None:
            for token in range(num_new):
                token_ids.append(token)
                pool.extend_hashes(hashes, token_ids)
                pool.cache_blocks(token_ids, table, len(token_ids), hashes)

        return decode

    def plain() -> Callable[[], object]:
        pool = PlainBlockPool(num_blocks_for(num_tokens + num_new_plain), BLOCK_SIZE)
        token_ids = list(range(num_tokens))
        table = pool.cache_blocks(token_ids, pool.allocate(len(pool.free_queue)) or [], num_tokens)

        def decode() -> None:
            for token in range(num_new_plain):
                token_ids.append(token)
                pool.cache_blocks(token_ids, table, len(token_ids))

        return decode

    times = in_turns({"plain": plain, "handbook": handbook}, rounds)
    per_token = {"plain": times["plain"] / num_new_plain * 1e6, "handbook": times["handbook"] / num_new * 1e6}
    return Row("blocks", f"decode, one more token after {num_tokens:,}", "token", per_token, "1 us, flat", {})


def rows(rounds: int = 5) -> Iterator[Row]:
    many = 5 * rounds  # where a round takes some 20 ms
    for name, stream in streams.workloads().items():
        yield stream_row(name, stream, sum(num_blocks_for(len(token_ids)) for token_ids in stream), many)
    yield stream_row("big, 2,000,000 tokens fit", streams.big(), num_blocks_for(2_000_000), rounds)
    yield stream_row("small, 512,000 tokens fit", streams.small(), num_blocks_for(512_000), rounds)
    for num_requests in (1000, 10_000, 100_000):
        yield growth_row(num_requests, many)
    for num_tokens in (1000, 4000, 16_000):
        yield decode_row(num_tokens, rounds)
