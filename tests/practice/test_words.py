"""The judge's words: both languages say the same, and every word is used."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from practice.grader.contract import VERDICTS
from practice.grader.words import WORDS, system_language

GRADER = Path(__file__).parents[2] / "practice"


def fields(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def test_both_languages_fill_in_the_same_values() -> None:
    for key, (english, chinese) in WORDS.items():
        assert fields(english) == fields(chinese), key


def test_chinese_has_a_space_beside_latin_letters_and_its_own_punctuation() -> None:
    for key, (_, chinese) in WORDS.items():
        text = re.sub(r"\{\w+\}", "x", chinese.replace("{takes}", "一个题号")) if key != "usage" else ""
        assert not re.search(r"[一-鿿][A-Za-z0-9]|[A-Za-z0-9][一-鿿]", text), (key, text)
        assert not re.search(r"[一-鿿] ?[,;:?!()]", text), (key, text)


def test_every_sentence_is_said_somewhere_and_every_verdict_has_its_word() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in GRADER.rglob("*.py") if path.name != "words.py")
    for key in WORDS.keys() - set(VERDICTS) - {"easy", "medium", "hard"}:
        assert f'"{key}"' in sources, key
    assert set(VERDICTS) <= WORDS.keys()


@pytest.mark.parametrize(
    ("name", "language"), [("zh_CN.UTF-8", "zh"), ("zh_TW", "zh"), ("en_US.UTF-8", "en"), ("de_DE", "en"), ("C", "en")]
)
def test_the_system_decides_the_language(monkeypatch: pytest.MonkeyPatch, name: str, language: str) -> None:
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.delenv("LC_MESSAGES", raising=False)
    monkeypatch.setenv("LANG", name)
    assert system_language() == language
