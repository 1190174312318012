"""The picture of a tree shows what the tree is, whatever of it has been built, and changes nothing."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handbook.lab.scene import WIDTH, Line, Rect
from handbook.lab.tree_picture import MOST, TreePicture, look, show_tree, visible
from handbook.lab.tree_state import TreeState, observe
from handbook.radix_tree import RadixCache
from tests.lab.pictures import assert_legible, named


def tree_of(*keys: Any) -> RadixCache:
    tree = RadixCache()
    for key in keys:
        key = key.split() if isinstance(key, str) else key
        tree.insert(key, range(len(key)))
    return tree


def rows(picture: TreePicture, what: str) -> dict[str, str]:
    """What a column (`edge`, `state`, `tokens`, `lock`, `lru`) says of each node."""
    found = named(picture.svg(), f"{what} of ")
    return {name.split(" of ")[1]: values[0] for name, values in found.items()}


def labels(state: TreeState) -> dict[int, str]:
    return {node.number: look(node).label for node in state.nodes}


def test_a_node_is_drawn_with_its_edge_its_length_its_locks_and_its_place_in_the_lru_list() -> None:
    tree = tree_of("a b c", "a b d e")
    tree.inc_lock_ref(tree.match_prefix(["a", "b", "d", "e"])[1])
    picture = show_tree(tree)
    assert rows(picture, "edge") == {"the root": "root", "node 1": "a b", "node 2": "c", "node 3": "d e"}
    assert rows(picture, "tokens") == {"the root": "0", "node 1": "2", "node 2": "1", "node 3": "2"}
    assert rows(picture, "lock") == {"the root": "1", "node 1": "1", "node 2": "0", "node 3": "1"}
    assert rows(picture, "lru") == {"the root": "–", "node 1": "–", "node 2": "1", "node 3": "–"}


def test_the_lru_list_is_drawn_from_head_to_tail() -> None:
    tree = tree_of("a b c", "x y", "a b d e")
    svg = show_tree(tree).svg()
    place = {id(node): str(number) for number, node in enumerate(tree.lru, 1)}
    state = observe(tree)
    assert list(named(svg, "queued")) == [f"queued {number}" for number in state.lru or ()]
    assert [place[id(node.node)] for node in state.nodes] == list(rows(show_tree(tree), "lru").values())


def test_drawing_changes_nothing() -> None:
    tree = tree_of("a b c", "a b d", "x")
    before = list(tree.lru), [list(node.key) for node in tree.lru]
    shown = str(show_tree(tree, "twice", before=show_tree(tree)))
    assert (list(tree.lru), [list(node.key) for node in tree.lru]) == before
    assert str(show_tree(tree, "twice")) == shown
    tree.check_invariants()


def test_a_picture_stays_as_it_was_when_the_tree_goes_on() -> None:
    tree = tree_of("a b c")
    picture = show_tree(tree)
    before = picture.svg()
    tree.insert(["a", "x"], [0, 1])
    assert picture.svg() == before != show_tree(tree).svg()


def test_both_halves_of_a_cut_edge_are_marked_and_the_lower_one_keeps_its_number() -> None:
    tree = tree_of("a b c d")
    before = show_tree(tree)
    _, node = tree.match_prefix(["a", "b", "x"])
    after = show_tree(tree, before=before, hit=node)
    assert rows(after, "edge") == {"the root": "root", "node 2": "a b", "node 1": "c d"}
    assert rows(after, "state") == {"the root": "", "node 2": "hit + split", "node 1": "split"}
    assert [(upper.number, low.number) for upper, low in after.state.cuts()] == [(2, 1)]


def test_a_new_leaf_is_marked_and_what_was_there_is_not() -> None:
    tree = tree_of("a b")
    before = show_tree(tree)
    tree.insert(["x"], [0])
    assert rows(show_tree(tree, before=before), "state") == {"the root": "", "node 1": "evictable", "node 2": "new"}


def test_an_evicted_leaf_stays_as_a_struck_ghost_where_it_was_for_one_picture() -> None:
    tree = tree_of("x", "y z", "w")
    tree.match_prefix(["x"])
    before = show_tree(tree)
    tree.evict(1)
    after = show_tree(tree, before=before)
    assert list(rows(after, "state").values()) == ["", "evictable", "evicted", "evictable"]
    assert rows(after, "edge")["node 2"] == "y z" and "node 2" not in rows(after, "lock")
    assert len(named(after.svg(), "struck")["struck"]) == len(named(after.svg(), "gone")["gone"]) == 1
    assert "node 2" not in rows(show_tree(tree, before=after), "state")


def test_a_whole_branch_that_is_gone_stays_in_its_form() -> None:
    tree = tree_of("a b c", "a b d", "x")
    before = show_tree(tree)
    tree.evict(4)
    state = show_tree(tree, before=before).state
    assert [(node.number, node.parent) for node in state.nodes] == [
        (node.number, node.parent) for node in before.state.nodes
    ]
    assert len(state.marked("evicted")) == 3 and len(state.alive) == 2


def test_a_ghost_stands_before_what_came_in_the_same_step() -> None:
    tree = tree_of("x", "y")
    before = show_tree(tree)
    tree.evict(1)
    tree.insert(["z"], [0])
    assert list(rows(show_tree(tree, before=before), "state").values()) == ["", "evicted", "evictable", "new"]


def test_unlocking_is_a_use_and_being_cut_is_none() -> None:
    tree = tree_of("a b c", "x")
    _, node = tree.match_prefix(["x"])
    tree.inc_lock_ref(node)
    states = [observe(tree)]
    tree.match_prefix(["a"])
    states.append(observe(tree, states[-1]))
    tree.dec_lock_ref(node)
    states.append(observe(tree, states[-1]))
    assert [(seen.words, seen.used) for seen in states[-1].nodes] == [
        ((), 2),
        (("a",), 0),
        (("b", "c"), 0),
        (("x",), 2),
    ]


def test_an_edge_that_its_parent_took_over_is_not_called_evicted() -> None:
    tree = tree_of("a b c d")
    _, node = tree.match_prefix(["a", "b"])
    tree.inc_lock_ref(tree.match_prefix(["a", "b", "c", "d"])[1])
    before = show_tree(tree)
    tree.join(node)
    state = show_tree(tree, before=before).state
    assert state.marked("evicted") == [] and [node.length for node in state.nodes] == [0, 4]


def test_what_has_not_been_built_yet_is_left_out() -> None:
    leaf = SimpleNamespace(key=[1, 2], value=[0, 1], children={})
    tree = SimpleNamespace(root=SimpleNamespace(key=[], value=[], children={1: leaf}))
    svg = show_tree(tree).svg()
    texts = [node.text for node in ET.fromstring(svg).iter() if node.text]
    assert rows(show_tree(tree), "edge") == {"the root": "root", "node 1": "1 2"}
    assert {"tokens", "lock", "lru"} & set(texts) == {"tokens"}
    assert not any("lru list" in text or "evictable_size" in text for text in texts)


def test_plain_text_is_an_indented_list() -> None:
    assert str(show_tree(tree_of("a b c", "a b d"), "Two leaves")).splitlines() == [
        "Two leaves",
        "root, tokens 0, lock 0, lru 4",
        "  a b, tokens 2, lock 0, lru 3, evictable",
        "    c, tokens 1, lock 0, lru 1, evictable",
        "    d, tokens 1, lock 0, lru 2, evictable",
    ]


def test_a_notebook_gets_the_picture_and_the_text() -> None:
    bundle = show_tree(tree_of("a"), "One")._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "image/svg+xml"}
    assert f'viewBox="0 0 {WIDTH} ' in bundle["image/svg+xml"] and WIDTH <= 900


SHAPES: dict[str, list[Any]] = {
    "empty": [],
    "one leaf": ["You are a kind cook . Bake bread"],
    "long edges": [list(range(100000, 101000)), [*range(100000, 100500), *range(700)], ["w" * 300]],
    "a chain": [[f"turn{turn}" for turn in range(length)] for length in range(1, 15)],
    "wide": [[f"leaf{leaf}", "x"] for leaf in range(12)],
    "bushy": [[a, b, c, d] for a in range(2) for b in range(2) for c in range(2) for d in range(2)],
    "more than fits": [[leaf, 7] for leaf in range(40)],
    "odd words": ["你 是 一个 推理 优化 专家 ， 回答 要 简洁", ["<b>", "&", "", " a b", "\n", "$x$"], [(1, 2), (3, 4)]],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_text_leaves_its_box_or_touches_another(shape: str) -> None:
    tree = tree_of(*SHAPES[shape])
    height, marks = show_tree(
        tree, "A title that is long enough to need a second line in a picture of this width"
    ).scene()
    assert_legible(height, [marks])


@pytest.mark.parametrize("shape", SHAPES)
def test_no_box_touches_another_and_each_is_joined_to_its_parent(shape: str) -> None:
    picture = show_tree(tree_of(*SHAPES[shape]))
    _, marks = picture.scene()
    nodes = visible(picture.state)
    boxes = [mark for mark in marks if isinstance(mark, Rect) and ": " in mark.name]
    edges = [mark for mark in marks if isinstance(mark, Line) and mark.name == "edge"]
    assert len(boxes) == len(nodes) == len(edges) + 1
    for above, below in pairwise(boxes):
        assert above.bottom + 4 <= below.y
    box_of = {node.number: box for node, box in zip(nodes, boxes, strict=True)}
    for node, edge in zip(nodes[1:], edges, strict=True):
        (x0, y0), (x1, y1) = edge.points[0], edge.points[-1]
        parent, child = box_of[node.parent or 0], box_of[node.number]
        assert parent.x < x0 <= parent.x + parent.width and parent.y < y0 <= parent.bottom
        assert x1 == child.x > parent.x and child.y < y1 < child.bottom


def test_of_a_large_tree_the_rest_is_counted_and_what_just_happened_is_shown() -> None:
    tree = tree_of(*SHAPES["more than fits"])
    before = show_tree(tree)
    tree.insert([99], [0])
    after = show_tree(tree, before=before)
    assert len(rows(after, "edge")) == MOST and "new" in rows(after, "state").values()
    assert f"+ {42 - MOST} more nodes" in after.svg()


@given(
    st.lists(
        st.tuples(st.sampled_from(["insert", "match", "lock", "evict"]), st.lists(st.integers(0, 2), max_size=6)),
        max_size=12,
    )
)
def test_whatever_was_done_the_state_is_the_tree_as_it_is(deeds: list[tuple[str, list[int]]]) -> None:
    tree = RadixCache()
    state = observe(tree)
    for deed, key in deeds:
        if deed == "insert":
            tree.insert(key, range(len(key)))
        elif deed == "evict":
            tree.evict(len(key))
        else:
            _, node = tree.match_prefix(key)
            if deed == "lock":
                tree.inc_lock_ref(node)
        state = observe(tree, state)
        tree.check_invariants()
    numbers = [node.number for node in state.nodes]
    assert len(set(numbers)) == len(numbers)
    assert sum(node.length for node in state.alive) == tree.total_size()
    by_number = {node.number: node for node in state.alive}
    assert [by_number[number].node for number in state.lru or ()] == list(tree.lru)
    assert all(node.lock == node.node.lock_ref and node.length == len(node.node.key) for node in state.alive)
    assert all(node.parent is None or by_number[node.parent].node is node.node.parent for node in state.alive)
