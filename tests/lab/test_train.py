"""Training is reproducible, its trees are what they say, and a model that fails its exam is not written."""

from __future__ import annotations

import random
import sys

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from handbook.lab import exam, texts, train, trees
from handbook.lab.tokenizer import EMBEDDED


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast.from_pretrained(EMBEDDED, local_files_only=True)


def silent(_: str) -> None:
    pass


def no_text(_: str) -> list[int]:
    raise AssertionError("these parts are made of tokens")


def test_two_short_runs_give_identical_weights(tokenizer):
    first, second = (train.train(tokenizer, steps=2, say=silent).state_dict() for _ in range(2))
    assert all(torch.equal(weight, second[name]) for name, weight in first.items())


def test_another_seed_gives_other_weights(tokenizer):
    first, second = (train.train(tokenizer, steps=1, seed=seed, say=silent).embed_tokens.weight for seed in (0, 1))
    assert not torch.equal(first, second)


def test_trained_weights_are_exactly_representable_in_bfloat16(tokenizer):
    weights = train.train(tokenizer, steps=1, say=silent).state_dict().values()
    assert all(torch.equal(weight, weight.bfloat16().float()) for weight in weights)


def test_a_part_sees_itself_causally_and_of_others_what_it_names():
    a, b = trees.Part([1, 2], 0), trees.Part([3, 4], 0)
    c = trees.Part([5, 6], 2, sees=(1,), learn_from=1)
    batch = trees.Batch.of([trees.Tree(no_text, [a, b, c])])
    assert batch.mask[0, 0].int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 1],
    ]
    assert batch.positions[0].tolist() == [0, 1, 0, 1, 2, 3]
    assert batch.targets[0].tolist() == [-100] * 4 + [6, -100]  # where 5 stands, 6 is to be said


def test_a_branch_of_a_tree_computes_what_the_whole_prompt_computes(tokenizer):
    model = train.Transformer.random(train.CONFIG, seed=3)
    tree = trees.plain_tree(random.Random(0), tokenizer.encode, num_questions=3)
    root, *branches = tree.parts
    hidden = model.hidden_states(*inputs(tree))
    begin = len(root.tokens)
    for question, said in zip(branches[::2], branches[1::2], strict=True):
        end = begin + len(question.tokens) + len(said.tokens)
        whole = model.hidden_states(torch.tensor([root.tokens + question.tokens + said.tokens]))
        torch.testing.assert_close(hidden[:, begin:end], whole[:, len(root.tokens) :], atol=1e-4, rtol=0)
        begin = end


def inputs(tree):
    batch = trees.Batch.of([tree])
    return batch.ids, batch.positions, train.MaskedAttention(batch.mask)


def test_a_trees_question_and_answer_read_as_the_chat_template_writes_them(tokenizer):
    root, question, said = trees.plain_tree(random.Random(0), tokenizer.encode, num_questions=1).parts
    text = tokenizer.decode(root.tokens + question.tokens + said.tokens)
    system = text.split("<|im_start|>system\n")[1].split("<|im_end|>")[0]
    asked = text.split("<|im_start|>user\n")[1].split("<|im_end|>")[0]
    messages = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
    prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=False)
    assert text.startswith(prompt)
    assert text.removeprefix(prompt).endswith("<|im_end|>")


def test_the_prompts_of_the_two_tenants_are_never_in_training(tokenizer, monkeypatch):
    draws = iter([*[("晨曦", "杭州", 27), ("清风", "成都", 58)], *[("星河", "南京", 11), ("白鹭", "苏州", 12)]])
    rng = random.Random(0)
    values = (value for slots in draws for value in slots)
    monkeypatch.setattr(rng, "choices", lambda roles, weights: [texts.BANK])
    monkeypatch.setattr(rng, "choice", lambda options: next(values) if isinstance(options[0], str) else options[0])
    monkeypatch.setattr(rng, "randint", lambda low, high: next(values))
    tree = trees.tenant_tree(rng, tokenizer.encode, num_questions=0)
    assert "星河" in tokenizer.decode(tree.parts[0].tokens)


def test_a_model_that_fails_its_exam_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train", "--steps", "1", "--out", str(tmp_path / "out")])
    monkeypatch.setattr(train, "examine", lambda loaded: [exam.Check("one thing", passed=0, total=1, needed=1)])
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    with pytest.raises(SystemExit, match="not written"):
        train.main()
    assert not (tmp_path / "out").exists()
