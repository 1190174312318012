"""The theatre of an engine plays the real engine, and every sentence in it is true."""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Any

import pytest

from handbook import nano_engine, request
from handbook.lab.engine_theatre import MOST_STEPS, EngineTheatre, play
from handbook.lab.scene import Rect
from handbook.mini_llm import Qwen3Config, Transformer
from handbook.nano_engine import LLMEngine
from handbook.paged import BlockPool
from handbook.prefix_cache import PrefixCachingBlockPool
from handbook.request import SamplingParams
from tests.lab.pictures import assert_legible, named

MODEL = Transformer.random(Qwen3Config(128, 32, 64, 2, 4, 2, 8), seed=0)
DRAW = random.Random(1)
SIX = SamplingParams(max_tokens=6)


def tokens(n: int) -> list[int]:
    return [DRAW.randrange(128) for _ in range(n)]


def make_engine(num_blocks: int = 10, block_size: int = 4, budget: int = 8, **more: Any) -> LLMEngine:
    return LLMEngine(MODEL, num_blocks=num_blocks, block_size=block_size, max_num_batched_tokens=budget, **more)


PROMPTS = [tokens(n) for n in (13, 11, 12, 9)]
ABUSE: dict[str, tuple[dict[str, int], list[list[int]], dict[str, Any]]] = {
    "the story": ({}, PROMPTS, {"every": 2, "max_tokens": 6}),
    "all at once": ({"budget": 2048}, PROMPTS, {"every": 0, "max_tokens": 6}),
    "a full stage": ({"num_blocks": 24, "budget": 64}, [tokens(5) for _ in range(8)], {"every": 1}),
    "long prompts": ({"num_blocks": 24, "block_size": 16}, [tokens(300), tokens(200)], {"max_tokens": 9}),
    "blocks of one token": ({"block_size": 1, "num_blocks": 20}, [tokens(9), tokens(9)], {"max_tokens": 9}),
    "one block": ({"num_blocks": 1, "block_size": 64}, [tokens(40)] * 3, {}),
    "odd words": ({}, PROMPTS[:3], {"labels": ["<b>&", "推理优化专家" * 9, "w" * 99], "text": lambda ids: "字" * 99}),
}  # fmt: skip


@cache
def played(case: str) -> EngineTheatre:
    sizes, prompts, more = ABUSE[case]
    return play(make_engine(**sizes), prompts, **more)


def steps(stage: EngineTheatre) -> list[Any]:
    return [step for act in stage.acts for step in act.steps]


def holders(svg: str) -> list[str]:
    return [name.split(": ")[1] for name in named(svg, "block ")]


def test_the_story_says_what_it_found() -> None:
    assert str(played("the story")).splitlines() == [
        "EngineTheatre: 11 acts, 15 steps",
        "1. A in prefill: at most 8 tokens a step",
        "2. One forward pass: B in prefill beside decodes",
        "3. One forward pass: C in prefill beside decodes",
        "4. No block is free: C, the youngest, is preempted",
        "5. A ends: its blocks are free at once",
        "6. C again: what was stored is gone and computed once more",
        "7. B ends: its blocks are free at once",
        "8. One forward pass: D in prefill beside decodes",
        "9. Decode: one token a step for each running request",
        "10. C ends: its blocks are free at once",
        "11. D ends: its blocks are free at once",
    ]


def test_each_step_shows_the_blocks_and_tables_as_they_are_after_it() -> None:
    stage = EngineTheatre(engine := make_engine(num_blocks=7))
    for prompt in PROMPTS[:2]:
        stage.add(prompt, SIX)
    tables, letters = [], dict(zip(stage.requests, "AB", strict=True))
    while engine.waiting or engine.running:
        stage.step()
        tables.append({letters[request]: list(request.block_table) for request in stage.requests})
    assert len({str(table) for table in tables}) > 4
    for number, table in enumerate(tables):
        svg = stage.svg(number)
        assert {name: named(svg, f"table {name}").get(f"table {name}", []) for name in "AB"} == {
            name: list(map(str, blocks)) for name, blocks in table.items()
        }
        owner = {block: name for name, blocks in table.items() for block in blocks}
        assert [who if who in "AB" else "" for who in holders(svg)] == [owner.get(block, "") for block in range(7)]


