"""What a cached token costs: the bytes of its K and V, from a model's configuration.

Each layer keeps one K and one V vector of head_dim numbers for each KV head, and that is all. So a capacity in tokens
is one in gigabytes as soon as a model is named.
"""

# Woven from notebooks/zh/05_hit_rates.ipynb by make build: edit it there.

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol


class KVShape(Protocol):
    """What decides the size of a KV cache; a `Qwen3Config` has it."""

    @property
    def num_hidden_layers(self) -> int: ...
    @property
    def num_key_value_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...


def kv_bytes_per_token(config: KVShape | str | Path, bytes_per_number: int = 2) -> int:
    """Bytes of K and V of one token: 2 a number in bfloat16. `config`: a `Qwen3Config`, or a config.json or its folder.

    A model that keeps something else than K and V of every token in every layer is a ValueError.
    """
    if isinstance(config, str | Path):
        config = read_kv_shape(Path(config))
    return 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * bytes_per_number


def read_kv_shape(path: Path) -> KVShape:
    """The shape that a Hugging Face config.json, of any model with plain attention, tells."""
    path = path / "config.json" if path.is_dir() else path
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        raw = raw.get("text_config", raw)  # of a model that also sees or hears
    except (ValueError, AttributeError):
        raise ValueError(f"{path} is no config.json of a model.") from None
    window = raw.get("sliding_window") and raw.get("use_sliding_window", True)
    if raw.get("kv_lora_rank") or set(raw.get("layer_types") or []) - {"full_attention"} or window:
        raise ValueError(f"{path}: not every layer keeps K and V of every token, so its cache cannot be counted here.")
    heads = raw.get("num_attention_heads")
    shape = {
        "num_hidden_layers": raw.get("num_hidden_layers"),
        "num_key_value_heads": raw.get("num_key_value_heads") or heads,
        "head_dim": raw.get("head_dim") or (raw.get("hidden_size") or 0) // (heads or 1),
    }
    for name, value in shape.items():
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{path} lacks {name}, without which the bytes of a token are not known.")
    return SimpleNamespace(**shape)
