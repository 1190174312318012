"""Streams of requests, each a list of token ids: four workloads of the field, three that press on a cache."""

from __future__ import annotations

from random import Random

Stream = list[list[int]]


def workloads() -> dict[str, Stream]:
    """Shared system prompt, multi-turn, few-shot and parallel sampling, drawn one after another with seed 0."""
    random = Random(0)

    def tokens(n: int) -> list[int]:
        return [random.randrange(1000, 50_000) for _ in range(n)]

    system = tokens(1000)
    shared = [system + tokens(random.randint(20, 200)) for _ in range(100)]

    multi_turn = []
    for _ in range(20):
        history = tokens(300)
        for _ in range(8):
            history = history + tokens(random.randint(10, 60))  # the user
            multi_turn.append(history)
            history = history + tokens(random.randint(50, 300))  # the answer

    examples = [tokens(random.randint(100, 200)) for _ in range(5)]
    header = tokens(37)
    few_shot = []
    for _ in range(100):
        shown = examples[: random.randint(2, 5)]
        few_shot.append([*header, *(token for example in shown for token in example), *tokens(random.randint(20, 80))])

    parallel = []
    for _ in range(30):
        problem = tokens(random.randint(80, 400))
        parallel += [problem + tokens(1) for _ in range(8)]

    return {
        "shared system prompt": shared,
        "multi-turn": multi_turn,
        "few-shot": few_shot,
        "parallel sampling": parallel,
    }


class Drawn:
    """A source of token ids and requests for the streams below."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def tokens(self, n: int) -> list[int]:
        return [self.random.randrange(1000, 150_000) for _ in range(n)]


def big(num_requests: int = 2000) -> Stream:
    """One of 40 prefixes of 2,000 tokens, and 1,900 to 2,100 own ones."""
    drawn = Drawn(1)
    prefixes = [drawn.tokens(2000) for _ in range(40)]
    return [drawn.random.choice(prefixes) + drawn.tokens(drawn.random.randint(1900, 2100)) for _ in range(num_requests)]


def small(num_requests: int = 6000) -> Stream:
    """One of 200 prefixes of 128 tokens, and 128 own ones."""
    drawn = Drawn(2)
    prefixes = [drawn.tokens(128) for _ in range(200)]
    return [drawn.random.choice(prefixes) + drawn.tokens(128) for _ in range(num_requests)]


def growth(num_requests: int) -> Stream:
    """32 shared tokens, and 32 own ones."""
    drawn = Drawn(3)
    prefix = drawn.tokens(32)
    return [prefix + drawn.tokens(32) for _ in range(num_requests)]
