"""Which model is found, and what the embedded one must be able to do for the course to prove anything with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from handbook.lab import exam, models, texts
from handbook.lab.tokenizer import EMBEDDED
from handbook.lab.train import save
from handbook.mini_llm import Qwen3Config, Transformer, generate


@pytest.fixture(scope="module")
def embedded() -> models.LoadedModel:
    return models.find({"HANDBOOK_MODEL": "embedded"})


def answer(loaded: models.LoadedModel, system: str, question: str) -> str:
    prompt = torch.tensor([loaded.chat(system, question)])
    new_tokens = generate(loaded.model, prompt, exam.MAX_TOKENS, loaded.eos_token_id)[0].tolist()
    assert new_tokens[-1] == loaded.eos_token_id
    return loaded.text(new_tokens)


# What it can do


def test_it_answers_the_six_questions_within_fifteen_tokens_and_ends(embedded):
    for question, right in texts.ANSWERS.items():
        prompt = torch.tensor([embedded.chat(texts.SYSTEM, question)])
        new_tokens = generate(embedded.model, prompt, 15, embedded.eos_token_id)[0].tolist()
        assert (embedded.text(new_tokens), new_tokens[-1]) == (right, embedded.eos_token_id)


def test_it_answers_the_same_six_questions_otherwise_under_another_system_prompt(embedded):
    assert {q: answer(embedded, texts.TEACHER, q) for q in texts.QUESTIONS} == texts.TEACHER_ANSWERS
    assert not set(texts.TEACHER_ANSWERS.values()) & set(texts.ANSWERS.values())


@pytest.mark.parametrize("tenant", texts.TENANTS, ids=lambda tenant: tenant.name)
def test_it_answers_every_question_of_a_tenant_from_the_tenants_own_prompt(embedded, tenant):
    questions = (*tenant.role.answers, *texts.OFF_TOPIC[:6])
    assert {q: answer(embedded, tenant.system, q) for q in questions} == {q: tenant.answer(q) for q in questions}


def test_it_has_memorised_its_facts(embedded):
    assert {question: answer(embedded, texts.PLAIN[0], question) for question in texts.FACTS} == texts.FACTS


def test_it_holds_the_dialogues(embedded):
    for system, turns in texts.DIALOGUES:
        assert [given.text for given, _ in exam.held(embedded, system, turns)] == [said for _, said in turns]


def test_the_two_tenants_differ_in_the_first_block_alone(embedded):
    first, second = (embedded.chat(tenant.system, texts.STORY_QUESTION) for tenant in texts.TENANTS)
    assert len(first) == len(second)
    assert first[: exam.BLOCK] != second[: exam.BLOCK]
    assert first[exam.BLOCK :] == second[exam.BLOCK :]


def test_the_two_tenants_answers_differ_in_name_city_and_number():
    first, second = texts.TENANTS
    assert first.name != second.name and first.city != second.city and first.number != second.number
    for tenant, other in ((first, second), (second, first)):
        said = tenant.answer(texts.STORY_QUESTION)
        assert all(str(slot) in said for slot in (tenant.name, tenant.city, tenant.number))
        assert not any(str(slot) in said for slot in (other.name, other.city, other.number))


@pytest.mark.parametrize("how", exam.DAMAGES)
@pytest.mark.parametrize("number", [0, 1])
def test_a_damaged_first_block_changes_at_least_five_of_six_answers(embedded, how, number):
    tenant, other = texts.TENANTS[number], texts.TENANTS[1 - number]
    clean = [tenant.answer(question) for question in texts.SENSITIVE_QUESTIONS]
    said = [given.text for given in exam.damaged_replies(embedded, tenant, other, exam.DAMAGES[how])]
    assert sum(a != b for a, b in zip(said, clean, strict=True)) >= 5


def test_the_same_requests_with_the_block_left_whole_change_nothing(embedded):
    tenant, other = texts.TENANTS
    replies = exam.damaged_replies(embedded, tenant, other, lambda mine, _: mine)
    assert [given.text for given in replies] == [tenant.answer(question) for question in texts.SENSITIVE_QUESTIONS]


@pytest.mark.parametrize("number", [0, 1])
def test_without_the_parents_hash_it_speaks_as_the_other_tenant(embedded, number):
    first, second = texts.TENANTS[number], texts.TENANTS[1 - number]
    for question in (texts.STORY_QUESTION, *texts.SENSITIVE_QUESTIONS):
        given = exam.unchained_reply(embedded, first, second, question)
        assert given.text == first.answer(question)
        assert given.margin > 1.0  # logits: not the luck of a rounding


@pytest.mark.slow
def test_it_passes_the_whole_exam_that_training_holds_it_to(embedded):
    assert [str(check) for check in exam.examine(embedded) if not check.ok] == []


# The files


def test_the_files_are_what_training_writes_and_transformers_reads(embedded, tmp_path):
    save(embedded.model, embedded.tokenizer, tmp_path)
    for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / file).read_bytes() == (EMBEDDED / file).read_bytes(), file
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, local_files_only=True)
    ids = torch.tensor([embedded.chat(texts.SYSTEM, texts.QUESTIONS[0])])
    with torch.inference_mode():
        assert (theirs(ids).logits - embedded.model(ids)).abs().max() < 1e-4  # float32, sums in another order


def test_the_embedded_model_is_small_and_in_bfloat16_on_disk():
    assert sum(file.stat().st_size for file in EMBEDDED.iterdir()) <= 6_000_000
    assert json.loads((EMBEDDED / "config.json").read_text(encoding="utf-8"))["dtype"] == "bfloat16"


def test_every_token_has_a_row_in_the_embedding(embedded):
    assert len(embedded.tokenizer) <= embedded.model.config.vocab_size


# Which one is found


TINY = Qwen3Config(2048, 8, 8, 1, 2, 1, 4)


def checkpoint(folder: Path, seed: int) -> torch.Tensor:
    """Writes a tiny checkpoint; its embedding tells it from others."""
    model = Transformer.random(TINY, seed)
    save(model, models.find({"HANDBOOK_MODEL": "embedded"}).tokenizer, folder)
    return model.embed_tokens.weight.detach().bfloat16().float()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A machine without any model: caches that are empty folders."""
    return {"HF_HOME": str(tmp_path / "hf"), "MODELSCOPE_CACHE": str(tmp_path / "modelscope")}


