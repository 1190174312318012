"""Streams of requests, each a list of token ids: four workloads of the field, three that press on a cache."""

from __future__ import annotations

from random import Random

from handbook.hit_rate import workloads

__all__ = ["Drawn", "Stream", "big", "growth", "small", "workloads"]

Stream = list[list[int]]


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
