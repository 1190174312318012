"""A Qwen3 transformer, exactly as published, small enough to read in one sitting.

The idea: a token's hidden state passes through equal layers, each attention then SwiGLU, both behind an
RMSNorm and added to what was there. Only attention looks at other tokens, and all it needs of them is
their K and V. So the model hands its q, k and v to a `KVCache` (`handbook.attention`), which decides where
K and V live. Every cache must give the same logits: that is what this course is about.

Shapes use B batch, T tokens of this call, H query heads, KV heads of K and V, D head_dim.
Source: Qwen3 technical report (arXiv 2505.09388); tensor names as in transformers' `Qwen3ForCausalLM`.
"""

# Woven from notebooks/zh/01_mini_llm.ipynb by make build: edit it there.

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from handbook.attention import ContiguousKVCache, KVCache, NoCache
from handbook.checkpoint import check_tensors, read_config, read_tensors


@dataclass(frozen=True)
class Qwen3Config:
    """What makes one Qwen3 differ from another. `head_dim` is explicit: it need not be hidden_size / heads."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1_000_000.0
    tie_word_embeddings: bool = True

    @classmethod
    def from_pretrained(cls, path: str | Path) -> Qwen3Config:
        """Read `config.json` in the folder `path`. A config this model would compute wrongly is a ValueError."""
        raw = read_config(path)
        rope = raw.get("rope_scaling") or raw.get("rope_parameters") or {}
        raw["rope_theta"] = rope.get("rope_theta", raw.get("rope_theta"))
        raw.setdefault("tie_word_embeddings", False)
        required = {
            "model_type": (raw.get("model_type"), "qwen3"),
            "hidden_act": (raw.get("hidden_act", "silu"), "silu"),
            "attention_bias": (raw.get("attention_bias", False), False),
            "use_sliding_window": (raw.get("use_sliding_window", False), False),
            "rope type": (rope.get("rope_type", rope.get("type", "default")), "default"),
        }
        for name, (given, supported) in required.items():
            if given != supported:
                raise ValueError(f"{path}/config.json has {name} {given!r}; this model computes {supported!r} only.")
        missing = [f.name for f in fields(cls) if raw.get(f.name) is None and f.name != "rms_norm_eps"]
        if missing:
            raise ValueError(f"{path}/config.json lacks {', '.join(missing)}.")
        return cls(**{f.name: raw[f.name] for f in fields(cls) if raw.get(f.name) is not None})

    def __post_init__(self) -> None:
        for f in fields(self):
            if f.type == "int" and getattr(self, f.name) < 1:
                raise ValueError(f"{f.name} must be at least 1; got {getattr(self, f.name)}.")
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads {self.num_attention_heads} must be a multiple of "
                f"num_key_value_heads {self.num_key_value_heads}: each K/V head serves a group of query heads."
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim {self.head_dim} must be even: rotary embedding turns pairs of dimensions.")


class RMSNorm(nn.Module):
    """x / rms(x) * weight, with the mean of squares taken in float32 whatever the model's dtype."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        x32 = x.float()
        x32 = x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * x32.to(x.dtype)


