"""Finds the best model on this machine for the experiments. Never touches the network.

In this order: what the environment variable HANDBOOK_MODEL names (a folder, or `embedded`); `models/Qwen3-0.6B`
beside the README; Qwen3-0.6B in the Hugging Face or the ModelScope cache; else the model embedded in this package,
which has memorised a few dozen answers (`handbook/lab/embedded/MODEL_CARD.md`) and makes every chapter run offline.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from handbook.lab.tokenizer import EMBEDDED
from handbook.mini_llm import Transformer

REPOSITORY = Path(__file__).parents[2]
DOWNLOAD = (
    "To run on the real Qwen3-0.6B (1.5 GB), in the folder of the README: "
    ".venv/bin/hf download Qwen/Qwen3-0.6B --local-dir models/Qwen3-0.6B "
    "(or: modelscope download --model Qwen/Qwen3-0.6B --local_dir models/Qwen3-0.6B)."
)


@dataclass(frozen=True)
class LoadedModel:
    """A model in float32 with its tokenizer. `name` is `embedded` or the model's folder name."""

    name: str
    path: Path
    model: Transformer
    tokenizer: PreTrainedTokenizerFast
    eos_token_id: int

    def chat(self, system: str, question: str) -> list[int]:
        """Prompt tokens of one question under a system prompt, ready for the answer, thinking switched off."""
        return self.chat_messages([{"role": "system", "content": system}, {"role": "user", "content": question}])

    def chat_messages(self, messages: list[dict[str, str]]) -> list[int]:
        """Prompt tokens of a whole dialogue, a list of `{"role", "content"}`, ready for the next answer."""
        tokens: list[int] = self.tokenizer.apply_chat_template(  # type: ignore[assignment]
            messages, add_generation_prompt=True, enable_thinking=False, return_dict=False
        )
        return tokens

    def text(self, token_ids: list[int]) -> str:
        """What the tokens say, without special tokens."""
        return str(self.tokenizer.decode(token_ids, skip_special_tokens=True))

    def describe(self) -> str:
        """One line for the head of an experiment: which model it runs on. No paths, so it is the same everywhere."""
        millions = sum(weight.numel() for weight in self.model.parameters()) / 1e6
        learnt = "; it has memorised a few dozen answers and understands nothing" if self.name == "embedded" else ""
        return f"Model: {self.name}, {millions:.1f}M parameters, float32{learnt}."


def find(environ: Mapping[str, str] = os.environ, repository: Path = REPOSITORY) -> LoadedModel:
    """Load the best model there is, in the order above. ValueError when HANDBOOK_MODEL names an unusable folder."""
    named = environ.get("HANDBOOK_MODEL", "")
    if named == "embedded":
        return load(EMBEDDED)
    if named:
        folder = Path(named).expanduser()
        if lacking := missing_files(folder):
            raise ValueError(
                f"HANDBOOK_MODEL is {named!r}, which lacks {', '.join(lacking)}. "
                "Set it to the folder of a Qwen3 checkpoint, to `embedded`, or unset it."
            )
        return load(folder)
    for folder in _usual_places(environ, repository):
        if not missing_files(folder):
            return load(folder, name="Qwen3-0.6B")
    return load(EMBEDDED)


def load(folder: Path, name: str | None = None) -> LoadedModel:
    """Load one Hugging Face folder. Its own errors (a wrong architecture, a missing tensor) name folder and fault."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    return LoadedModel(
        name or ("embedded" if folder == EMBEDDED else folder.resolve().name),
        folder,
        Transformer.from_pretrained(folder),
        tokenizer,
        _eos_token_id(folder, tokenizer),
    )


def missing_files(folder: Path) -> list[str]:
    """What a folder lacks to be a usable checkpoint: an interrupted download lacks some of its shards."""
    index = folder / "model.safetensors.index.json"
    weights = ["model.safetensors"]
    if index.exists():
        weights = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    return [file for file in ("config.json", "tokenizer.json", *weights) if not (folder / file).exists()]


def _usual_places(environ: Mapping[str, str], repository: Path) -> Iterator[Path]:
    yield repository / "models" / "Qwen3-0.6B"
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    huggingface = Path(environ.get("HF_HOME") or cache / "huggingface").expanduser()
    hub = Path(environ.get("HF_HUB_CACHE") or huggingface / "hub").expanduser() / "models--Qwen--Qwen3-0.6B"
    main = hub / "refs" / "main"
    if main.exists():
        yield hub / "snapshots" / main.read_text(encoding="utf-8").strip()
    yield from sorted((hub / "snapshots").glob("*"))
    modelscope = Path(environ.get("MODELSCOPE_CACHE") or Path.home() / ".cache" / "modelscope").expanduser()
    for parent in ("hub/models", "models", "hub", ""):  # its layout changed over the years
        for name in ("Qwen3-0___6B", "Qwen3-0.6B"):
            yield modelscope / parent / "Qwen" / name


def _eos_token_id(folder: Path, tokenizer: PreTrainedTokenizerFast) -> int:
    """The token that ends an answer: as generation_config.json says, else config.json, else the tokenizer."""
    for file in ("generation_config.json", "config.json"):
        if (folder / file).exists():
            found = json.loads((folder / file).read_text(encoding="utf-8")).get("eos_token_id")
            if found is not None:
                return found[0] if isinstance(found, list) else found
    if tokenizer.eos_token_id is None:
        raise ValueError(f"{folder} names no eos_token_id in generation_config.json, config.json or its tokenizer.")
    return tokenizer.eos_token_id