def test_the_batch_is_what_the_engine_logs() -> None:
    stage = played("the story")
    for number, log in enumerate(stage.engine.step_log):
        parts = [*named(stage.svg(number), "prefill of"), *named(stage.svg(number), "decode of")]
        sums = {what: sum(int(part.split(": ")[1]) for part in parts if part.startswith(what))
                for what in ("prefill", "decode")}  # fmt: skip
        assert sums == {"prefill": log["num_prefill"], "decode": log["num_decode"]}


@pytest.mark.parametrize("case", ["the story", "blocks of one token"])
def test_dark_tokens_are_those_of_the_step_and_light_ones_were_stored_before(case: str) -> None:
    for scene, step in zip(played(case).scenes()[1], steps(played(case)), strict=True):
        named_marks = [getattr(mark, "name", "") for mark in scene]
        for what in ("new", "stored"):
            seen = sum(int(name.split(": ")[1]) for name in named_marks if name.startswith(what + " "))
            spans = [(r.stop - r.start) if what == "new" else r.start for r in step.state.requests]
            assert seen == sum(spans)
        assert sum(r.stop - r.start for r in step.state.requests) == sum(p.num_tokens for p in step.state.batch)


def test_a_card_shows_how_much_of_it_is_written_and_whether_it_changed_hands() -> None:
    stage = EngineTheatre(engine := make_engine(num_blocks=8))
    for prompt in PROMPTS[:2]:
        stage.add(prompt, SIX)
    written, bold, owner = [], [], [-1] * 8
    while engine.waiting or engine.running:
        stage.step()
        before, owner, slots = owner, [-1] * 8, [0] * 8
        for request_ in engine.running:
            for place, block in enumerate(request_.block_table):
                owner[block] = request_.request_id
                slots[block] = max(0, min(4, request_.num_computed - 4 * place))
        written.append(slots)
        bold.append([was != now for was, now in zip(before, owner, strict=True)])
    for scene, slots, changed in zip(stage.scenes()[1], written, bold, strict=True):
        rects = [mark for mark in scene if isinstance(mark, Rect)]
        cards = [mark for mark in rects if mark.name.startswith("block ")]
        bars = {mark.x - 6: mark.width for mark in rects if mark.name == "written"}
        assert [bars.get(card.x, 0) for card in cards] == pytest.approx(
            [(card.width - 12) * slot / 4 for card, slot in zip(cards, slots, strict=True)]
        )
        assert [card.line > 2 for card in cards] == changed
    assert sum(map(any, bold)) > 3 and sorted(written[3])[-3:] == [4] * 3


def test_a_preemption_is_seen_and_what_it_costs() -> None:
    stage = play(make_engine(num_blocks=8), PROMPTS[:2], every=2, max_tokens=9)
    titles = [act.title for act in stage.acts]
    victim = titles.index("No block is free: B, the youngest, is preempted")
    assert titles[victim + 1] == "B again: what was stored is gone and computed once more"
    before, at = stage.acts[victim - 1].steps[-1], stage.acts[victim].steps[0]
    assert before.state.requests[1].table and not at.state.requests[1].table
    assert at.state.requests[1].status == "preempted, waiting"
    assert at.state.requests[1].answer == before.state.requests[1].answer != "[]"
    again = [int(n) for step in steps(stage) for n in re.findall(r"(\d+) of them once more", step.caption)]
    computed = sum(log["num_tokens"] for log in stage.engine.step_log)
    needed = sum(len(request.token_ids) - 1 for request in stage.requests)
    assert sum(again) == computed - needed > 0


def test_only_what_was_computed_before_counts_as_computed_once_more() -> None:
    """B is preempted in the middle of its prefill: its first 8 tokens come back, the rest is new."""
    stage = play(make_engine(num_blocks=6), [PROMPTS[0], PROMPTS[2]], every=2, max_tokens=6)
    lost = [step.state for act in stage.acts if "preempted" in act.title for step in act.steps]
    assert lost and all(state.requests[1].num_tokens == state.requests[1].num_prompt for state in lost)
    again = [step.caption for step in steps(stage) if "B computes" in step.caption]
    assert any("once more" in caption for caption in again) and "once more" not in again[-1]


def test_playing_changes_nothing_that_the_engine_computes() -> None:
    stage = play(make_engine(num_blocks=8), PROMPTS, every=2, max_tokens=6)
    alone = [make_engine(num_blocks=8).generate([prompt], SIX)[0] for prompt in PROMPTS]
    assert [request.output_token_ids for request in stage.requests] == alone
    assert "_schedule" not in vars(stage.engine)