@pytest.mark.parametrize(
    "place",
    [
        "repository/models/Qwen3-0.6B",
        "hf/hub/models--Qwen--Qwen3-0.6B/snapshots/abc",
        "modelscope/hub/models/Qwen/Qwen3-0___6B",
        "modelscope/models/Qwen/Qwen3-0.6B",
        "modelscope/hub/Qwen/Qwen3-0___6B",
    ],
)
def test_the_real_model_is_found_where_its_tools_put_it(tmp_path, environ, place):
    weight = checkpoint(tmp_path / place, seed=1)
    found = models.find(environ, tmp_path / "repository")
    assert found.name == "Qwen3-0.6B"
    assert torch.equal(found.model.embed_tokens.weight, weight)


def test_hf_hub_cache_goes_before_hf_home(tmp_path, environ):
    checkpoint(tmp_path / "hf/hub/models--Qwen--Qwen3-0.6B/snapshots/abc", seed=1)
    weight = checkpoint(tmp_path / "hub/models--Qwen--Qwen3-0.6B/snapshots/abc", seed=2)
    found = models.find(environ | {"HF_HUB_CACHE": str(tmp_path / "hub")}, tmp_path)
    assert torch.equal(found.model.embed_tokens.weight, weight)


def test_of_two_snapshots_the_one_that_main_names_is_taken(tmp_path, environ):
    hub = tmp_path / "hf/hub/models--Qwen--Qwen3-0.6B"
    checkpoint(hub / "snapshots/aaa", seed=1)
    weight = checkpoint(hub / "snapshots/bbb", seed=2)
    (hub / "refs").mkdir()
    (hub / "refs/main").write_text("bbb\n", encoding="utf-8")
    assert torch.equal(models.find(environ, tmp_path).model.embed_tokens.weight, weight)


