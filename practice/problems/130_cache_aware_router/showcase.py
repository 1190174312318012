"""What is shown for interest after problem 130: hit rate and balance on a stream, beside two simpler policies."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from practice.grader.contract import Case, Result, Step

from .rules import RouterRules, leading, remember

NUM_WORKERS, BLOCK_SIZE, CACHE_BLOCKS = 4, 16, 160
Policy = Callable[[int, Sequence[int], Sequence[int]], int]  # from the number of the request, loads, requests so far


def stream(seed: int) -> Case:
    """400 requests of 32 applications: all share the first block, those of one application six more."""
    rng = Random(f"130 showcase {seed}")
    common = list(rng.randbytes(BLOCK_SIZE))
    applications = [common + list(rng.randbytes(6 * BLOCK_SIZE)) for _ in range(32)]
    steps: list[Step] = []
    running: list[Result] = []
    for _ in range(400):
        if len(running) == 24:
            steps.append(Step(len(steps), "finish", (running.pop(rng.randrange(len(running))),)))
        application = applications[min(rng.randrange(32), rng.randrange(32))]  # the first are asked for more often
        running.append(Result(len(steps)))
        steps.append(Step(len(steps), "route", (application + list(rng.randbytes(rng.randint(8, 40))),)))
    parameters = {"num_workers": NUM_WORKERS, "block_size": BLOCK_SIZE, "balance_abs": 4, "index_blocks": CACHE_BLOCKS}
    return Case("a stream in which every request shares its first block", parameters, tuple(steps))


def describe(language: str, case: Case, answers: Sequence[Any]) -> list[str]:
    """A line for the solution and one for each of the two policies; answers are those of the steps, in order."""
    given = iter([answer for step, answer in zip(case.steps, answers, strict=True) if step.method == "route"])
    policies: list[tuple[str, str, Policy]] = [
        ("your router", "你的路由器", lambda number, loads, requests: next(given)),
        ("round robin", "轮流", lambda number, loads, requests: number % NUM_WORKERS),
        ("least load", "最低负载", lambda number, loads, requests: _least(loads, requests)),
    ]
    lines = []
    for en, zh, policy in policies:
        hit_rate, balance = replay(case, policy)
        if language == "zh":
            lines.append(f"{zh}：命中率 {hit_rate:.1%}，均衡度（最多 / 平均请求数）{balance:.2f}")
        else:
            lines.append(f"{en}: hit rate {hit_rate:.1%}, balance (max / mean requests) {balance:.2f}")
    return lines


def replay(case: Case, policy: Policy) -> tuple[float, float]:
    """Hit rate in tokens, and the most requests of a worker over their mean, when policy routes the stream."""
    blocks_of = RouterRules(NUM_WORKERS, block_size=BLOCK_SIZE).full_blocks
    caches = [OrderedDict[int, None]() for _ in range(NUM_WORKERS)]
    loads, requests, worker_of = [0] * NUM_WORKERS, [0] * NUM_WORKERS, dict[int, int]()
    num_hits = num_tokens = 0
    for step in case.steps:
        if step.method == "finish":
            loads[worker_of[step.args[0].step]] -= 1
            continue
        (tokens,) = step.args
        worker = worker_of[step.id] = policy(len(worker_of), loads, requests)
        prefixes = blocks_of(tokens)
        num_hits += leading(prefixes, caches[worker]) * BLOCK_SIZE
        num_tokens += len(tokens)
        remember(prefixes, caches[worker], CACHE_BLOCKS)
        loads[worker] += 1
        requests[worker] += 1
    return num_hits / num_tokens, max(requests) * NUM_WORKERS / sum(requests)


def _least(loads: Sequence[int], requests: Sequence[int]) -> int:
    return min(range(NUM_WORKERS), key=lambda worker: (loads[worker], requests[worker], worker))
