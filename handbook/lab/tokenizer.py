"""Qwen3's tokenizer, whole (for tests) and cut down to the embedded model's few texts.

Byte-pair encoding starts from bytes and applies merges in the order of their ranks. A piece of the vocabulary needs
its merge ancestors and nothing else; so a vocabulary that keeps the pieces of some texts with all their ancestors,
in the same order, cuts exactly those texts exactly as the whole one does, and any other text into smaller pieces.

The ranks are Qwen's (Apache-2.0), read from the file that the package `dashscope` carries; it is needed for building
alone. `python -m handbook.lab.tokenizer` writes the cut-down tokenizer into `handbook/lab/embedded/`.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from handbook.lab import texts

EMBEDDED = Path(__file__).parent / "embedded"

_SPECIAL = (
    "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> "
    "<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|> "
    "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> "
    "<tool_response> </tool_response> <think> </think>"
)
SPECIAL_TOKENS = tuple(_SPECIAL.split())
# Qwen3 marks these as ordinary added tokens: decoding keeps them even where special tokens are left out.
_NOT_SPECIAL = frozenset(SPECIAL_TOKENS[14:])

# How text is cut into words before the merges: contractions, words, single digits, punctuation, line ends, spaces.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
    "{%- endif %}"
)


def read_ranks() -> dict[bytes, int]:
    """Qwen's pieces and their ranks, lowest merged first. ModuleNotFoundError when `dashscope` is not installed."""
    spec = importlib.util.find_spec("dashscope")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            "dashscope, which carries Qwen's vocabulary, is not installed: pip install --no-deps dashscope"
        )
    lines = (Path(spec.submodule_search_locations[0]) / "resources" / "qwen.tiktoken").read_bytes().splitlines()
    return {base64.b64decode(piece): int(rank) for piece, rank in map(bytes.split, lines)}


def parents(piece: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two pieces whose merge gives `piece`: merge its bytes in the order of ranks until two parts are left."""
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while len(parts) > 2:
        unranked = len(ranks)
        i = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], unranked))
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts[0], parts[1]


@lru_cache(maxsize=1)  # building it takes seconds
def full_tokenizer() -> PreTrainedTokenizerFast:
    """Qwen3's own tokenizer: 151,643 pieces, then 26 special tokens."""
    ranks = read_ranks()
    return _wrap(ranks, [parents(piece, ranks) for piece in sorted(ranks, key=ranks.__getitem__) if len(piece) > 1])


def cut_tokenizer(trained: Iterable[str], later: Iterable[str] = ()) -> PreTrainedTokenizerFast:
    """Qwen3's tokenizer cut down to the given texts: 256 bytes, 26 special tokens, then the texts' pieces.

    The pieces of `trained` come first, in the order of ranks, then those that only `later` needs: a text added to
    `later` leaves every id of a trained model as it was.
    """
    ranks, full = read_ranks(), full_tokenizer()
    letters = {letter: byte for byte, letter in _byte_letters().items()}
    kept = {bytes([byte]): 0 for byte in range(256)}
    ids = {piece: ranks[piece] for piece in sorted(kept, key=ranks.__getitem__)}
    for group in (trained, later):
        found = {token for text in group for token in full.tokenize(text)} - set(SPECIAL_TOKENS)
        open_pieces = [bytes(letters[letter] for letter in token) for token in found]
        new: set[bytes] = set()
        while open_pieces:
            piece = open_pieces.pop()
            if piece not in ids and piece not in new:
                new.add(piece)
                open_pieces.extend(parents(piece, ranks))
        ids.update({piece: ranks[piece] for piece in sorted(new, key=ranks.__getitem__)})
    order = {piece: i if i < 256 else i + len(SPECIAL_TOKENS) for i, piece in enumerate(ids)}
    merged = sorted((piece for piece in ids if len(piece) > 1), key=ranks.__getitem__)
    return _wrap(order, [parents(piece, ranks) for piece in merged], first_special=256)


def _byte_letters() -> dict[int, str]:
    """GPT-2's printable letter for each byte, in which byte-level vocabularies are written."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def _wrap(
    ids: dict[bytes, int], merges: list[tuple[bytes, bytes]], first_special: int | None = None
) -> PreTrainedTokenizerFast:
    letters = _byte_letters()

    def written(piece: bytes) -> str:
        return "".join(letters[byte] for byte in piece)

    start = len(ids) if first_special is None else first_special
    vocab = {written(piece): i for piece, i in ids.items()} | {t: start + i for i, t in enumerate(SPECIAL_TOKENS)}
    core = Tokenizer(models.BPE(vocab=vocab, merges=[(written(a), written(b)) for a, b in merges]))
    core.normalizer = normalizers.NFC()
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    core.add_tokens([AddedToken(t, normalized=False, special=t not in _NOT_SPECIAL) for t in SPECIAL_TOKENS])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=40960,
    )


def write(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and the chat template into a folder."""
    for option in ("local_files_only", "is_local"):  # how it was loaded is no part of what it is
        tokenizer.init_kwargs.pop(option, None)
    tokenizer.save_pretrained(folder)


def main() -> None:
    tokenizer = cut_tokenizer(texts.trained(), texts.LATER)
    write(tokenizer, EMBEDDED)
    print(f"{len(tokenizer)} tokens written to {EMBEDDED.name}/.")


if __name__ == "__main__":
    main()
