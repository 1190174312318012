"""A Hugging Face model folder: `config.json`, and tensors in one safetensors file or in shards with an index."""

# Woven from notebooks/zh/01_mini_llm.ipynb by make build: edit it there.

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Size, Tensor


def read_config(path: str | Path) -> dict[str, Any]:
    """`config.json` in the folder `path`, as it is."""
    return json.loads((Path(path) / "config.json").read_text(encoding="utf-8"))


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """All tensors of the folder `path` by name, in the dtype they have there. A missing file is an error naming it."""
    index = Path(path) / "model.safetensors.index.json"
    files = ["model.safetensors"]
    if index.exists():
        files = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    tensors: dict[str, Tensor] = {}
    for file in files:
        if not (Path(path) / file).exists():
            raise FileNotFoundError(f"{Path(path) / file} is missing: the folder is incomplete; download it again.")
        tensors.update(load_file(Path(path) / file))
    return tensors


def check_tensors(path: str | Path, tensors: Mapping[str, Tensor], expected: Mapping[str, Size]) -> None:
    """ValueError naming the first tensor of `path` that is missing, of no use, or of another shape than expected."""
    if missing := sorted(expected.keys() - tensors.keys()):
        raise ValueError(f"{path} lacks {len(missing)} tensors, the first of them {missing[0]}.")
    if unexpected := sorted(tensors.keys() - expected.keys()):
        raise ValueError(f"{path} has {len(unexpected)} tensors of no use here, the first of them {unexpected[0]}.")
    for name, shape in expected.items():
        if tensors[name].shape != shape:
            raise ValueError(f"{path}: {name} is {list(tensors[name].shape)}; config.json asks for {list(shape)}.")
