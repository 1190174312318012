"""A request: what was asked, how it chooses its tokens, and where it stands in the engine."""

# Woven from notebooks/zh/02_paged_engine.ipynb by make build: edit it there.

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class SamplingParams:
    """When a request ends and how it chooses. temperature 0 is greedy; top_k 0 and top_p 1.0 cut nothing off."""

    max_tokens: int = 16
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        rules = {
            "max_tokens": (isinstance(self.max_tokens, int) and self.max_tokens >= 1, "a whole number of at least 1"),
            "temperature": (0 <= self.temperature < float("inf"), "at least 0 and finite"),
            "top_k": (isinstance(self.top_k, int) and self.top_k >= 0, "a whole number of at least 0"),
            "top_p": (0 < self.top_p <= 1, "above 0 and at most 1"),
        }
        if self.seed is not None:
            seed_holds = isinstance(self.seed, int) and 0 <= self.seed < 2**63
            rules["seed"] = (seed_holds, "None or a whole number from 0 to 2**63 - 1")
        for name, (holds, rule) in rules.items():
            if not holds:
                raise ValueError(f"{name} must be {rule}; got {getattr(self, name)!r}.")

    def generator(self) -> torch.Generator:
        """A source of randomness for one request alone, so that its batch mates cannot change its draws."""
        generator = torch.Generator()
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        return generator


def sample(logits: Tensor, params: SamplingParams, generator: torch.Generator) -> int:
    """One token id from logits `[vocab]`: the top_k most likely, of those the fewest that reach top_p, then a draw."""
    if params.temperature == 0:
        return int(logits.argmax())
    scores = (logits.double() - logits.max()) / params.temperature  # the best is 0, however low the temperature
    probabilities, token_ids = torch.softmax(scores, dim=-1).sort(descending=True)
    if params.top_k:
        probabilities = probabilities[: params.top_k]
    probabilities = probabilities / probabilities.sum()
    before = probabilities.cumsum(0) - probabilities  # what more likely tokens have already
    probabilities = probabilities * (before < params.top_p)
    return int(token_ids[torch.multinomial(probabilities, 1, generator=generator)])


@dataclass(eq=False)
class Request:
    """One request and where it stands. K and V of its first `num_computed` tokens lie in its block table."""

    request_id: int
    token_ids: list[int]  # the prompt, then what was generated
    num_prompt: int  # tokens
    params: SamplingParams
    generator: torch.Generator
    came: int = 0  # tokens that the engine had computed when it was added
    block_table: list[int] = field(default_factory=list)
    block_hashes: list[bytes] = field(default_factory=list)
    num_computed: int = 0  # tokens
    num_cached: int | None = None  # tokens found in the cache when it was first admitted

    @property
    def output_token_ids(self) -> list[int]:
        return self.token_ids[self.num_prompt :]

    @property
    def num_uncomputed(self) -> int:
        return len(self.token_ids) - self.num_computed

    @property
    def is_decoding(self) -> bool:
        return self.num_uncomputed == 1 and len(self.token_ids) > self.num_prompt

    def is_finished(self, eos_token_id: int | None) -> bool:
        at_eos = self.token_ids[-1] == eos_token_id and not self.params.ignore_eos
        return at_eos or len(self.token_ids) - self.num_prompt >= self.params.max_tokens
