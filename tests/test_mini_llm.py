"""The transformer against transformers' own Qwen3, through checkpoints that transformers wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from handbook.attention import ContiguousKVCache, NoCache, causal_attention
from handbook.mini_llm import (
    Qwen3Config,
    RMSNorm,
    Transformer,
    generate,
)

TOLERANCE = 1e-4  # of logits near 1, in float32: two orders of adding up, seen to differ by some 1e-6
SMALLEST_GAP = 1e-3  # between the two best tokens, so that the tolerance cannot change a greedy token

# Dimensions differ from each other, and heads x head_dim from hidden_size; a K/V head serves 1, 2 or 4 query heads.
SIZES: dict[str, dict[str, Any]] = {
    "groups of 1, tied": {
        "vocab_size": 97,
        "hidden_size": 24,
        "intermediate_size": 44,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 10,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5_000.0},
        "tie_word_embeddings": True,
    },
    "groups of 2, untied": {
        "vocab_size": 131,
        "hidden_size": 36,
        "intermediate_size": 28,
        "num_hidden_layers": 1,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "head_dim": 8,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
        "tie_word_embeddings": False,
    },
    "groups of 4, tied": {
        "vocab_size": 61,
        "hidden_size": 20,
        "intermediate_size": 52,
        "num_hidden_layers": 5,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 14,
        "rms_norm_eps": 1e-2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
        "tie_word_embeddings": True,
    },
}


def write_checkpoint(path: Path, sizes: dict[str, Any], dtype: torch.dtype, max_shard_size: str) -> None:
    """A random Qwen3 of transformers, its activations near 1 and its norms' weights not, saved by it."""
    with torch.device("meta"):
        model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**sizes))
    model.to_empty(device="cpu").type(dtype).tie_weights()
    generator = torch.Generator().manual_seed(9)  # with which no greedy choice below is a close one
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.dim() == 1:
                weight.uniform_(0.5, 1.5, generator=generator)
            else:
                scale = 2 if ".layers." in name else 1  # a lively text, not one word for ever
                weight.normal_(std=scale * weight.shape[-1] ** -0.5, generator=generator)
    model.save_pretrained(path, max_shard_size=max_shard_size)


