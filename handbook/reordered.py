"""Weights laid out once more, in the order in which a CPU's kernel reads them: the same products, sooner for few rows.

The idea: a decode step multiplies a few rows by every weight, and cannot be faster than reading all weights once. A
plain product comes near that for one row, not for several; oneDNN, which is part of torch, does with a matrix that it
has put in order beforehand. The price is memory: the weights are there twice.

Source: torch 2.13.0, whose compiler does so when it freezes a model (`CpuMkldnnDeviceOp.pack_linear_weight` in
torch/_inductor/fx_passes/mkldnn_fusion.py). The two operators are private to torch, so they are tried before use.
"""

# Woven from notebooks/zh/02_paged_engine.ipynb by make build: edit it there.

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from handbook.mini_llm import Transformer

FEW_ROWS = 128  # for more, the plain product is as fast


class ReorderedWeight(nn.Parameter):
    """A frozen float32 weight `[out, in]`, and its copy in oneDNN's order, which `F.linear` takes for few rows."""

    @cached_property
    def reordered(self) -> Tensor:
        """Made when first asked for, as by a copy of the model."""
        return _reorder(self.data)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is F.linear and isinstance(args[1], cls) and args[2:] in ((), (None,)) and not kwargs:
            x, weight = args[:2]
            if x.numel() <= FEW_ROWS * x.shape[-1] and not x.requires_grad:
                return torch.ops.mkldnn._linear_pointwise(x, weight.reordered, None, "none", [], "")
        return super().__torch_function__(function, types, args, kwargs or {})


def reorder_weights(model: Transformer) -> int:
    """Reorder the float32 matrices of a model that is not trained or loaded again; how many, 0 where torch cannot."""
    if not _can_reorder():
        return 0
    layers: list[nn.Linear | nn.Embedding] = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if model.config.tie_word_embeddings:
        layers.append(model.embed_tokens)  # read by row on the way in, and multiplied as a whole on the way out
    layers = [layer for layer in layers if layer.weight.dtype == torch.float32]
    for layer in layers:
        weight = ReorderedWeight(layer.weight.data, requires_grad=False)
        weight.reordered = _reorder(layer.weight.data)
        layer.weight = weight
    return len(layers)


def _reorder(weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight, 8)  # 8: the number of rows to choose the order for


def _can_reorder() -> bool:
    x, weight = torch.linspace(-1, 1, 3 * 64).view(3, 64), torch.linspace(-1, 1, 32 * 64).view(32, 64)
    try:
        product = torch.ops.mkldnn._linear_pointwise(x, _reorder(weight), None, "none", [], "")
    except (AttributeError, RuntimeError):  # no such operator; no oneDNN for this processor
        return False
    return torch.allclose(product, F.linear(x, weight), atol=1e-4)