def rotary_angles(positions: Tensor, config: Qwen3Config) -> tuple[Tensor, Tensor]:
    """cos and sin `[B, 1, T, D]` for positions `[B, T]`; dimension pairs i, i + D/2 turn at theta^(-2i/D) a token."""
    exponents = torch.arange(0, config.head_dim, 2, device=positions.device).float() / config.head_dim
    angles = positions[..., None].float() * config.rope_theta**-exponents  # [B, T, D/2]
    angles = torch.cat((angles, angles), dim=-1)[:, None]  # [B, 1, T, D]
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair of x `[B, heads, T, D]` by its angle, so that q . k depends on the distance alone."""
    first, second = x.chunk(2, dim=-1)
    return x * cos.to(x.dtype) + torch.cat((-second, first), dim=-1) * sin.to(x.dtype)


class SelfAttention(nn.Module):
    """Grouped-query attention with an RMSNorm on every head's q and k."""

    def __init__(self, config: Qwen3Config, layer: int) -> None:
        super().__init__()
        self.layer, self.head_dim = layer, config.head_dim
        q_size = config.num_attention_heads * config.head_dim
        kv_size = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, q_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.o_proj = nn.Linear(q_size, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, kv_cache: KVCache) -> Tensor:
        heads = (*x.shape[:2], -1, self.head_dim)
        q = self.q_norm(self.q_proj(x).view(heads)).transpose(1, 2)  # [B, H, T, D]
        k = self.k_norm(self.k_proj(x).view(heads)).transpose(1, 2)  # [B, KV, T, D]
        v = self.v_proj(x).view(heads).transpose(1, 2)
        out = kv_cache.attend(self.layer, rotate(q, cos, sin), rotate(k, cos, sin), v)
        return self.o_proj(out.transpose(1, 2).flatten(2))  # [B, T, hidden]


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """Attention, then SwiGLU, each behind its norm and added to the residual stream."""

    def __init__(self, config: Qwen3Config, layer: int) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = SelfAttention(config, layer)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = SwiGLU(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, kv_cache: KVCache) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, kv_cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Transformer(nn.Module):
    """Qwen3 for causal language modelling: `model(input_ids)` gives logits."""

    def __init__(self, config: Qwen3Config) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config, i) for i in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def hidden_states(
        self, input_ids: Tensor, positions: Tensor | None = None, kv_cache: KVCache | None = None
    ) -> Tensor:
        """The last layer's output `[B, T, hidden]` for int64 ids `[B, T]`; positions default to 0 .. T-1."""
        if input_ids.dim() != 2 or input_ids.dtype != torch.int64 or input_ids.numel() == 0:
            found = f"{input_ids.dtype} {list(input_ids.shape)}"
            raise ValueError(f"input_ids must be int64 [batch, tokens], at least one token; got {found}.")
        least, most, last = int(input_ids.min()), int(input_ids.max()), self.config.vocab_size - 1
        if least < 0 or most > last:
            raise ValueError(f"input_ids go from {least} to {most}, and the vocabulary from 0 to {last}.")
        if positions is None:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        cos, sin = rotary_angles(positions, self.config)
        x = self.embed_tokens(input_ids)
        for layer in self.layers:
            x = layer(x, cos, sin, kv_cache or NoCache())
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits `[..., vocab]` of hidden states `[..., hidden]`."""
        weight = self.embed_tokens.weight if self.config.tie_word_embeddings else self.lm_head.weight
        return F.linear(hidden, weight)

    def forward(self, input_ids: Tensor, positions: Tensor | None = None, kv_cache: KVCache | None = None) -> Tensor:
        return self.logits(self.hidden_states(input_ids, positions, kv_cache))

    @classmethod
    def random(cls, config: Qwen3Config, seed: int, dtype: torch.dtype = torch.float32) -> Transformer:
        """Random weights that keep activations moderate: for tests and timing, where what they say does not matter."""
        with torch.device("meta"):
            model = cls(config)
        model.to_empty(device="cpu")
        generator = torch.Generator().manual_seed(seed)
        for weight in model.parameters():
            if weight.dim() == 1:
                nn.init.ones_(weight)
            else:
                nn.init.normal_(weight, std=weight.shape[-1] ** -0.5, generator=generator)
        return model.to(dtype).eval()

    @classmethod
    def from_pretrained(cls, path: str | Path, dtype: torch.dtype = torch.float32) -> Transformer:
        """Load a Hugging Face folder: config.json and model.safetensors, or its shards with their index.

        A missing or unexpected tensor, or one of a wrong shape, is a ValueError that names it.
        """
        with torch.device("meta"):
            model = cls(Qwen3Config.from_pretrained(path))
        tensors = {name.removeprefix("model."): tensor for name, tensor in read_tensors(path).items()}
        head = tensors.pop("lm_head.weight", None) if model.config.tie_word_embeddings else None
        if head is not None and not torch.equal(head, tensors.get("embed_tokens.weight", head)):
            raise ValueError(f"{path}: tie_word_embeddings is true, yet lm_head.weight differs from the embedding.")
        check_tensors(path, tensors, {name: parameter.shape for name, parameter in model.named_parameters()})
        model.load_state_dict({name: tensor.to(dtype) for name, tensor in tensors.items()}, assign=True)
        return model.eval()


@torch.inference_mode()
def generate(model: Transformer, input_ids: Tensor, max_new_tokens: int, eos_token_id: int | None = None) -> Tensor:
    """Plain greedy decoding of one sequence `[1, T]`: the reference that the engine is held against.

    Returns the new tokens alone, `[1, n]` with n <= max_new_tokens; the last is EOS if EOS came.
    """
    if input_ids.dim() != 2 or input_ids.shape[0] != 1 or input_ids.shape[1] == 0:
        raise ValueError(f"generate takes one non-empty sequence, [1, tokens]; got {list(input_ids.shape)}.")
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1; got {max_new_tokens}.")
    kv_cache = ContiguousKVCache()
    new_tokens: list[Tensor] = []
    position, step_ids = 0, input_ids
    while len(new_tokens) < max_new_tokens:
        positions = torch.arange(position, position + step_ids.shape[1], device=input_ids.device)[None]
        hidden = model.hidden_states(step_ids, positions, kv_cache)
        position += step_ids.shape[1]
        step_ids = model.logits(hidden[:, -1]).argmax(-1, keepdim=True)  # [1, 1]
        new_tokens.append(step_ids)
        if step_ids.item() == eos_token_id:
            break
    return torch.cat(new_tokens, dim=1)
