"""The bytes of a token, from configurations of several models."""

from __future__ import annotations

import json

import pytest

from handbook.kv_size import kv_bytes_per_token
from handbook.mini_llm import Qwen3Config

QWEN3_06B = {"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128}
PLAIN = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}


@pytest.fixture
def size(tmp_path):
    def of(config):
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return kv_bytes_per_token(tmp_path / "config.json")

    return of


def test_a_token_of_qwen3_06b_takes_112_kib(size, tmp_path):
    assert size(QWEN3_06B) == 112 * 1024
    assert kv_bytes_per_token(str(tmp_path)) == 112 * 1024, "the folder names its config.json"


def test_a_config_of_the_course_is_taken_as_it_is():
    config = Qwen3Config(64, 16, 32, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, head_dim=8)
    assert kv_bytes_per_token(config) == 2 * 3 * 1 * 8 * 2
    assert kv_bytes_per_token(config, bytes_per_number=4) == 2 * 3 * 1 * 8 * 4


def test_without_head_dim_and_kv_heads_they_follow_from_the_heads(size):
    assert size(PLAIN) == 2 * 2 * 4 * 16 * 2


def test_of_a_model_that_also_sees_the_language_part_counts(size):
    assert size({"text_config": PLAIN, "vision_config": {"num_hidden_layers": 99}}) == size(PLAIN)


def test_a_sliding_window_that_is_switched_off_does_not_matter(size):
    assert size(PLAIN | {"sliding_window": 4096, "use_sliding_window": False}) == size(PLAIN)


@pytest.mark.parametrize(
    "odd", [{"kv_lora_rank": 512}, {"sliding_window": 4096}, {"layer_types": ["full_attention", "linear_attention"]}]
)
def test_a_model_that_does_not_keep_all_k_and_v_is_an_error(size, odd):
    with pytest.raises(ValueError, match="not every layer keeps K and V of every token"):
        size(PLAIN | odd)


@pytest.mark.parametrize("name", ["num_hidden_layers", "num_attention_heads", "hidden_size"])
def test_what_a_config_lacks_is_named(size, name):
    with pytest.raises(ValueError, match="lacks"):
        size({key: value for key, value in PLAIN.items() if key != name})


def test_a_file_that_is_no_config_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(ValueError, match=r"notes\.txt is no config\.json"):
        kv_bytes_per_token(tmp_path / "notes.txt")
