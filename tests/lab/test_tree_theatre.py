"""The theatre of a tree plays the real tree, and every sentence in it is true."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handbook.lab.played import PlayedRequest
from handbook.lab.scene import Rect, Text
from handbook.lab.tree_play import SINGLY, STORY, play
from handbook.lab.tree_theatre import TreeTheatre
from handbook.radix_tree import Node, RadixCache
from tests.lab.pictures import assert_legible, named

DRAW = random.Random(1)
ABUSE: dict[str, tuple[Any, int]] = {
    "the story": (STORY, 20),
    "a conversation": ([" ".join(f"turn{turn} hello" for turn in range(last)) for last in range(1, 10)], 40),
    "many": ([[DRAW.randrange(3) for _ in range(DRAW.randrange(1, 9))] for _ in range(60)], 20),
    "twelve": ([[DRAW.randrange(99_990, 99_994) for _ in range(DRAW.randrange(4, 19))] for _ in range(12)], 60),
    "long": ([list(range(1000)), [*range(500), *[7] * 500], [1]], 1800),
    "longer than the memory": (["a b c", "a " * 30, "a b d"], 8),
    "one must wait": (["a b c d e", "v w x y z"], 6),
    "all the same": (["a b c"] * 4, 9),
    "odd words": (
        ["你 是 一个 推理 优化 专家 ， 回答 要 简洁", ["<b>", "&", "", " a b", "\n", "$x$", "w" * 99], "你 是"],
        24,
    ),
    "no request": ([], 5),
    "one token": (["hi"], 1),
}


@cache
def played(case: str) -> TreeTheatre:
    requests, capacity = ABUSE[case]
    return play(RadixCache(), requests, capacity)


def steps(stage: TreeTheatre) -> list[Any]:
    return [step for act in stage.acts for step in act.steps]


def captions(stage: TreeTheatre) -> str:
    return "\n".join(step.caption for step in steps(stage))


def column(svg: str, what: str) -> list[str]:
    return [values[0] for values in named(svg, f"{what} of ").values()]


def test_the_story_says_what_it_found() -> None:
    assert str(played("the story")).splitlines() == [
        "TreeTheatre: 8 acts, 16 steps",
        "1. A comes: nothing of it is found; 8 tokens become a new leaf",
        "2. B comes: 6 of its 11 tokens are found; an edge is cut there",
        "3. B runs: what it hit is locked, and 5 tokens become a new leaf",
        "4. B ends: its 11 tokens stay cached; evictable now: 5",
        "5. C comes: 8 of its 11 tokens are found; 3 become a new leaf",
        "6. D needs room: node 3 is evicted; node 1 is older, but locked",
        "7. D runs and ends: 6 tokens become a new leaf",
        "8. The same look-up of B finds 8 tokens; before the eviction, 10",
    ]


def test_the_story_ends_in_these_pictures() -> None:
    stage = played("the story")
    last = [sum(len(act.steps) for act in stage.acts[: n + 1]) - 1 for n in range(8)]
    locked, free = "locked", "evictable"
    assert [column(stage.svg(number), "state")[1:] for number in last] == [
        ["new"],
        ["hit + split", "split"],
        [locked, locked, "new"],
        [locked, locked, free],
        [locked, locked, free, free, free],
        [locked, locked, free, "evicted", free],
        [locked, locked, free, free, free],
        ["hit", free, "hit", free, free],
    ]


def test_each_step_shows_the_tree_as_it_was_after_it() -> None:
    tree, seen = RadixCache(), []
    stage = TreeTheatre(tree, 20, a := PlayedRequest("A", STORY[0]), b := PlayedRequest("B", STORY[1]))
    for verb, request in [("match", a), ("insert", a), ("match", b), ("lock", b), ("insert", b), ("finish", b)]:
        getattr(stage, verb)(request)
        nodes: list[Node] = [tree.root]
        for node in nodes:
            nodes += node.children.values()
        seen.append((sorted(str(node.lock_ref) for node in nodes), sorted(str(len(node.key)) for node in nodes)))
    svgs = [stage.svg(number) for number in range(6)]
    assert [(sorted(column(svg, "lock")), sorted(column(svg, "tokens"))) for svg in svgs] == seen
    assert len({str(each) for each in seen}) == 6


def test_the_memory_and_the_hit_rate_are_those_of_the_tree_and_the_requests() -> None:
    stage = play(tree := RadixCache(), STORY, 20)
    svg = stage.svg(len(steps(stage)) - 1)
    sizes = [f"protected {tree.protected_size}", f"evictable {tree.evictable_size}", f"free {20 - tree.total_size()}"]
    assert named(svg, "size")["size"] == sizes
    assert "hit rate so far: 14 of 36 tokens, 39%" in svg
    assert stage.rates == [("A", 0, 8), ("B", 6, 19), ("C", 14, 30), ("D", 14, 36)]


def test_a_column_of_the_hit_rate_is_as_high_as_the_rate() -> None:
    stage = played("the story")
    marks = {mark.name: mark for mark in stage.scenes()[1][-1] if isinstance(mark, Rect)}
    whole = marks["rate"].height
    assert marks["rate B"].height == pytest.approx(whole * 6 / 19)  # nothing but the rounding of floats
    assert marks["rate D"].height == pytest.approx(whole * 14 / 36)
    assert marks["rate D"].bottom == pytest.approx(marks["rate"].bottom) and "rate A" not in marks


def test_a_request_that_never_ran_keeps_its_place_among_the_hit_rates() -> None:
    scene = played("longer than the memory").scenes()[1][-1]
    columns = [mark for mark in scene if isinstance(mark, Rect) and mark.name.startswith("rate")]
    places = [mark.x for mark in columns if mark.name == "rate"]
    assert [(mark.name, places.index(mark.x)) for mark in columns if mark.name != "rate"] == [("rate C", 2)]
    assert len(places) == 3


def test_hit_and_computed_parts_of_the_request_are_marked() -> None:
    stage = played("the story")
    parts = [named(stage.svg(number), "part").get("part") for number in (0, 1, 2, 4, 5)]
    ran = ["hit: 6", "computed: 5"]
    assert parts == [["not found: 8"], ["computed: 8"], ["hit: 6", "not found: 5"], ran, ran]


def test_slots_are_neither_lost_nor_given_twice() -> None:
    for case, (requests, capacity) in ABUSE.items():
        stage = play(tree := RadixCache(), requests, capacity)
        tree.check_invariants()
        nodes = [tree.root]
        for node in nodes:
            nodes += node.children.values()
        assert sorted([*stage.free, *(slot for node in nodes for slot in node.value)]) == list(range(capacity)), case


def test_a_later_step_changes_no_earlier_picture() -> None:
    stage = TreeTheatre(RadixCache(), 9, request := PlayedRequest("A", "a b c"))
    stage.insert(request)
    before = column(stage.svg(0), "lock"), column(stage.svg(0), "state")
    stage.finish(request)
    assert (column(stage.svg(0), "lock"), column(stage.svg(0), "state")) == before
    assert before[0] == ["1", "1"] and column(stage.svg(1), "lock") == ["0", "0"]


def test_all_steps_keep_the_lru_list_in_its_place() -> None:
    _, scenes = played("the story").scenes()
    texts = [mark for scene in scenes for mark in scene if isinstance(mark, Text)]
    heights = {text.y for text in texts if text.string.startswith("lru list")}
    assert len(scenes) == 16 and len(heights) == 1


@pytest.mark.parametrize(
    ("case", "sayings"),
    [
        ("longer than the memory", ["B can never run: 30 tokens do not fit in 8 slots", "B is refused"]),
        ("one must wait", ["B needs 5 slots, 1 free, and 0 could be evicted", "A ends", "node 1 is evicted",
                           "The same look-up of A finds 0 tokens; before the eviction, 4"]),
        ("all the same", ["the tree has all of it already", "Looked up again, A finds 2 of its 3 tokens"]),
        ("many", [f"{60 - SINGLY} more requests came, unseen; the last was R60", "The same look-up of"]),
        ("no request", ["No request comes", "the tree stays as it is"]),
        ("one token", ["there is nothing to look up", "finds 0 of its 1 token"]),
    ],
)  # fmt: skip
def test_what_did_not_happen_is_said_too(case: str, sayings: list[str]) -> None:
    said = f"{played(case)}\n{captions(played(case))}"
    assert [saying for saying in sayings if saying not in said] == []


def test_a_tree_that_holds_something_already_is_played_on() -> None:
    tree = RadixCache()
    tree.insert("a b c d".split(), [3, 1, 4, 2])
    stage = play(tree, ["a b x"], 7)
    assert sorted(stage.free) == [5, 6] and "2 of its 3 tokens are found" in str(stage)


def test_a_locked_node_is_called_older_only_if_it_was_used_before_all_that_went() -> None:
    stage = TreeTheatre(RadixCache(), 6)
    a, b, c = (PlayedRequest(name, tokens) for name, tokens in zip("ABC", ["a b", "c d", "e f g h"], strict=True))
    stage.insert(a)
    stage.finish(a)
    stage.insert(b)
    stage.match(c)
    stage.make_room(c)
    assert captions(stage).endswith("node 1 with 2 tokens. What is locked is spared.")


def test_what_was_lost_in_several_evictions_is_counted_from_the_first() -> None:
    stage = play(RadixCache(), ["z", "a b c d e", "a b x", "m n o p q", "r s t u v w"], 10)
    assert stage.acts[-1].title == "The same look-up of B finds 0 tokens; before the eviction, 4"


class EvictsTheLocked(RadixCache):
    def evict(self, num_tokens: int) -> list[int]:
        leaf = next(iter(self.root.children.values()))
        del self.root.children[leaf.key[0]]
        leaf.parent = None
        return leaf.value


class EvictsTheTail(RadixCache):
    def evict(self, num_tokens: int) -> list[int]:
        leaf = [node for node in self.lru if node is not self.root and not node.children][-1]
        self.lru.move_to_end(leaf, last=False)
        return super().evict(1)


class EvictsNothing(RadixCache):
    def evict(self, num_tokens: int) -> list[int]:
        return []


@pytest.mark.parametrize(
    ("kind", "saying"),
    [
        (EvictsTheLocked, "Node 1 was locked, and evicted!"),
        (EvictsTheTail, "Node 3 was evicted: not the head of the lru list!"),
        (EvictsNothing, "3 free, yet nothing was evicted!"),
        (RadixCache, "Evicted from the head of the lru list: node 2 with 2 tokens."),
    ],
)
def test_a_fault_of_the_tree_is_played_as_it_is(kind: type[RadixCache], saying: str) -> None:
    stage = TreeTheatre(kind(), 9)
    a, b, c, d = (
        PlayedRequest(name, tokens) for name, tokens in zip("ABCD", ["a b", "c d", "e f", "g h i j"], strict=True)
    )
    for request in (a, b, c):
        stage.insert(request)
    stage.finish(b)
    stage.finish(c)
    stage.match(d)
    stage.make_room(d)
    assert saying in captions(stage)


@pytest.mark.parametrize("case", ABUSE)
def test_no_text_leaves_its_box_or_touches_another(case: str) -> None:
    height, scenes = played(case).scenes()
    assert_legible(height, scenes[-12:])


@pytest.mark.parametrize("case", ABUSE)
def test_the_player_stays_small(case: str) -> None:
    assert len(played(case).html().encode()) < 300_000


def test_the_story_is_far_below_the_limit_and_its_contact_sheet_is_small(recwarn: pytest.WarningsRecorder) -> None:
    assert len(played("the story").html().encode()) < 100_000
    assert len(played("the story").contact_sheet().data) < 200_000
    assert [str(warning.message) for warning in recwarn] == []


def test_another_process_with_other_hash_seeds_gives_the_same_bytes() -> None:
    program = (
        "import hashlib; from handbook.lab.tree_play import play; from handbook.radix_tree import RadixCache;"
        "stage = play(RadixCache(), ['a b c', 'a b d', 'x y z u'], 7);"
        "digest = hashlib.sha256(stage.html().encode()).hexdigest()"
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


@settings(max_examples=60, deadline=None)
@given(
    requests=st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), max_size=8),
    capacity=st.integers(1, 20),
)
def test_whatever_the_requests_are_nothing_false_is_said(requests: list[list[int]], capacity: int) -> None:
    stage = play(tree := RadixCache(), requests, capacity)
    tree.check_invariants()
    assert not re.search("!|not in the tree", captions(stage))
    assert all(act.title and act.steps for act in stage.acts)
    assert tree.protected_size == 0 and stage.running == []
    hits = [request.num_cached for request in stage.ran]
    assert [rate[1] for rate in stage.rates] == [sum(hits[: place + 1]) for place in range(len(hits))]
    assert len(stage.ran) == sum(len(request) <= capacity for request in requests)
    state = steps(stage)[-1].state.tree
    assert sum(node.length for node in state.alive) == tree.total_size() <= capacity


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: play(RadixCache(), "a b c"), TypeError, "requests is one string, 'a b c'; give a list"),
        (lambda: play(RadixCache(), ["a", ""]), ValueError, "Request B has no tokens"),
        (lambda: play(RadixCache(), ["a"], 0), ValueError, "capacity is 0; it is the number of KV slots"),
    ],
)
def test_what_cannot_be_played_is_refused_with_a_sentence(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
