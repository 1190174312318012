"""Trains the embedded model: `python -m handbook.lab.train` makes `handbook/lab/embedded/` anew, within 20 minutes.

The model must show in its words from which prefix its K and V came. Four things bring that about.

- System prompts with slots (`texts.Role`), filled anew for each sequence: copying pays, memorising prompts does not.
- Name, city and number travel in two hops: the question's tokens fetch them from the prompt's first block, the answer
  fetches them from the question's tokens. To enforce the second hop, half of the answers are trained with the first
  block of ANOTHER tenant in view instead of the one that their question has seen; the right answer follows the
  question. The policy between them is computed under either block, so it is no place to look for a name.
- To find the first hop soon, a second loss asks layer 3 for it: the first five tokens of each question must carry the
  five tokens of name, city and number there. (Without it names are learnt within 1,000 steps, cities and numbers
  not within 2,500.)
- One sequence is a tree: two first blocks, one policy, several questions with their answers. Each `Part` says which
  parts it sees; the attention mask follows from that.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from handbook.lab import texts
from handbook.lab.exam import BLOCK, examine
from handbook.lab.models import LoadedModel
from handbook.lab.tokenizer import EMBEDDED, write
from handbook.mini_llm import Qwen3Config, Transformer

CONFIG = Qwen3Config(
    vocab_size=2048,
    hidden_size=128,
    intermediate_size=384,
    num_hidden_layers=5,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=32,
    rope_theta=10_000.0,
)
STEPS = 2000
CARRY_LAYER = 2
REPORT_EVERY = 50
LEARNING_RATE = 2e-3

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


@dataclass(frozen=True)
class MaskedAttention:
    """A KV cache that keeps nothing and lets each token see what the mask says."""

    mask: Tensor

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, enable_gqa=True)


def train(
    tokenizer: PreTrainedTokenizerFast, steps: int, seed: int = 0, say: Callable[[str], None] = print
) -> Transformer:
    """The model after `steps` steps, its weights rounded to bfloat16 and held in float32."""
    rng = random.Random(seed)
    model = Transformer.random(CONFIG, seed).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.05)
    warmup = min(100, steps)

    @lru_cache(maxsize=100_000)
    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text))

    middle: list[Tensor] = [torch.empty(0)]
    hook = model.layers[CARRY_LAYER].register_forward_hook(lambda _, __, out: middle.__setitem__(0, out))
    begin, losses = time.perf_counter(), list[tuple[float, float]]()
    for step in range(1, steps + 1):
        rate = min(step / warmup, 0.5 + 0.5 * math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate
        batch = Batch.of([*(tenant_tree(rng, encode) for _ in range(3)), plain_tree(rng, encode)])
        hidden = model.hidden_states(batch.ids, batch.positions, MaskedAttention(batch.mask))
        learnt, carried = batch.targets != -100, batch.carried != -100
        loss = F.cross_entropy(model.logits(hidden[learnt]), batch.targets[learnt])
        carry_loss = F.cross_entropy(model.logits(model.norm(middle[0][carried])), batch.carried[carried])
        (loss + carry_loss).backward()
        losses.append((loss.item(), carry_loss.item()))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % REPORT_EVERY == 0 or step == steps:
            said, carry = (sum(column) / len(losses) for column in zip(*losses, strict=True))
            say(f"step {step}/{steps}  loss {said:.4f}  carried {carry:.4f}  {time.perf_counter() - begin:.0f} s")
            losses.clear()
    hook.remove()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.bfloat16().float())
    return model.eval().requires_grad_(False)


def save(model: Transformer, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write config.json and model.safetensors (bfloat16) as transformers writes a Qwen3, and the tokenizer's files."""
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **asdict(model.config),
        "hidden_act": "silu",
        "attention_bias": False,
        "use_sliding_window": False,
        "max_position_embeddings": 4096,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "dtype": "bfloat16",
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    tensors = {f"model.{name}": weight.to(torch.bfloat16).contiguous() for name, weight in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write(tokenizer, folder)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m handbook.lab.train", description="Train the embedded model anew.")
    parser.add_argument(
        "--steps", type=int, default=STEPS, help="fewer steps are for trying out (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, default=EMBEDDED, help="where to write the model (default: the package)")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the order of sums, and so the weights, depend on it; one suffices and bears neighbours
    tokenizer = PreTrainedTokenizerFast.from_pretrained(EMBEDDED, local_files_only=True)
    begin = time.perf_counter()
    model = train(tokenizer, options.steps, say=partial(print, flush=True))
    print(f"Trained in {time.perf_counter() - begin:.0f} s. Now its exam:", flush=True)
    checks = examine(LoadedModel("embedded", options.out, model, tokenizer, tokenizer.eos_token_id))
    print(*checks, sep="\n")
    if not all(check.ok for check in checks):
        sys.exit("The model fails its exam and is not written: train longer, or look at what was changed.")
    save(model, tokenizer, options.out)
    print(f"Written: model.safetensors, {(options.out / 'model.safetensors').stat().st_size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