def theirs(path: Path) -> transformers.Qwen3ForCausalLM:
    return transformers.Qwen3ForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Each of SIZES in both dtypes, in one file and in shards: folders by (sizes, dtype, sharded)."""
    folders = {}
    for name, sizes in SIZES.items():
        for dtype in (torch.float32, torch.bfloat16):
            for sharded in (False, True):
                path = tmp_path_factory.mktemp("qwen3")
                write_checkpoint(path, sizes, dtype, "20KB" if sharded else "1GB")
                folders[name, dtype, sharded] = path
    return folders


every_checkpoint = [
    pytest.param(name, dtype, sharded, id=f"{name}, {dtype}, {'sharded' if sharded else 'one file'}")
    for name in SIZES
    for dtype in (torch.float32, torch.bfloat16)
    for sharded in (False, True)
]


def test_the_checkpoints_are_what_they_are_called(checkpoints):
    for (_, dtype, sharded), path in checkpoints.items():
        files = sorted(path.glob("*.safetensors"))
        assert (len(files) > 1) == sharded
        assert {tensor.dtype for file in files for tensor in load_file(file).values()} == {dtype}


# ---- the same logits, the same words


@torch.inference_mode()
@pytest.mark.parametrize(("name", "dtype", "sharded"), every_checkpoint)
def test_logits_equal_those_of_transformers(checkpoints, name, dtype, sharded):
    path = checkpoints[name, dtype, sharded]
    input_ids = torch.randint(SIZES[name]["vocab_size"], (3, 41), generator=torch.Generator().manual_seed(1))
    ours, reference = Transformer.from_pretrained(path)(input_ids), theirs(path)(input_ids).logits
    assert ours.shape == reference.shape == (3, 41, SIZES[name]["vocab_size"])
    assert reference.std() > 0.3
    assert (ours - reference).abs().max() < TOLERANCE


@torch.inference_mode()
@pytest.mark.parametrize(("name", "dtype", "sharded"), every_checkpoint)
def test_64_greedy_tokens_equal_those_of_transformers(checkpoints, name, dtype, sharded):
    path = checkpoints[name, dtype, sharded]
    prompt = torch.tensor([[7, 3, 50, 12, 9]])
    model = theirs(path)
    model.generation_config.update(do_sample=False, eos_token_id=None, pad_token_id=0)
    reference = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=64)
    ours = generate(Transformer.from_pretrained(path), prompt, 64)
    assert ours.tolist() == reference[:, prompt.shape[1] :].tolist()
    assert len(ours[0].unique()) > 8
    best = model(reference).logits[0, prompt.shape[1] - 1 : -1].topk(2).values
    assert (best[:, 0] - best[:, 1]).min() > SMALLEST_GAP


@torch.inference_mode()
@pytest.mark.parametrize("name", SIZES)
def test_every_tensor_of_a_checkpoint_counts(checkpoints, name):
    """The negative control: with any one tensor changed, the logits are far beyond the tolerance."""
    model = Transformer.from_pretrained(checkpoints[name, torch.float32, False])
    input_ids = torch.randint(SIZES[name]["vocab_size"], (1, 9), generator=torch.Generator().manual_seed(2))
    right = model(input_ids)
    for weight in model.parameters():
        kept = weight.clone()
        weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(3)))
        assert (model(input_ids) - right).abs().max() > 20 * TOLERANCE
        weight.copy_(kept)
    assert torch.equal(model(input_ids), right)


@pytest.mark.slow
@torch.inference_mode()
def test_logits_of_the_0_6b_shape_equal_those_of_transformers(tmp_path):
    sizes = {
        "vocab_size": 151_936,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
        "tie_word_embeddings": True,
    }
    write_checkpoint(tmp_path, sizes, torch.bfloat16, "700MB")
    input_ids = torch.tensor([[151_643, 9707, 11, 1879, 0, 151_935, 77, 42]])
    reference = theirs(tmp_path)(input_ids).logits
    model = Transformer.from_pretrained(tmp_path)
    assert sum(weight.numel() for weight in model.parameters()) == 596_049_920
    assert (model(input_ids) - reference).abs().max() < TOLERANCE


# ---- caches


@pytest.fixture(scope="module")
def model():
    return Transformer.random(Qwen3Config(61, 24, 40, 3, 4, 2, 10), seed=5)


@torch.inference_mode()
@pytest.mark.parametrize("cuts", [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [5, 11], [1, 11], [10, 11], [3, 4, 8, 11], [11]])
def test_a_sequence_computed_in_pieces_has_the_logits_of_the_whole(model, cuts):
    input_ids = torch.randint(61, (2, 11), generator=torch.Generator().manual_seed(4))
    kv_cache, pieces = ContiguousKVCache(), []
    for start, stop in zip([0, *cuts], cuts, strict=False):
        pieces.append(model(input_ids[:, start:stop], torch.arange(start, stop)[None], kv_cache))
    assert (torch.cat(pieces, dim=1) - model(input_ids)).abs().max() < 1e-5


@torch.inference_mode()
def test_a_token_does_not_see_those_after_it(model):
    input_ids = torch.randint(61, (1, 11), generator=torch.Generator().manual_seed(4))
    changed = input_ids.clone()
    changed[0, 7] += 1
    difference = (model(input_ids) - model(changed)).abs().amax(dim=-1)[0]
    assert difference[:7].max() == 0
    assert difference[7:].min() > 1e-3


@torch.inference_mode()
@pytest.mark.parametrize(("new", "context"), [(1, 1), (1, 6), (6, 6), (2, 6), (5, 6)])
def test_attention_is_a_weighted_mean_of_the_values_up_to_the_own_position(new, context):
    generator = torch.Generator().manual_seed(6)
    q = torch.randn(2, 4, new, 8, generator=generator)
    k, v = torch.randn(2, 2, 2, context, 8, generator=generator)
    out = causal_attention(q, k, v)
    for head in range(4):
        for i in range(new):
            seen = context - new + i + 1
            weights = torch.softmax(k[:, head // 2, :seen] @ q[:, head, i, :, None] / 8**0.5, dim=1)
            assert torch.allclose(out[:, head, i], (weights * v[:, head // 2, :seen]).sum(1), atol=1e-5)


@torch.inference_mode()
def test_positions_shift_nothing_but_the_distance_counts(model):
    input_ids = torch.randint(61, (1, 9), generator=torch.Generator().manual_seed(8))
    far = model(input_ids, torch.arange(500, 509)[None])
    assert (far - model(input_ids)).abs().max() < 1e-4  # angles of positions near 500 are known to some 1e-5 only
    stretched = model(input_ids, torch.arange(0, 18, 2)[None])
    assert (stretched - model(input_ids)).abs().max() > 1e-2


@torch.inference_mode()
def test_the_sequences_of_a_batch_do_not_see_each_other(model):
    input_ids = torch.randint(61, (3, 9), generator=torch.Generator().manual_seed(9))
    alone = torch.cat([model(row[None], kv_cache=NoCache()) for row in input_ids])
    assert (model(input_ids) - alone).abs().max() < 1e-5


@torch.inference_mode()
def test_a_norm_squares_in_float32_whatever_its_dtype():
    x = torch.randn(50, 64, generator=torch.Generator().manual_seed(10)).bfloat16()
    norm = RMSNorm(64, 1e-6).bfloat16()
    norm.weight.uniform_(0.5, 1.5, generator=torch.Generator().manual_seed(11))
    reference = transformers.models.qwen3.modeling_qwen3.Qwen3RMSNorm(64, 1e-6).bfloat16()
    reference.weight.copy_(norm.weight)
    assert norm(x).dtype == torch.bfloat16
    assert torch.equal(norm(x), reference(x))


# ---- greedy decoding


@torch.inference_mode()
def test_generate_is_the_argmax_of_the_whole_sequence_at_each_step(model):
    tokens = [5, 17, 3]
    for _ in range(12):
        tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
    assert generate(model, torch.tensor([[5, 17, 3]]), 12).tolist() == [tokens[3:]]


def test_generate_ends_with_the_first_eos(model):
    (tokens,) = generate(model, torch.tensor([[5, 17, 3]]), 12).tolist()
    for eos in set(tokens):
        expected = tokens[: tokens.index(eos) + 1]
        assert generate(model, torch.tensor([[5, 17, 3]]), 12, eos_token_id=eos).tolist() == [expected]


def test_generate_leaves_its_prompt_alone_and_returns_int64(model):
    prompt = torch.tensor([[5, 17, 3]])
    tokens = generate(model, prompt, 1)
    assert (prompt.tolist(), tokens.shape, tokens.dtype) == ([[5, 17, 3]], (1, 1), torch.int64)


@pytest.mark.parametrize(
    ("input_ids", "max_new_tokens", "message"),
    [
        (torch.tensor([[1], [2]]), 1, r"\[2, 1\]"),
        (torch.tensor([1, 2]), 1, r"\[2\]"),
        (torch.zeros(1, 0, dtype=torch.int64), 1, r"\[1, 0\]"),
        (torch.tensor([[1]]), 0, "got 0"),
        (torch.tensor([[1]]), -3, "got -3"),
        (torch.tensor([[1]], dtype=torch.int32), 1, "int32"),
        (torch.tensor([[1, 61]]), 1, "61.*0 to 60"),
        (torch.tensor([[1, -1]]), 1, "-1.*0 to 60"),
    ],
)
def test_generate_names_a_wrong_argument(model, input_ids, max_new_tokens, message):
    with pytest.raises(ValueError, match=message):
        generate(model, input_ids, max_new_tokens)


@pytest.mark.parametrize("input_ids", [torch.tensor([1]), torch.ones(1, 2), torch.zeros(1, 0, dtype=torch.int64)])
def test_the_model_names_the_shape_and_dtype_of_wrong_input(model, input_ids):
    with pytest.raises(ValueError, match=rf"int64.*{input_ids.dtype}"):
        model(input_ids)


# ---- random weights


def test_random_weights_hang_on_their_seed_alone(model):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    again, other = Transformer.random(model.config, 5), Transformer.random(model.config, 6)
    assert torch.equal(torch.get_rng_state(), before)
    for name, weight in model.named_parameters():
        assert torch.equal(again.get_parameter(name), weight)
        assert weight.dim() == 1 or not torch.equal(other.get_parameter(name), weight)


@torch.inference_mode()
def test_random_weights_keep_activations_near_1():
    deep = Transformer.random(Qwen3Config(101, 64, 128, 12, 4, 2, 16), seed=0)
    assert 0.3 < deep(torch.arange(50)[None]).std() < 3


def test_a_model_is_computed_in_the_dtype_it_is_asked_in(checkpoints):
    path = checkpoints["groups of 1, tied", torch.float32, False]
    assert {w.dtype for w in Transformer.from_pretrained(path, torch.bfloat16).parameters()} == {torch.bfloat16}
    path = checkpoints["groups of 1, tied", torch.bfloat16, False]
    assert {w.dtype for w in Transformer.from_pretrained(path).parameters()} == {torch.float32}


# ---- folders that differ from what transformers writes today


@dataclass
class Folder:
    """A small checkpoint that a test may change before it is loaded."""

    path: Path
    config: dict[str, Any]
    tensors: dict[str, Tensor]

    def load(self) -> Transformer:
        (self.path / "config.json").write_text(json.dumps(self.config), encoding="utf-8")
        save_file(self.tensors, self.path / "model.safetensors")
        return Transformer.from_pretrained(self.path)


@pytest.fixture
def folder(checkpoints, tmp_path):
    source = checkpoints["groups of 1, tied", torch.float32, False]
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    return Folder(tmp_path, config, load_file(source / "model.safetensors"))


INPUT = torch.arange(20)[None]


@pytest.mark.parametrize("rope_scaling", [None, {}, {"rope_type": "default"}, {"type": "default"}])
def test_theta_is_read_where_older_configs_have_it(folder, rope_scaling):
    expected = folder.load()(INPUT)
    folder.config["rope_theta"] = folder.config.pop("rope_parameters")["rope_theta"]
    folder.config["rope_scaling"] = rope_scaling
    assert torch.equal(folder.load()(INPUT), expected)


def test_theta_among_the_rope_parameters_wins_as_in_transformers(folder):
    expected = folder.load()(INPUT)
    folder.config["rope_theta"] = 77.0
    assert torch.equal(folder.load()(INPUT), expected)
    assert torch.allclose(theirs(folder.path)(INPUT).logits, expected, atol=TOLERANCE)


def test_a_config_that_does_not_say_tied_is_untied_as_in_transformers(folder):
    del folder.config["tie_word_embeddings"]
    with pytest.raises(ValueError, match=r"lacks 1 tensors.*lm_head\.weight"):
        folder.load()
    folder.tensors["lm_head.weight"] = folder.tensors["model.embed_tokens.weight"].flip(0).clone()
    ours = folder.load()(INPUT)
    assert torch.allclose(theirs(folder.path)(INPUT).logits, ours, atol=TOLERANCE)


def test_a_config_without_eps_has_qwen3s_own(folder):
    del folder.config["rms_norm_eps"]
    assert folder.load().config.rms_norm_eps == 1e-6 == transformers.Qwen3Config().rms_norm_eps


def test_a_tied_checkpoint_may_hold_the_embedding_twice(folder):
    expected = folder.load()(INPUT)
    folder.tensors["lm_head.weight"] = folder.tensors["model.embed_tokens.weight"].clone()
    assert torch.equal(folder.load()(INPUT), expected)


def test_a_tied_checkpoint_with_another_head_is_an_error(folder):
    folder.tensors["lm_head.weight"] = folder.tensors["model.embed_tokens.weight"] + 1
    with pytest.raises(ValueError, match=r"lm_head\.weight differs"):
        folder.load()


def test_a_tied_checkpoint_with_a_head_alone_lacks_the_embedding(folder):
    folder.tensors["lm_head.weight"] = folder.tensors.pop("model.embed_tokens.weight")
    with pytest.raises(ValueError, match=r"lacks 1 tensors.*embed_tokens\.weight"):
        folder.load()


def test_a_missing_tensor_is_named(folder):
    del folder.tensors["model.layers.1.self_attn.q_norm.weight"]
    with pytest.raises(ValueError, match=r"lacks 1 tensors.*layers\.1\.self_attn\.q_norm\.weight"):
        folder.load()


def test_an_unexpected_tensor_is_named(folder):
    folder.tensors["model.layers.0.self_attn.q_proj.bias"] = torch.zeros(40)
    with pytest.raises(ValueError, match=r"no use.*layers\.0\.self_attn\.q_proj\.bias"):
        folder.load()


def test_a_tensor_of_the_wrong_shape_is_named_with_both_shapes(folder):
    folder.tensors["model.layers.2.mlp.up_proj.weight"] = torch.zeros(24, 44)
    with pytest.raises(ValueError, match=r"layers\.2\.mlp\.up_proj\.weight is \[24, 44\].*\[44, 24\]"):
        folder.load()


def test_a_missing_shard_is_named(checkpoints, tmp_path):
    for file in checkpoints["groups of 1, tied", torch.float32, True].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    lost = sorted(tmp_path.glob("*.safetensors"))[1]
    lost.unlink()
    with pytest.raises(FileNotFoundError, match=lost.name):
        Transformer.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, "model_type 'llama'"),
        ({"model_type": None}, "model_type None"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"attention_bias": True}, "attention_bias True"),
        ({"use_sliding_window": True}, "use_sliding_window True"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5e3}}, "rope type 'linear'"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, "rope type 'yarn'"),
        ({"rope_scaling": {"type": "dynamic", "factor": 4.0}, "rope_parameters": None}, "rope type 'dynamic'"),
        ({"num_key_value_heads": 3}, "num_attention_heads 4.*num_key_value_heads 3"),
        ({"num_key_value_heads": 0}, "num_key_value_heads must be at least 1; got 0"),
        ({"num_hidden_layers": -1}, "num_hidden_layers must be at least 1; got -1"),
        ({"head_dim": 5}, "head_dim 5"),
    ],
)
def test_a_config_that_would_be_computed_wrongly_is_named(folder, changes, message):
    folder.config |= changes
    with pytest.raises(ValueError, match=message):
        folder.load()


@pytest.mark.parametrize(
    "field",
    [
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
    ],
)
def test_a_config_that_lacks_a_field_is_told_which(folder, field):
    del folder.config[field]
    with pytest.raises(ValueError, match=rf"lacks {field}\."):
        folder.load()


def test_a_config_without_any_theta_is_told_so(folder):
    del folder.config["rope_parameters"]
    with pytest.raises(ValueError, match=r"lacks rope_theta\."):
        folder.load()
