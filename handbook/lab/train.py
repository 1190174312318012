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
- One sequence is a tree (`handbook/lab/trees.py`): two first blocks, one policy, several questions and answers.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from handbook.lab.exam import examine
from handbook.lab.models import LoadedModel
from handbook.lab.tokenizer import EMBEDDED, write
from handbook.lab.trees import Batch, plain_tree, tenant_tree
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
