"""Model folders: what is read from one file or from shards, and what a broken folder is told."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file

from handbook.checkpoint import check_tensors, read_config, read_tensors

TENSORS = {
    "a": torch.arange(6.0).view(2, 3),
    "b": torch.arange(4, dtype=torch.bfloat16),
    "c": torch.ones(1),
}


def save_shards(path, shards):
    """One file for each list of names, and the index that says which tensor is where."""
    where = {}
    for number, names in enumerate(shards):
        file = f"model-{number}.safetensors"
        save_file({name: TENSORS[name] for name in names}, path / file)
        where.update(dict.fromkeys(names, file))
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}), encoding="utf-8")


def assert_same(tensors):
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)


def test_one_file_is_read_with_names_and_dtypes(tmp_path):
    save_file(TENSORS, tmp_path / "model.safetensors")
    assert_same(read_tensors(tmp_path))


def test_shards_are_read_like_one_file(tmp_path):
    save_shards(tmp_path, [["c", "a"], ["b"]])
    assert_same(read_tensors(str(tmp_path)))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors is missing"):
        read_tensors(tmp_path)


def test_a_missing_shard_is_named(tmp_path):
    save_shards(tmp_path, [["a"], ["b"], ["c"]])
    (tmp_path / "model-1.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"model-1\.safetensors is missing"):
        read_tensors(tmp_path)


def test_a_missing_config_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        read_config(tmp_path)


def test_a_config_is_read_as_it_is(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "千问", "x": null}', encoding="utf-8")
    assert read_config(str(tmp_path)) == {"model_type": "千问", "x": None}


SHAPES = {name: tensor.shape for name, tensor in TENSORS.items()}


def test_tensors_with_the_expected_names_and_shapes_pass():
    check_tensors("here", TENSORS, SHAPES)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({**SHAPES, "e": torch.Size([1]), "d": torch.Size([1])}, "here lacks 2 tensors, the first of them d"),
        ({"b": SHAPES["b"]}, "here has 2 tensors of no use here, the first of them a"),
        ({**SHAPES, "a": torch.Size([3, 2])}, r"here: a is \[2, 3\]; config.json asks for \[3, 2\]"),
    ],
)
def test_other_tensors_than_expected_are_named(expected, message):
    with pytest.raises(ValueError, match=message):
        check_tensors("here", TENSORS, expected)
