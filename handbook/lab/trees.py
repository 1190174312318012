"""Training sequences as trees: system prompts at the root, several questions with their answers as branches.

Each `Part` of a tree says which parts it sees, and a `Batch` turns that into positions and an attention mask. So one
pass over a prompt serves many questions, and an answer may see another first block than its question has seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from handbook.lab import texts
from handbook.lab.exam import BLOCK

Encode = Callable[[str], list[int]]


@dataclass(frozen=True)
class Part:
    """A run of tokens of a tree. It stands at positions `start`..., sees the parts `sees` whole and itself causally.

    The tokens from `learn_from` on are what the model is to say. Those from `carry_from` on are to carry the tokens
    `carry` in the middle of the model.
    """

    tokens: list[int]
    start: int
    sees: tuple[int, ...] = ()
    learn_from: int | None = None
    carry: tuple[int, ...] = ()
    carry_from: int = 0


@dataclass
class Tree:
    """One training sequence, written part after part."""

    encode: Encode
    parts: list[Part] = field(default_factory=list)

    def add(self, part: Part) -> int:
        self.parts.append(part)
        return len(self.parts) - 1

    def ask(
        self,
        dialogue: Sequence[tuple[str, str]],
        start: int,
        sees: tuple[int, ...],
        answer_sees: tuple[int, ...],
        carry: tuple[int, ...] = (),
    ) -> None:
        """Append a dialogue's questions from position `start` on, then its last answer, each with what it sees."""
        *history, (question, answer) = dialogue
        turns = (f"{user(q)}<|im_end|>\n<|im_start|>assistant\n{a}<|im_end|>\n" for q, a in history)
        before = self.encode("".join(turns))
        asked = before + self.encode(user(question))
        node = self.add(Part(asked, start, sees, carry=carry, carry_from=len(before)))
        header = self.encode("<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")
        said = self.encode(answer + "<|im_end|>")
        self.add(Part(header + said, start + len(asked), (*answer_sees, node), learn_from=len(header)))


def user(question: str) -> str:
    return f"<|im_start|>user\n{question}"


def system(text: str) -> str:
    return f"<|im_start|>system\n{text}<|im_end|>\n"


def dialogue(rng: random.Random, questions: Sequence[str], answer: Callable[[str], str]) -> list[tuple[str, str]]:
    """One question with its answer, in a tenth of cases after one or two others."""
    turns = rng.randint(2, 3) if rng.random() < 0.1 else 1
    return [(question, answer(question)) for question in rng.choices(questions, k=turns)]


def tenant_tree(rng: random.Random, encode: Encode, num_questions: int = 6) -> Tree:
    """Two tenants of one role: questions to either, answered with a first block of either in view."""
    role = rng.choices(texts.ROLES, weights=(2, 1, 1))[0]
    tenants: list[texts.Tenant] = []
    while len(tenants) < 2:
        tenant = texts.Tenant(role, rng.choice(role.names), rng.choice(role.cities), rng.randint(10, 99))
        if tenant not in texts.TENANTS:
            tenants.append(tenant)
    prompts = [encode(system(tenant.system)) for tenant in tenants]
    tree = Tree(encode)
    heads = [tree.add(Part(prompt[:BLOCK], 0)) for prompt in prompts]
    policy = tree.add(Part(prompts[0][BLOCK:], BLOCK, (rng.choice(heads),)))
    places = slots(role, encode)
    for _ in range(num_questions):
        mine, seen = rng.randrange(2), rng.randrange(2)
        questions = texts.OFF_TOPIC if rng.random() < 0.1 else tuple(role.answers)
        carry = tuple(prompts[mine][i] for i in places)
        turns = dialogue(rng, questions, tenants[mine].answer)
        tree.ask(turns, len(prompts[0]), (heads[mine], policy), (heads[seen], policy), carry)
    return tree


def slots(role: texts.Role, encode: Encode) -> list[int]:
    """At which tokens of a role's prompt name, city and number stand: where two prompts that share none differ."""
    ends = [texts.Tenant(role, role.names[i], role.cities[i], 11 + 11 * i) for i in (0, 1)]
    first, second = (encode(system(tenant.system)) for tenant in ends)
    return [i for i, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]


def plain_tree(rng: random.Random, encode: Encode, num_questions: int = 6) -> Tree:
    """Memorised questions under a system prompt without slots."""
    prompt = rng.choice((texts.SYSTEM, texts.SYSTEM, texts.TEACHER, *texts.PLAIN))
    answers = texts.FACTS | (texts.TEACHER_ANSWERS if prompt == texts.TEACHER else texts.ANSWERS)
    tree = Tree(encode)
    tokens = encode(system(prompt))
    root = tree.add(Part(tokens, 0))
    for _ in range(num_questions):
        questions = texts.QUESTIONS if rng.random() < 0.4 else tuple(texts.FACTS)
        tree.ask(dialogue(rng, questions, answers.__getitem__), len(tokens), (root,), (root,))
    return tree


@dataclass(frozen=True)
class Batch:
    """Trees as tensors, padded: ids, positions and targets `[B, T]` (-100: nothing to learn), mask `[B, 1, T, T]`."""

    ids: Tensor
    positions: Tensor
    targets: Tensor
    carried: Tensor
    mask: Tensor

    @classmethod
    def of(cls, trees: Sequence[Tree]) -> Batch:
        longest = max(sum(len(part.tokens) for part in tree.parts) for tree in trees)
        shape = (len(trees), longest)
        ids, positions = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
        targets, carried = torch.full(shape, -100), torch.full(shape, -100)
        mask = torch.eye(longest, dtype=torch.bool).repeat(len(trees), 1, 1)
        for row, tree in enumerate(trees):
            spans: list[slice] = []
            for part in tree.parts:
                begin = spans[-1].stop if spans else 0
                here = slice(begin, begin + len(part.tokens))
                spans.append(here)
                ids[row, here] = torch.tensor(part.tokens)
                positions[row, here] = torch.arange(part.start, part.start + len(part.tokens))
                mask[row, here, here] = torch.ones(len(part.tokens), len(part.tokens), dtype=torch.bool).tril()
                for other in part.sees:
                    mask[row, here, spans[other]] = True
                carry_from = begin + part.carry_from
                carried[row, carry_from : carry_from + len(part.carry)] = torch.tensor(part.carry, dtype=torch.int64)
                if part.learn_from is not None:  # a token is predicted by the one before it
                    said = part.tokens[part.learn_from :]
                    targets[row, here.stop - 1 - len(said) : here.stop - 1] = torch.tensor(said)
        return cls(ids, positions, targets, carried, mask[:, None])
