"""The cases of problem 131 that are drawn from the seed: random calls on small pools, and large ones that test time."""

from __future__ import annotations

from random import Random

from practice.grader.contract import Case, Result

from .calls import Calls

FOLD = (1 << 61) - 1  # Python's hash of an int is the int modulo this
BRANCHES = 10


def random_calls(seed: int) -> list[Case]:
    """Many small pools under a few words that often begin alike."""
    rng = Random(f"131 {seed}")
    cases = []
    for number in range(20):
        calls = Calls(f"random {number + 1}", rng.randint(2, 9), rng.randint(1, 3))
        alphabet = rng.choice([[0, 1], [1, 2], [1, 2, 3], [1, 1 + FOLD], [0, 256, 1 << 32]])
        adapters: list[int | None] = [None, 0, 1][: rng.randint(1, 3)]
        held: list[Result] = []
        for _ in range(20):
            if held and rng.random() < 0.45:
                calls.free(held.pop(rng.randrange(len(held))))
            else:
                tokens = rng.choices(alphabet, k=rng.randint(1, 4 * calls.parameters["block_size"] + 1))
                held.append(calls.allocate(tokens, lora_id=rng.choice(adapters)))
        cases.append(calls.case())
    return cases


def random_branches(seed: int) -> list[Case]:
    """Blocks of any size, and prompts that leave one trunk somewhere: many hits at once, some held, some waiting."""
    rng = Random(f"131 branches {seed}")
    cases = []
    for number in range(BRANCHES):
        size = rng.choice([1, 1, 2, 4, 5, 9, 16])
        calls = Calls(f"random branches {number + 1}", rng.randint(1, 12), size)
        trunk = rng.choices(range(100), k=7 * size)
        held: list[Result] = []
        for _ in range(24):
            if held and rng.random() < 0.45:
                calls.free(held.pop(rng.randrange(len(held))))
            else:
                own = [100 + rng.randrange(5)] * rng.randint(0, size)
                held.append(calls.allocate((trunk[: rng.choice([size, 1]) * rng.randint(0, 7)] + own) or [1]))
        cases.append(calls.case())
    return cases


def large_pool(seed: int) -> Case:
    """Time must not follow the size of the pool, nor how many blocks wait: hits wait far from the queue's head."""
    rng = Random(f"131 pool {seed}")
    pool = Calls("a large pool", 140_000, 2)
    prompts = [rng.randbytes(12) for _ in range(240)]
    pool.free(*[pool.allocate(prompt + b"0") for prompt in prompts])
    for end in b"1", b"2":  # the hits wait, then they are held
        for prompt in prompts:
            pool.allocate(prompt + end)
    for _ in range(1500):
        pool.allocate(b"3")
    return pool.case(cpu_seconds=0.9)


def long_prompt(seed: int) -> Case:
    """Time must not follow the square of the prompt; nor may all keys be searched for each block that is taken."""
    rng = Random(f"131 prompt {seed}")
    prompt = Calls("a long prompt", 19_000, 8)
    prompt.free(prompt.allocate(rng.randbytes(8 * 18_000)))
    for _ in range(6):
        prompt.allocate(rng.randbytes(8 * 500))
    return prompt.case(cpu_seconds=0.8)
