"""The theatre of chapter 01 shows the shapes that were there, and leaves the model as it was."""

from __future__ import annotations

import pytest
import torch

from handbook.lab.layer_theatre import ROWS, LayerTheatre
from handbook.mini_llm import Qwen3Config, Transformer, generate

PROMPT = torch.tensor([[5, 17, 3, 11, 2]])


@pytest.fixture(scope="module")
def model():
    return Transformer.random(Qwen3Config(61, 24, 40, 3, 4, 2, 10), seed=5)


@pytest.fixture(scope="module")
def stage(model):
    return LayerTheatre(model, PROMPT, num_new_tokens=3, layer=1)


def test_a_pass_is_an_act_of_seven_steps(stage):
    assert [len(act.steps) for act in stage.acts] == [7, 7, 7]
    assert [act.title.split(":")[0] for act in stage.acts] == ["Prefill", "Decode", "Decode"]


@pytest.mark.parametrize(("act", "new"), [(0, 5), (1, 1), (2, 1)])
def test_each_box_has_the_shape_that_the_config_asks_for(stage, act, new):
    assert stage.acts[act].steps[-1].state.shapes == {
        "embed_tokens": f"[1, {new}, 24]",
        "input_layernorm": f"[1, {new}, 24]",
        "q_proj": f"[1, {new}, 40]",
        "k_proj": f"[1, {new}, 20]",
        "v_proj": f"[1, {new}, 20]",
        "q_norm, turned": f"[1, 4, {new}, 10]",
        "k_norm, turned": f"[1, 2, {new}, 10]",
        "v": f"[1, 2, {new}, 10]",
        "attend": f"[1, 4, {new}, 10]",
        "o_proj, + what was there": f"[1, {new}, 24]",
        "post_attention_layernorm": f"[1, {new}, 24]",
        "gate_proj": f"[1, {new}, 40]",
        "up_proj": f"[1, {new}, 40]",
        "down_proj, + what was there": f"[1, {new}, 24]",
        "logits of the last token": "[1, 61]",
    }


def test_a_shape_is_shown_from_the_step_on_in_which_its_box_comes_to_life(stage):
    _, scenes = stage.scenes()
    for number, scene in enumerate(scenes):
        shown = {mark.name.removeprefix("shape "): mark.string for mark in scene if mark.name.startswith("shape ")}
        reached = {name for step, names in ROWS for name in names if step <= number % 7}
        assert {name for name, shape in shown.items() if shape} == reached


@pytest.mark.parametrize(("number", "before", "after"), [(2, 0, 0), (3, 0, 5), (9, 5, 5), (10, 5, 6), (17, 6, 7)])
def test_the_columns_of_k_and_v_are_those_kept_so_far(stage, number, before, after):
    names = [mark.name for mark in stage.scenes()[1][number]]
    for kind in "KV":
        assert [name for name in names if name.startswith(f"{kind} ")] == [f"{kind} {i}" for i in range(after)]
    assert names.count("reads") == (5 if number == 3 else 1 if after > before else 0)


def test_it_plays_the_prompt_and_then_what_the_model_says(model):
    played: list[int] = []
    hook = model.embed_tokens.register_forward_hook(lambda _, args, out: played.extend(args[0][0].tolist()))
    LayerTheatre(model, PROMPT, num_new_tokens=4)
    hook.remove()
    assert played == PROMPT[0].tolist() + generate(model, PROMPT, 3)[0].tolist()


def test_no_hook_is_left_even_when_the_model_fails(model, stage):
    with pytest.raises(ValueError, match="vocabulary"):
        LayerTheatre(model, torch.tensor([[61]]))
    assert not any(module._forward_hooks for module in model.modules())