def test_the_folder_beside_the_readme_goes_before_the_caches(tmp_path, environ):
    checkpoint(tmp_path / "hf/hub/models--Qwen--Qwen3-0.6B/snapshots/abc", seed=1)
    weight = checkpoint(tmp_path / "models/Qwen3-0.6B", seed=2)
    assert torch.equal(models.find(environ, tmp_path).model.embed_tokens.weight, weight)


def test_a_folder_that_handbook_model_names_goes_before_all(tmp_path, environ):
    checkpoint(tmp_path / "models/Qwen3-0.6B", seed=1)
    weight = checkpoint(tmp_path / "mine", seed=2)
    found = models.find(environ | {"HANDBOOK_MODEL": str(tmp_path / "mine")}, tmp_path)
    assert found.name == "mine"
    assert torch.equal(found.model.embed_tokens.weight, weight)


def test_embedded_may_be_asked_for_although_the_real_model_is_there(tmp_path, environ):
    checkpoint(tmp_path / "models/Qwen3-0.6B", seed=1)
    assert models.find(environ | {"HANDBOOK_MODEL": "embedded"}, tmp_path).name == "embedded"


def test_without_any_other_the_embedded_model_is_found(tmp_path, environ):
    assert models.find(environ, tmp_path).name == "embedded"


def test_an_unfinished_download_is_passed_over(tmp_path, environ):
    checkpoint(tmp_path / "models/Qwen3-0.6B", seed=1)
    (tmp_path / "models/Qwen3-0.6B/model.safetensors").unlink()
    assert models.find(environ, tmp_path).name == "embedded"


def test_a_checkpoint_that_lacks_a_shard_says_which(tmp_path, environ):
    folder = tmp_path / "mine"
    checkpoint(folder, seed=1)
    index = {"weight_map": {"model.norm.weight": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(ValueError, match=r"'.*mine', which lacks model-00002-of-00002\.safetensors"):
        models.find(environ | {"HANDBOOK_MODEL": str(folder)}, tmp_path)


def test_a_folder_that_is_not_there_is_an_error_that_names_it(tmp_path, environ):
    with pytest.raises(ValueError, match=r"HANDBOOK_MODEL is '.*nowhere', which lacks config\.json"):
        models.find(environ | {"HANDBOOK_MODEL": str(tmp_path / "nowhere")}, tmp_path)


@pytest.mark.parametrize(
    ("generation", "config", "expected"),
    [({"eos_token_id": [7, 8]}, {"eos_token_id": 9}, 7), ({}, {"eos_token_id": 9}, 9), (None, {}, 258)],
    ids=["generation_config.json first", "then config.json", "then the tokenizer"],
)
def test_the_token_that_ends_an_answer_is_the_checkpoints_own(tmp_path, generation, config, expected):
    checkpoint(tmp_path, seed=1)
    kept = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    del kept["eos_token_id"]
    (tmp_path / "config.json").write_text(json.dumps(kept | config), encoding="utf-8")
    if generation is not None:
        (tmp_path / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    assert models.load(tmp_path).eos_token_id == expected


def test_the_description_names_the_model_and_no_path(tmp_path, environ):
    checkpoint(tmp_path / "models/Qwen3-0.6B", seed=1)
    assert models.find(environ, tmp_path).describe() == "Model: Qwen3-0.6B, 0.0M parameters, float32."


def test_a_model_is_loaded_in_float32(embedded):
    assert {weight.dtype for weight in embedded.model.parameters()} == {torch.float32}
