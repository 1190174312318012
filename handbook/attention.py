"""Attention over K and V that a cache keeps: the one place where a token sees the tokens before it.

The idea: a token's K and V never change once they are computed, so a cache keeps them and each step computes only
those of new tokens. A model needs of a cache one method, `attend`. Here are the cache that keeps nothing and the
textbook one; `handbook.paged` has the one in blocks.

Shapes use B batch, T tokens of this call, S of the whole sequence, H query heads, KV heads of K and V, D head_dim.
"""

# Woven from notebooks/zh/01_mini_llm.ipynb by make build: edit it there.

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class KVCache(Protocol):
    """Where K and V of earlier tokens come from and where those of new tokens go."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store k, v `[B, KV, T, D]`; return softmax(q K^T / sqrt(D)) V, causal, as `[B, H, T, D]` like q."""
        ...


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of the LAST tokens of a sequence: q `[B, H, T, D]` over k, v `[B, KV, S, D]` with S >= T."""
    new, context = q.shape[-2], k.shape[-2]
    if new == 1:  # one query sees everything
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    if new == context:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    # Query i stands at position context - new + i and sees positions up to its own.
    mask = torch.ones(new, context, dtype=torch.bool, device=q.device).tril(context - new)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


class NoCache:
    """Keeps nothing: each call is a whole sequence by itself."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return causal_attention(q, k, v)


class ContiguousKVCache:
    """K and V of one batch in one tensor a layer, grown at its end: the textbook cache."""

    def __init__(self) -> None:
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if layer in self._layers:
            old_k, old_v = self._layers[layer]
            k, v = torch.cat((old_k, k), dim=-2), torch.cat((old_v, v), dim=-2)
        self._layers[layer] = (k, v)
        return causal_attention(q, k, v)
