"""The cases of problem 130 that are drawn from the seed: random calls on small routers, large ones that test time."""

from __future__ import annotations

from random import Random

from practice.grader.contract import Case, Result

from .calls import Calls

FOLD = (1 << 61) - 1  # Python's hash of an int is the int modulo this


def random_calls(seed: int) -> list[Case]:
    """Many small routers under a few words that often begin alike."""
    rng = Random(f"130 {seed}")
    cases = []
    for number in range(20):
        calls = Calls(
            f"random {number + 1}",
            rng.randint(2, 4),
            block_size=rng.randint(1, 3),
            match_threshold=rng.choice([0.0, 0.25, 0.5, 0.75]),
            balance_abs=rng.choice([0, 1, 2, 32]),
            balance_rel=rng.choice([1.0, 1.1, 1.5, 2.0]),
            index_blocks=rng.choice([2, 4, 8, 4096]),
        )
        alphabet = rng.choice([[0, 1], [1, 2, 3], [1, 1 + FOLD]])
        running: list[Result] = []
        for _ in range(24):
            if running and rng.random() < 0.4:
                calls.finish(running.pop(rng.randrange(len(running))))
            else:
                running.append(calls.route(rng.choices(alphabet, k=rng.randint(1, 10))))
        cases.append(calls.case())
    return cases


def random_branches(seed: int) -> list[Case]:
    """Small indexes, loads that are often uneven, and prompts that leave one trunk at some place."""
    rng = Random(f"130 branches {seed}")
    cases = []
    for number in range(14):
        size = rng.choice([1, 1, 2, 5])
        calls = Calls(
            f"random branches {number + 1}",
            rng.choice([1, 2, 2, 3, 3, 7]),
            block_size=size,
            match_threshold=rng.choice([0.125, 0.25, 0.5]),
            balance_abs=rng.choice([0, 1, 1, 3]),
            balance_rel=rng.choice([1.0, 1.25, 1.5]),
            index_blocks=rng.randint(1, 8),
        )
        trunk = rng.choices(range(100), k=5 * size)
        running: list[Result] = []
        for _ in range(24):
            if running and rng.random() < 0.4:
                calls.finish(running.pop(rng.randrange(len(running))))
            else:
                own = [100 + rng.randrange(3)] * rng.randint(0, 2 * size)
                running.append(calls.route((trunk[: size * rng.randint(0, 5)] + own) or [1]))
        cases.append(calls.case())
    return cases


def full_index(seed: int) -> Case:
    """An index must be found in, and must forget a little often, without being searched, sorted or made anew."""
    rng = Random(f"130 index {seed}")
    index = Calls("a full index", 1, block_size=2, index_blocks=20_000)
    for _ in range(20):
        index.route(rng.randbytes(2000))
    for _ in range(1200):
        index.route(rng.randbytes(2))
    return index.case(cpu_seconds=0.5)


def many_workers(seed: int) -> Case:
    """Blocks must be hashed once, not once for each worker."""
    rng = Random(f"130 workers {seed}")
    workers = Calls("many workers, large blocks", 3000, block_size=8192)
    for _ in range(8):
        workers.route(rng.randbytes(rng.randint(8192, 8200)))
    return workers.case(cpu_seconds=0.4)


def long_prompt(seed: int) -> Case:
    """Time must not follow the length of the prompt times the number of its blocks."""
    rng = Random(f"130 prompt {seed}")
    prompt = Calls("a long prompt", 2, block_size=30, index_blocks=10_000)
    prompt.route(rng.randbytes(30 * 10_000))
    return prompt.case(cpu_seconds=0.6)