def test_an_engine_that_was_built_cell_by_cell_is_played_with_its_own_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Built(SamplingParams):
        pass

    for module in (nano_engine, request):
        monkeypatch.setattr(module, "SamplingParams", Built)
    stage = play(make_engine(), PROMPTS[:1], max_tokens=2)
    assert len(stage.requests[0].output_token_ids) == 2


def test_who_waits_and_why() -> None:
    said = [step.caption for step in steps(play(make_engine(num_blocks=20), PROMPTS, every=0, max_tokens=2))]
    assert said[0].endswith("B, C and D wait: the budget is used up.")
    few = [step.caption for step in steps(play(make_engine(budget=64, num_blocks=7), PROMPTS, every=0, max_tokens=2))]
    assert few[0].endswith("C and D wait: too few blocks were free.")
    one = steps(play(make_engine(budget=64, num_blocks=20, max_num_seqs=1), PROMPTS[:2], every=0, max_tokens=2))
    assert one[0].caption.endswith("B waits: 1 request may run at once.")


def test_an_end_names_the_blocks_that_it_frees() -> None:
    stage = play(make_engine(), PROMPTS[:1], max_tokens=1)
    last = steps(stage)[-1]
    assert "A ends: blocks 0, 1, 2 and 3 are free." in last.caption
    assert holders(stage.svg(1)) == ["freed"] * 4 + ["free"] * 6


def test_a_pool_that_keeps_what_was_freed_is_played_as_it_is() -> None:
    class Leaks(BlockPool):
        def free(self, blocks: Any) -> None:
            BlockPool.free(self, blocks[1:])

    stage = play(LLMEngine(MODEL, pool=Leaks(10, 4), max_num_batched_tokens=8), PROMPTS[:1], max_tokens=1)
    assert "A ends: blocks 1, 2 and 3 are free." in steps(stage)[-1].caption


def test_tokens_found_in_a_cache_are_stored_and_not_new() -> None:
    engine = LLMEngine(MODEL, pool=PrefixCachingBlockPool(10, 4), max_num_batched_tokens=16)
    stage = play(engine, [PROMPTS[0]] * 2, every=9, max_tokens=2)
    svg = stage.svg(9)
    assert len(steps(stage)) > 9 and named(svg, "stored B") == {"stored B: 4": [""] * 3}
    assert named(svg, "new B") == {"new B: 1": [""]}


def test_an_aborted_request_is_seen() -> None:
    stage = EngineTheatre(make_engine())
    stage.add(PROMPTS[0], SIX, "first")
    stage.step()
    stage.abort("A")
    stage.step()
    assert named(stage.svg(1), "status")["status"] == ["aborted"] and holders(stage.svg(1)) == ["free"] * 10
    assert stage.acts[-1].title == "Nothing to do: a step without requests computes nothing"
    with pytest.raises(ValueError, match="no request 'B'; those that came: A"):
        stage.abort("B")
    with pytest.raises(ValueError, match="those that came: none"):
        EngineTheatre(make_engine()).abort("A")


def test_what_the_stage_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="25 blocks; the stage holds 24"):
        EngineTheatre(make_engine(num_blocks=25))
    stage = EngineTheatre(make_engine())
    for _ in range(8):
        stage.add([1], SIX)
    with pytest.raises(ValueError, match="holds 8 requests"):
        stage.add([1], SIX)
    assert len(stage.engine.waiting) == 8
    with pytest.raises(ValueError, match="every must be at least 0"):
        play(make_engine(), PROMPTS, every=-1)


def test_a_play_ends_when_the_stage_is_full() -> None:
    stage = play(make_engine(num_blocks=20), PROMPTS[:1], max_tokens=66)
    assert len(steps(stage)) == MOST_STEPS and stage.engine.running


def test_a_failed_step_leaves_the_engine_unwatched() -> None:
    engine = make_engine()
    engine.pool.allocate(10)
    stage = EngineTheatre(engine)
    stage.add(PROMPTS[0], SIX)
    with pytest.raises(RuntimeError, match="held outside"):
        stage.step()
    assert "_schedule" not in vars(engine)


@pytest.mark.parametrize("case", ABUSE)
def test_every_step_can_be_read_and_all_is_small(case: str) -> None:
    stage = played(case)
    assert_legible(*stage.scenes())
    assert len(stage.html()) < 300_000
    assert stage.html() == play(make_engine(**ABUSE[case][0]), ABUSE[case][1], **ABUSE[case][2]).html()
