"""Traces of your own: from prompts that were logged, or made up with as much sharing as you ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate, count, islice, repeat
from math import log
from random import Random

from handbook.lab.traces import TraceRequest
from handbook.prefix_cache import ROOT, hash_block, token_bytes


def from_tokens(
    prompts: Iterable[Sequence[int]],
    block_size: int,
    timestamps: Iterable[int] | None = None,
    output_lengths: Iterable[int] | None = None,
) -> Iterator[TraceRequest]:
    """The trace of prompts, each a list of token ids. It tells lengths and what is shared, and nothing that was said.

    For dialogues, lists of `{"role", "content"}`, let a model's chat template make the tokens:
    `from_tokens(map(llm.chat_messages, dialogues), 512)`.
    """
    if block_size < 1:
        raise ValueError(f"a block holds at least one token; got block size {block_size}.")
    ids: dict[bytes, int] = {}
    for prompt, timestamp, output_length in zip(
        prompts, timestamps or repeat(0), output_lengths or repeat(0), strict=False
    ):
        if not prompt:
            raise ValueError("a prompt without tokens cannot be served: leave it out.")
        parent, hash_ids = ROOT, []
        for start in range(0, len(prompt), block_size):  # the last block may be partial
            parent = hash_block(parent, token_bytes(prompt[start : start + block_size]))
            hash_ids.append(ids.setdefault(parent, len(ids)))
        yield TraceRequest(timestamp, len(prompt), output_length, hash_ids)


@dataclass(frozen=True)
class Traffic:
    """What the made-up conversations are like. Lengths are in tokens; the defaults resemble a public chat service."""

    continues: float = 0.45  # sharing: the chance that a conversation has another turn
    gap: float = 450.0  # requests between two turns of a conversation, on average
    num_systems: int = 20  # different system prompts
    skew: float = 1.0  # how unevenly they are used: Zipf's exponent, 0 is evenly
    system_length: int = 1500
    user_length: float = 6000.0  # what a user sends in a turn, on average: few send much
    answer_length: float = 350.0
    interval: int = 300  # milliseconds between two requests

    def __post_init__(self) -> None:
        if not 0 <= self.continues < 1:
            raise ValueError(f"continues is a chance, from 0 to below 1; got {self.continues}.")
        for name in ("gap", "num_systems", "system_length", "user_length", "answer_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1; got {getattr(self, name)}.")


def generate(
    num_requests: int, block_size: int = 512, seed: int = 0, traffic: Traffic | None = None
) -> Iterator[TraceRequest]:
    """A made-up trace: conversations that begin with one of a few system prompts and come back after a while.

    Each request sends all that was said before; what a conversation shares with others is its system prompt alone.
    """
    traffic = traffic or Traffic()
    random, ids = Random(seed), count()
    systems = [list(islice(ids, traffic.system_length // block_size)) for _ in range(traffic.num_systems)]
    popularity = list(accumulate((rank + 1) ** -traffic.skew for rank in range(traffic.num_systems)))
    waiting: list[tuple[float, int, int, list[int]]] = []  # when the next turn is due, a tie-break, length, full blocks
    for now in range(num_requests):
        if waiting and waiting[0][0] <= now:
            _, _, length, blocks = heappop(waiting)
        else:
            length, blocks = traffic.system_length, list(random.choices(systems, cum_weights=popularity)[0])
        length += _length(random, traffic.user_length)
        blocks = blocks + list(islice(ids, length // block_size - len(blocks)))
        partial = list(islice(ids, 1 if length % block_size else 0))
        answer_length = _length(random, traffic.answer_length)
        yield TraceRequest(now * traffic.interval, length, answer_length, blocks + partial)
        if random.random() < traffic.continues:
            due = now + random.gammavariate(2, traffic.gap / 2)
            heappush(waiting, (due, now, length + answer_length, blocks))


def _length(random: Random, mean: float) -> int:
    """Of a text, in tokens: most are short, a few very long."""
    return 1 + int(random.lognormvariate(log(mean) - 0.5, 1))
