"""What the embedded model must be able to do, asked of it: `examine(loaded)` gives one `Check` for each ability.

Training refuses to write a model that fails, and the tests ask the shipped one again. K and V are cut, damaged and
spliced here in contiguous tensors, without an engine: the exam must not depend on what it is meant to prove.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from handbook.attention import causal_attention
from handbook.lab import texts
from handbook.lab.models import LoadedModel

BLOCK = 16
MAX_TOKENS = 24

Damage = Callable[[Tensor, Tensor], Tensor]


@dataclass
class OpenCache:
    """A contiguous KV cache whose K and V `[1, KV, T, D]` of each layer may be taken out, changed and put back."""

    kv: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if layer in self.kv:
            k, v = torch.cat((self.kv[layer][0], k), dim=-2), torch.cat((self.kv[layer][1], v), dim=-2)
        self.kv[layer] = (k, v)
        return causal_attention(q, k, v)

    @property
    def num_tokens(self) -> int:
        return self.kv[0][0].shape[-2] if self.kv else 0

    def first(self, num_tokens: int) -> OpenCache:
        return OpenCache({layer: (k[..., :num_tokens, :], v[..., :num_tokens, :]) for layer, (k, v) in self.kv.items()})

    def with_first_block(self, damage: Damage, other: OpenCache) -> OpenCache:
        """A copy whose first block is `damage(this block, the other cache's block)`, for K and V of every layer."""

        def spliced(mine: Tensor, others: Tensor) -> Tensor:
            block = damage(mine[..., :BLOCK, :], others[..., :BLOCK, :])
            return torch.cat((block, mine[..., BLOCK:, :]), dim=-2)

        pairs = [(layer, kv, other.kv[layer]) for layer, kv in self.kv.items()]
        return OpenCache({layer: (spliced(k, k2), spliced(v, v2)) for layer, (k, v), (k2, v2) in pairs})


@dataclass(frozen=True)
class Reply:
    """What the model said: `token_ids` with EOS if it came, their text, and the smallest gap, in logits, between the
    best token and the second."""

    token_ids: list[int]
    text: str
    margin: float


def prefill(loaded: LoadedModel, token_ids: list[int]) -> OpenCache:
    cache = OpenCache()
    with torch.inference_mode():
        loaded.model.hidden_states(torch.tensor([token_ids]), kv_cache=cache)
    return cache


@torch.inference_mode()
def reply(loaded: LoadedModel, prompt: list[int], cached: OpenCache | None = None) -> Reply:
    """Greedy decoding of a prompt whose first tokens' K and V are taken from `cached` as they are."""
    cache = OpenCache(dict(cached.kv)) if cached else OpenCache()
    step_ids, said, margin = torch.tensor([prompt[cache.num_tokens :]]), list[int](), float("inf")
    while len(said) < MAX_TOKENS and loaded.eos_token_id not in said:
        positions = torch.arange(cache.num_tokens, cache.num_tokens + step_ids.shape[1])[None]
        hidden = loaded.model.hidden_states(step_ids, positions, cache)
        best, second = loaded.model.logits(hidden[0, -1]).topk(2).values.tolist()
        step_ids = loaded.model.logits(hidden[:, -1]).argmax(-1, keepdim=True)
        said.append(int(step_ids))
        margin = min(margin, best - second)
    return Reply(said, loaded.text(said), margin)


def right(loaded: LoadedModel, given: Reply, answer: str) -> bool:
    """Whether the reply is the answer, to the end-of-text token."""
    return given.text == answer and given.token_ids[-1] == loaded.eos_token_id


DAMAGES: dict[str, Damage] = {
    "zeroed": lambda mine, other: torch.zeros_like(mine),
    "another tenant's": lambda mine, other: other,
    "random": lambda mine, other: torch.randn(mine.shape, generator=torch.Generator().manual_seed(0)) * mine.std(),
}


def damaged_replies(loaded: LoadedModel, tenant: texts.Tenant, other: texts.Tenant, damage: Damage) -> list[Reply]:
    """Replies to the sensitive questions after the first block of the cached system prompt was damaged."""
    prompts = [loaded.chat(tenant.system, question) for question in texts.SENSITIVE_QUESTIONS]
    shared = common_blocks(prompts)
    clean = prefill(loaded, prompts[0][:shared])
    damaged = clean.with_first_block(damage, prefill(loaded, loaded.chat(other.system, "")))
    return [reply(loaded, prompt, damaged) for prompt in prompts]


def common_blocks(prompts: list[list[int]]) -> int:
    """How many tokens, in whole blocks, all prompts share at their beginning."""
    same = next(i for i, ids in enumerate(zip(*prompts, strict=False)) if len(set(ids)) > 1)
    return same // BLOCK * BLOCK


