"""The theatre of a block pool shows what the pool is, and says what it did."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handbook.lab.draw import PlayedRequest, PoolTheatre, six_acts
from handbook.lab.scene import WIDTH, Line, Rect
from handbook.prefix_cache import PrefixCachingBlockPool
from tests.lab.pictures import assert_legible, named

COOK = "You are a helpful cook and baker . Bake bread"
SOUP = "You are a helpful cook and baker . Any soup ?"
MOON = "How far is the moon from here and what does it weigh on a scale for the moon ?"
ABUSE: dict[str, tuple[int, int, Any, Any, Any]] = {
    "the story": (6, 4, COOK, SOUP, MOON),
    "nothing is shared": (6, 4, "one two three four five", "six seven eight nine ten", MOON),
    "shorter than a block": (6, 4, "hi", "hi", "yo"),
    "too few blocks": (2, 4, list(range(10)), list(range(8)), list(range(100))),
    "all the same": (6, 4, COOK, COOK, COOK),
    "one token a block": (20, 1, list("abcdefghi"), list("abcdexyz"), list("mnopqrstuvw")),
    "large blocks": (24, 16, list(range(100000, 100100)), list(range(100000, 100070)), list(range(330))),
    "one block": (1, 2, [1, 2], [1, 2, 3], [4]),
    "odd words": (
        6,
        4,
        "你 是 一个 推理 优化 专家 ， 回答 要 简洁",
        ["<b>", "&", "", " a b", "\n", "$x$", "w" * 99],
        "a",
    ),
}


@cache
def play(case: str) -> PoolTheatre:
    num_blocks, block_size, *requests = ABUSE[case]
    return six_acts(PrefixCachingBlockPool(num_blocks, block_size), *requests)


def column(svg: str, what: str) -> list[str]:
    """`ref_cnt`, `hash` or `parent` as the cards show it, by block."""
    return [values[0] for values in named(svg, f"{what} ").values()]


def looks(svg: str) -> list[str]:
    return [name.split(": ")[1] for name in named(svg, "block ")]


def captions(stage: PoolTheatre) -> str:
    return "\n".join(step.caption for act in stage.acts for step in act.steps)


def test_each_step_shows_the_state_that_the_pool_had_after_it() -> None:
    pool = PrefixCachingBlockPool(6, 4)
    stage = PoolTheatre(pool)
    a, b, c = PlayedRequest("A", COOK), PlayedRequest("B", SOUP), PlayedRequest("C", MOON)
    states = []
    for verb, request in [
        ("allocate", a), ("cache_blocks", a), ("free", a), ("lookup", b), ("touch", b), ("allocate", b),
        ("cache_blocks", b), ("free", b), ("allocate", c), ("cache_blocks", c), ("lookup", b), ("free", c),
    ]:  # fmt: skip
        getattr(stage, verb)(request)
        hashes = ["none" if key is None else key.hex()[:4] for key in pool.block_hash]
        states.append((list(map(str, pool.free_queue)), list(map(str, pool.ref_cnt)), hashes))
    for number, (queue, counts, hashes) in enumerate(states):
        svg = stage.svg(number)
        struck = named(svg, "struck").get("struck", [])
        assert named(svg, "queue").get("queue", []) == queue
        assert column(svg, "ref_cnt") == counts
        assert sum(shown != real for shown, real in zip(column(svg, "hash"), hashes, strict=True)) == len(struck)
    assert len({str(state) for state in states}) > 8  # the steps differ, so that equality says something


def test_the_six_acts_say_what_they_found() -> None:
    assert str(play("the story")).splitlines() == [
        "PoolTheatre: 6 acts, 12 steps",
        "1. A fills 3 blocks; the 2 full ones get chained hashes",
        "2. A ends: blocks 2, 1 and 0 join the free queue; 2 stay cached",
        "3. B comes: the first 8 of its 11 tokens are found",
        "4. Touched, blocks 0 and 1 leave the free queue",
        "5. C takes 5 blocks of the queue: block 1 loses its hash",
        "6. The same look-up now finds 4 tokens; before, 8",
    ]


def test_the_six_acts_end_in_these_pictures() -> None:
    stage = play("the story")
    last = [sum(len(act.steps) for act in stage.acts[: n + 1]) - 1 for n in range(6)]
    empty = ["free, empty"] * 3
    assert [looks(stage.svg(number)) for number in last] == [
        ["in use"] * 3 + empty,
        ["free, cached"] * 2 + ["free, no hash"] + empty,
        ["hit, free"] * 2 + ["free, no hash"] + empty,
        ["hit, in use"] * 2 + ["free, no hash"] + empty,
        ["free, cached", "just evicted"] + ["just taken"] * 4,
        ["hit, free"] + ["in use"] * 5,
    ]


def test_a_chain_is_drawn_from_parent_to_child_and_named_on_the_child() -> None:
    svg = play("the story").svg(2)
    first, second = column(svg, "hash")[:2]
    assert column(svg, "parent") == ["none", first, "–", "–", "–", "–"] and first != second
    assert list(named(svg, "chain")) == ["chain 0 1"]


@pytest.mark.parametrize(("number", "links"), [(2, [(0, 1)]), (10, [(4, 5), (2, 3), (5, 2)])])
def test_an_arrow_leads_from_under_the_parent_to_under_the_child(number: int, links: list[tuple[int, int]]) -> None:
    scene = play("the story").scenes()[1][number]
    cards = [mark for mark in scene if isinstance(mark, Rect) and mark.name.startswith("block ")]
    arrows = {mark.name: mark for mark in scene if isinstance(mark, Line) and mark.name.startswith("chain ")}
    assert sorted(arrows) == sorted(f"chain {parent} {child}" for parent, child in links)
    for parent, child in links:
        ends = arrows[f"chain {parent} {child}"].points[0], arrows[f"chain {parent} {child}"].points[-1]
        for (x, y), card in zip(ends, (cards[parent], cards[child]), strict=True):
            assert card.x < x < card.x + card.width and card.bottom < y < card.bottom + 10


def test_an_evicted_hash_is_shown_struck_and_what_was_there_is_unknown() -> None:
    stage = play("the story")
    before, after = stage.svg(8), stage.svg(9)
    assert column(before, "hash")[1] == column(after, "hash")[1] != "none"
    assert len(named(after, "struck")["struck"]) == 1
    assert after.count(">unknown<") == 5 and before.count(">unknown<") == 0


def test_the_block_tables_are_the_requests_own() -> None:
    svg = play("the story").svg(10)
    assert named(svg, "table C") == {"table C": [f"block {n}" for n in (4, 5, 2, 3, 1)]}
    assert named(play("the story").svg(4), "table B") == {"table B": ["in block 0", "in block 1", ""]}


def test_a_later_step_changes_no_earlier_picture() -> None:
    stage = PoolTheatre(PrefixCachingBlockPool(4, 2), request := PlayedRequest("A", [1, 2, 3]))
    stage.allocate(request)
    before = stage.svg(0)
    stage.cache_blocks(request)
    stage.free(request)
    assert stage.svg(0) == before != stage.svg(2)


def test_a_request_that_comes_later_is_listed_before_as_waiting() -> None:
    stage = PoolTheatre(PrefixCachingBlockPool(4, 2))
    stage.show("Nobody is here yet.")
    stage.allocate(PlayedRequest("late", [1]))
    assert "late" in stage.svg(0) and "waiting" in stage.svg(0) and "running" in stage.svg(1)


def test_a_request_that_got_no_block_is_listed_so() -> None:
    assert play("too few blocks").svg(1).count(">no room<") == 1


def test_the_last_token_is_never_looked_up() -> None:
    stage = six_acts(PrefixCachingBlockPool(6, 4), "a b c d e f g h", "a b c d e f g h", "x")
    assert stage.acts[2].title == "B comes: the first 4 of its 8 tokens are found"


class TakesTokensForEqual(PrefixCachingBlockPool):
    """It sees the last digit of a token alone."""

    def lookup(self, token_ids: Any, hashes: Any = None) -> list[int]:
        return super().lookup([token % 10 for token in token_ids])

    def cache_blocks(self, token_ids: Any, block_ids: Any, num_computed: int, hashes: Any = None) -> list[int]:
        return super().cache_blocks([token % 10 for token in token_ids], block_ids, num_computed)


def test_a_false_hit_shows_what_is_really_in_the_block() -> None:
    stage = six_acts(TakesTokensForEqual(6, 2), [1, 2, 3], [11, 12, 13], [4])
    assert "the first 2 of its 3 tokens are found" in stage.acts[2].title
    svg = stage.svg(7)
    assert "pool.cache_blocks(B" in svg
    assert named(svg, "token 0") == {"token 0": ["1", "2"]}


def test_words_stand_for_the_same_ids_wherever_they_come() -> None:
    assert PlayedRequest("A", "a rose is a rose").ids == PlayedRequest("B", ["a", "rose", "is", "a", "rose"]).ids
    assert PlayedRequest("A", [5, 7]).ids == [5, 7]


def test_a_pool_that_was_used_before_shows_content_that_nobody_saw_as_unknown() -> None:
    pool = PrefixCachingBlockPool(3, 2)
    pool.cache_blocks([1, 2], blocks := pool.allocate(1) or [], 2)
    pool.free(blocks)
    stage = PoolTheatre(pool)
    stage.show("Found like this.")
    assert looks(stage.svg(0)) == ["free, cached", "free, empty", "free, empty"]
    assert stage.svg(0).count(">unknown<") == 1


@pytest.mark.parametrize(
    ("case", "sayings"),
    [
        ("nothing is shared", ["3. B comes: nothing of it is found", "No block of B is found", "4. Nothing to touch"]),
        ("shorter than a block", ["1. A fills 1 block; no block gets a hash", "fills no block of 4", "no hash"]),
        ("too few blocks", ["1. A finds no room", "needs 3 blocks, 2 free: the pool gives none and changes nothing",
                            "2. A ends: it holds nothing", "5. C finds no room"]),
        ("all the same", ["the first 8 of its 10 tokens", "4 and 5 get no hash: another block has registered it"]),
        ("one block", ["5. C takes 1 block of the queue", "B needs 1 block, 0 free"]),
    ],
)  # fmt: skip
def test_what_did_not_happen_is_said_too(case: str, sayings: list[str]) -> None:
    stage = play(case)
    said = f"{stage}\n{captions(stage)}"
    assert [saying for saying in sayings if saying not in said] == []


class KeepsHashes(PrefixCachingBlockPool):
    def allocate(self, n: int) -> list[int] | None:
        kept = list(self.block_hash), dict(self.hash_to_block)
        blocks = super().allocate(n)
        self.block_hash, self.hash_to_block = kept
        return blocks


class TakesTheTail(PrefixCachingBlockPool):
    def allocate(self, n: int) -> list[int] | None:
        for block in list(self.free_queue)[::-1]:
            self.free_queue.move_to_end(block)
        return super().allocate(n)


class FreesFirstBlockFirst(PrefixCachingBlockPool):
    def free(self, blocks: Any) -> None:
        super().free(blocks[::-1])


class ForgetsTheQueue(PrefixCachingBlockPool):
    def touch(self, blocks: Any) -> None:
        for block in blocks:
            self.ref_cnt[block] += 1


class ChangesThoughItHasNone(PrefixCachingBlockPool):
    def allocate(self, n: int) -> list[int] | None:
        return super().allocate(n) or (self.free_queue.popitem() and None)


def test_a_fault_of_the_pool_is_played_as_it_is() -> None:
    def story(kind: type[PrefixCachingBlockPool], first: str = COOK) -> PoolTheatre:
        stage = PoolTheatre(kind(6, 4))
        a, b, c = PlayedRequest("A", first), PlayedRequest("B", SOUP), PlayedRequest("C", MOON)
        if stage.allocate(a):
            stage.cache_blocks(a)
        stage.free(a)
        stage.lookup(b)
        stage.touch(b)
        stage.free(b)
        stage.allocate(c)
        return stage

    assert "Block 1 keeps a hash, though" in captions(story(KeepsHashes))
    assert "not the head of the queue, but the pool gives 5 4 3" in captions(story(TakesTheTail))
    assert "reads 3 4 5 0 1 2: not with 2 1 0 at the tail" in captions(story(FreesFirstBlockFirst))
    assert looks(story(ForgetsTheQueue).svg(4))[:2] == ["inconsistent"] * 2
    assert "yet its state changed!" in captions(story(ChangesThoughItHasNone, "a " * 30))
    faults = "keep a hash|keeps a hash|not the head|not with|yet its"
    assert not re.search(faults, captions(story(PrefixCachingBlockPool)))


@pytest.mark.parametrize("case", ABUSE)
def test_no_text_leaves_its_box_or_touches_another(case: str) -> None:
    assert_legible(*play(case).scenes())


@pytest.mark.parametrize("case", ABUSE)
def test_the_player_stays_small(case: str) -> None:
    assert len(play(case).html().encode()) < 300_000


def test_the_story_is_far_below_the_limit_and_its_contact_sheet_is_small(recwarn: pytest.WarningsRecorder) -> None:
    assert len(play("the story").html().encode()) < 100_000
    assert len(play("the story").contact_sheet().data) < 150_000
    assert [str(warning.message) for warning in recwarn] == []


def test_another_process_with_other_hash_seeds_gives_the_same_bytes() -> None:
    program = (
        "import hashlib; from handbook.lab.draw import six_acts;"
        "from handbook.prefix_cache import PrefixCachingBlockPool as Pool;"
        "stage = six_acts(Pool(3, 2), 'a b c', 'a b d', 'x y z u v');"
        "digest = hashlib.sha256(stage.html().encode() + stage.contact_sheet().data).hexdigest()"
    )
    here: dict[str, Any] = {}
    exec(program, here)
    there = subprocess.run(
        [sys.executable, "-c", program + "; print(digest)"],
        env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == here["digest"]


@settings(max_examples=40, deadline=None)
@given(
    num_blocks=st.integers(1, 9),
    block_size=st.integers(1, 5),
    requests=st.tuples(*[st.lists(st.integers(0, 2), min_size=1, max_size=20)] * 3),
)
def test_whatever_the_requests_are_the_last_picture_is_the_pool_as_it_is(
    num_blocks: int, block_size: int, requests: tuple[list[int], list[int], list[int]]
) -> None:
    pool = PrefixCachingBlockPool(num_blocks, block_size)
    stage = six_acts(pool, *requests)
    svg = stage.svg(sum(len(act.steps) for act in stage.acts) - 1)
    assert named(svg, "queue").get("queue", []) == list(map(str, pool.free_queue))
    assert column(svg, "ref_cnt") == list(map(str, pool.ref_cnt))
    assert "inconsistent" not in looks(svg) and not re.search("!|not with|not the head", captions(stage))
    pool.check_invariants()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PlayedRequest("A", ""), ValueError, "Request A has no tokens"),
        (lambda: PlayedRequest("A", cast(Any, [1, 2.5])), TypeError, r"has the token 2\.5; tokens are ints or words"),
        (lambda: PoolTheatre(PrefixCachingBlockPool(25, 4)), ValueError, "has 25 blocks; the stage holds 24"),
    ],
)
def test_what_cannot_be_played_is_refused_with_a_sentence(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_width_is_what_a_notebook_shows() -> None:
    assert all(f'viewBox="0 0 {WIDTH} ' in play("the story").svg(n) for n in (0, 11)) and WIDTH <= 900
