"""The real vocabulary, rebuilt from Qwen's ranks, and the embedded tokenizer cut out of it."""

from __future__ import annotations

import importlib.util
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from handbook.lab import texts, tokenizer

BLOCK = 16


@pytest.fixture(scope="module")
def full():
    return tokenizer.full_tokenizer()


@pytest.fixture(scope="module")
def embedded():
    return AutoTokenizer.from_pretrained(tokenizer.EMBEDDED, local_files_only=True)


@pytest.fixture(params=["full", "embedded"])
def either(request):
    return request.getfixturevalue(request.param)


def six_prompts(of):
    return [
        of.apply_chat_template(
            [{"role": "system", "content": texts.SYSTEM}, {"role": "user", "content": question}],
            add_generation_prompt=True,
            enable_thinking=False,
            return_dict=False,
        )
        for question in texts.QUESTIONS
    ]


def test_the_full_tokenizer_has_qwens_ids_for_special_tokens(full):
    assert full.convert_tokens_to_ids(list(tokenizer.SPECIAL_TOKENS)) == list(range(151643, 151669))


def test_the_six_prompts_have_the_lengths_of_the_original_chapter(either):
    assert [len(prompt) for prompt in six_prompts(either)] == [123, 126, 126, 126, 128, 132]


def test_the_six_prompts_look_up_755_tokens_and_hit_480(either):
    seen: set[tuple[int, ...]] = set()
    looked_up = hits = 0
    for prompt in six_prompts(either):
        tokens = prompt[:-1]  # the last token is always computed
        prefixes = [tuple(tokens[:end]) for end in range(BLOCK, len(tokens) + 1, BLOCK)]
        looked_up += len(tokens)
        hits += BLOCK * sum(prefix in seen for prefix in prefixes)
        seen.update(prefixes)
    assert (looked_up, hits) == (755, 480)


def test_both_tokenizers_cut_every_frozen_text_into_the_same_pieces(full, embedded):
    different = [text for text in (*texts.trained(), *texts.LATER) if full.tokenize(text) != embedded.tokenize(text)]
    assert different == []


def test_both_tokenizers_cut_every_whole_prompt_into_the_same_pieces(full, embedded):
    for prompt_full, prompt_embedded in zip(six_prompts(full), six_prompts(embedded), strict=True):
        assert full.convert_ids_to_tokens(prompt_full) == embedded.convert_ids_to_tokens(prompt_embedded)


def test_the_shipped_tokenizer_is_what_the_frozen_texts_give(embedded):
    built = tokenizer.cut_tokenizer(texts.trained(), texts.LATER)
    assert built.backend_tokenizer.to_str() == embedded.backend_tokenizer.to_str()


def test_a_later_text_adds_its_pieces_behind_the_others(full):
    before = tokenizer.cut_tokenizer(["你好"])
    after = tokenizer.cut_tokenizer(["你好"], ["tensor parallelism"])
    assert len(after) > len(before)
    assert before.get_vocab().items() <= after.get_vocab().items()
    assert after.tokenize("tensor parallelism") == full.tokenize("tensor parallelism")


@given(st.text())
def test_the_embedded_tokenizer_spells_any_text_and_gives_it_back_in_nfc(text):
    embedded = AutoTokenizer.from_pretrained(tokenizer.EMBEDDED, local_files_only=True)
    assert embedded.decode(embedded.encode(text)) == unicodedata.normalize("NFC", text)


def test_a_special_token_is_one_token_in_the_midst_of_text(embedded):
    assert embedded.tokenize("你好<|im_end|>\n") == [*embedded.tokenize("你好"), "<|im_end|>", "Ċ"]


def test_the_chat_template_writes_a_dialogue_as_qwen3_does(either):
    messages = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": "A"},
        {"role": "user", "content": "R"},
    ]
    text = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
    text += "<|im_start|>user\nR<|im_end|>\n"
    header = "<|im_start|>assistant\n"

    def written(**options: bool) -> str:
        return either.apply_chat_template(messages, tokenize=False, **options)

    assert written() == text
    assert written(add_generation_prompt=True) == text + header
    assert written(add_generation_prompt=True, enable_thinking=False) == text + header + "<think>\n\n</think>\n\n"


def test_building_without_qwens_vocabulary_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps dashscope"):
        tokenizer.read_ranks()