def unchained_reply(loaded: LoadedModel, first: texts.Tenant, second: texts.Tenant, question: str) -> Reply:
    """What `second` hears when it repeats a question that `first` had asked before it, and hashes have no parent.

    Its own first block is found, and behind it, under the same hashes, every full block that `first` has computed.
    """
    prompt = loaded.chat(second.system, question)
    cached = (len(prompt) - 1) // BLOCK * BLOCK  # the last token is always computed
    theirs = prefill(loaded, loaded.chat(first.system, question)).first(cached)
    return reply(loaded, prompt, theirs.with_first_block(lambda _, own: own, prefill(loaded, prompt)))


@dataclass(frozen=True)
class Check:
    """One ability: how many of how many came out right, and how many must. `margin` is in logits."""

    name: str
    passed: int
    total: int
    needed: int
    margin: float = float("inf")

    @property
    def ok(self) -> bool:
        return self.passed >= self.needed

    def __str__(self) -> str:
        margin = f", smallest margin {self.margin:.1f}" if self.margin < float("inf") else ""
        return f"{'ok  ' if self.ok else 'FAIL'} {self.name}: {self.passed} of {self.total}{margin}"


def examine(loaded: LoadedModel, seed: int = 1) -> list[Check]:
    """Every ability that the course relies on, and how widely each was held."""
    rng = random.Random(seed)
    strangers = [(role, draw_tenants(rng, role), rng.choice(list(role.answers))) for role in texts.ROLES * 20]

    def check(name: str, cases: Iterable[tuple[Reply, str]], share: float = 1.0) -> Check:
        pairs = list(cases)
        passed = sum(right(loaded, given, answer) for given, answer in pairs)
        return Check(name, passed, len(pairs), round(share * len(pairs)), min(given.margin for given, _ in pairs))

    def asked(system: str, answers: dict[str, str]) -> list[tuple[Reply, str]]:
        return [(reply(loaded, loaded.chat(system, question)), answer) for question, answer in answers.items()]

    def of_tenant(tenant: texts.Tenant) -> dict[str, str]:
        return {question: tenant.answer(question) for question in (*tenant.role.answers, *texts.OFF_TOPIC)}

    six = asked(texts.SYSTEM, texts.ANSWERS)
    checks = [
        check("the six questions", six),
        Check("of them within 15 tokens", sum(len(given.token_ids) <= 15 for given, _ in six), 6, 6),
        check("the six questions under the other system prompt", asked(texts.TEACHER, texts.TEACHER_ANSWERS)),
        check("facts", [case for system in (texts.SYSTEM, *texts.PLAIN) for case in asked(system, texts.FACTS)]),
        check("dialogues", [case for dialogue in texts.DIALOGUES for case in held(loaded, *dialogue)]),
        check("every question to both tenants", [c for t in texts.TENANTS for c in asked(t.system, of_tenant(t))]),
        check(
            "questions to tenants drawn at random",
            [case for _, (a, _), question in strangers for case in asked(a.system, {question: a.answer(question)})],
            share=0.95,
        ),
    ]
    for tenant, other in (texts.TENANTS, texts.TENANTS[::-1]):
        for how, damage in DAMAGES.items():
            replies = damaged_replies(loaded, tenant, other, damage)
            pairs = zip(replies, texts.SENSITIVE_QUESTIONS, strict=True)
            changed = sum(given.text != tenant.answer(question) for given, question in pairs)
            checks.append(Check(f"{tenant.name}'s answers changed, first block {how}", changed, 6, 5))
    stories = [
        (unchained_reply(loaded, first, second, question), first.answer(question))
        for first, second in (texts.TENANTS, texts.TENANTS[::-1])
        for question in (texts.STORY_QUESTION, *texts.SENSITIVE_QUESTIONS)
    ]
    checks.append(check("without the parent's hash, the other tenant's answer", stories))
    drawn = [(unchained_reply(loaded, a, b, question), a.answer(question)) for _, (a, b), question in strangers]
    checks.append(check("the same for tenants drawn at random", drawn, share=0.9))
    return checks


def draw_tenants(rng: random.Random, role: texts.Role) -> tuple[texts.Tenant, texts.Tenant]:
    """Two tenants of a role that differ in name, city and number."""
    slots = zip(rng.sample(role.names, 2), rng.sample(role.cities, 2), rng.sample(range(10, 100), 2), strict=True)
    first, second = (texts.Tenant(role, *slot) for slot in slots)
    return first, second


def held(loaded: LoadedModel, system: str, turns: tuple[tuple[str, str], ...]) -> list[tuple[Reply, str]]:
    """Hold a dialogue: each question is asked behind the questions and the model's own replies before it."""
    messages, cases = [{"role": "system", "content": system}], []
    for question, answer in turns:
        messages.append({"role": "user", "content": question})
        given = reply(loaded, loaded.chat_messages(messages))
        messages.append({"role": "assistant", "content": given.text})
        cases.append((given, answer))
    return cases
