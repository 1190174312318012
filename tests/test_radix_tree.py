"""The radix tree: against a naive model and the plain version, to the letter of the transcript, abused, and counted."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from handbook.lab.counting import CountingToken, comparisons, lines, visits
from handbook.radix_tree import Node, RadixCache, common_length
from tests.naive.plain_radix import PlainNode, PlainRadixCache
from tests.naive.radix_model import NaiveRadixCache, Prefix, contents

few_tokens = st.lists(st.integers(0, 1), max_size=10)  # two different tokens, so that prefixes are often shared
BASES = [0, 1, 1, 0, 1, 0, 0, 0, 1, 1], [0, 1, 1, 0, 0, 1, 1, 1, 0, 1]
# Beginnings of two sequences, that long edges come about and are left at every place.
keys = few_tokens | st.builds(
    lambda base, length, tail: base[:length] + tail, st.sampled_from(BASES), st.integers(1, 10), few_tokens
)


def state(tree: RadixCache) -> bytes:
    """All that a tree knows, the order of its list included."""
    return pickle.dumps(tree)


def filled(*keys: list[Any]) -> RadixCache:
    """A tree of these keys, inserted one after another; token t at position i lies in slot 100 * i + t."""
    tree = RadixCache()
    for key in keys:
        tree.insert(key, [100 * i + token for i, token in enumerate(key)])
    return tree


# ---- the whole contract, against the naive model


class TreeAgainstModels(RuleBasedStateMachine):
    """Sequences come, are used, locked, unlocked, evicted; after each operation tree, plain version and model agree."""

    @initialize()
    def start(self):
        self.tree, self.plain, self.model = RadixCache(), PlainRadixCache(), NaiveRadixCache()
        self.next_slot = 0
        self.nodes: list[tuple[Any, Any, Prefix, int | None]] = []  # of the tree, of the plain version, prefix, slot
        self.locked: list[int] = []  # of these

    @rule(key=keys, locks=st.booleans())
    def match(self, key, locks):
        slots, node = self.tree.match_prefix(key)
        assert slots == self.model.match(key)
        plain_slots, plain_node = self.plain.match_prefix(key)
        assert slots == plain_slots
        prefix = self.model.cached(key)
        assert self.tree.slots(node) == slots
        self.nodes.append((node, plain_node, prefix, self.model.slot.get(prefix)))
        if locks:
            self.lock(-1)

    @rule(key=keys)
    def insert(self, key):
        value = list(range(self.next_slot, self.next_slot + len(key)))
        self.next_slot += len(key)
        num_present = self.tree.insert(key, value)
        assert num_present == self.model.insert(key, value) == self.plain.insert(key, value)

    @rule(key=keys)
    def follow(self, key):
        before = state(self.tree)
        _, _, num_cached = self.tree.find(key)
        assert num_cached == len(self.model.cached(key))
        assert state(self.tree) == before

    @precondition(lambda self: self.nodes)
    @rule(number=st.integers(0, 99))
    def lock(self, number):
        number %= len(self.nodes)
        node, plain_node, prefix, slot = self.nodes[number]
        if self.model.slot.get(prefix) != slot:  # evicted, and perhaps computed again since
            before = state(self.tree)
            with pytest.raises(ValueError, match="not in this tree"):
                self.tree.inc_lock_ref(node)
            assert state(self.tree) == before
            return
        self.tree.inc_lock_ref(node)
        self.plain.inc_lock_ref(plain_node)
        self.model.lock(prefix)
        self.locked.append(number)

    @precondition(lambda self: self.locked)
    @rule(number=st.integers(0, 99))
    def unlock(self, number):
        node, plain_node, prefix, _ = self.nodes[self.locked.pop(number % len(self.locked))]
        self.tree.dec_lock_ref(node)
        self.plain.dec_lock_ref(plain_node)
        self.model.unlock(prefix)

    @precondition(lambda self: self.nodes)
    @rule(number=st.integers(0, 99))
    def unlock_what_is_not_locked(self, number):
        node, _, prefix, _ = self.nodes[number % len(self.nodes)]
        if prefix in self.model.locks:
            return
        before = state(self.tree)
        with pytest.raises(ValueError, match=r"not locked|not in this tree"):
            self.tree.dec_lock_ref(node)
        assert state(self.tree) == before

    @rule(num_tokens=st.sampled_from([0, 1, 1, 1, 2, 4, 12]))
    def evict(self, num_tokens):
        slots = self.tree.evict(num_tokens)
        assert slots == self.model.evict(num_tokens) == self.plain.evict(num_tokens)

    @invariant()
    def all_agree(self):
        self.tree.check_invariants()
        assert contents(self.tree) == self.model.slot
        order = [
            (*self.above(node), *node.key[: n + 1]) for node in self.tree.lru for n in reversed(range(len(node.key)))
        ]
        assert order == self.model.lru
        sizes = len(self.model.lru), len(self.model.slot) - len(self.model.lru)
        assert (self.tree.evictable_size, self.tree.protected_size) == sizes
        assert (self.plain.evictable_size, self.plain.protected_size) == sizes
        assert self.tree.total_size() == len(self.model.slot)

    def above(self, node: Node) -> list[Any]:
        return [token for each in reversed(self.tree.path(node)[1:]) for token in each.key]


TestTreeAgainstModels = TreeAgainstModels.TestCase
TestTreeAgainstModels.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_the_transcript_of_a_tree():
    tree = RadixCache()
    assert tree.insert([1, 2, 3, 4, 5], [10, 11, 12, 13, 14]) == 0
    assert tree.insert([1, 2, 3, 9, 9], [10, 11, 12, 20, 21]) == 3
    slots, node = tree.match_prefix([1, 2, 3, 4, 7])
    assert (slots, node.key) == ([10, 11, 12, 13], [4])
    tree.inc_lock_ref(node)
    assert (tree.evictable_size, tree.protected_size) == (3, 4)
    assert tree.evict(10) == [14, 20, 21]
    tree.dec_lock_ref(node)
    assert set(tree.evict(10)) == {10, 11, 12, 13}
    assert tree.total_size() == 0


# ---- look-ups


def test_an_empty_key_finds_nothing_and_changes_nothing():
    tree = filled([1, 2, 3])
    before = state(tree)
    slots, node = tree.match_prefix([])
    assert (slots, node.key, tree.insert([], []), tree.evict(0)) == ([], [], 0, [])
    assert state(tree) == before


def test_the_empty_prefix_can_be_locked_and_unlocked_and_protects_nothing():
    tree = filled([1, 2])
    _, node = tree.match_prefix([7])
    tree.inc_lock_ref(node)
    tree.check_invariants()
    assert (tree.evictable_size, tree.evict(9)) == (2, [1, 102])
    tree.dec_lock_ref(node)
    tree.check_invariants()
    with pytest.raises(ValueError, match="not locked"):
        tree.dec_lock_ref(node)


@pytest.mark.parametrize("kind", [tuple, list])
def test_keys_and_slots_may_be_any_sequence_and_are_copied(kind):
    tree = RadixCache()
    key, value = kind([1, 2, 3]), kind([10, 11, 12])
    assert tree.insert(key, value) == 0
    if kind is list:
        key[0] = value[0] = 99
    assert tree.insert(range(1, 5), range(20, 24)) == 3
    slots, node = tree.match_prefix(range(1, 9))
    assert (slots, node.key) == ([10, 11, 12, 23], [4])


def test_the_slots_of_a_match_are_the_callers():
    tree = filled([1, 2, 3])
    tree.match_prefix([1, 2, 3])[0].clear()
    assert tree.match_prefix([1, 2, 3])[0] == [1, 102, 203]


def test_what_was_cached_first_keeps_its_slots():
    tree = RadixCache()
    tree.insert([1, 2], [10, 11])
    assert tree.insert([1, 2, 3], [20, 21, 22]) == 2
    assert tree.match_prefix([1, 2, 3])[0] == [10, 11, 22]


@given(few_tokens, few_tokens, st.lists(st.integers(0, 1), max_size=3))
def test_edges_are_compared_to_their_first_difference(edge, key, skipped):
    shared = 0
    while shared < min(len(edge), len(key)) and edge[shared] == key[shared]:
        shared += 1
    assert common_length(edge, skipped + key, len(skipped)) == shared


@pytest.mark.parametrize("length", [1, 2, 3, 31, 64, 100])
def test_long_edges_are_compared_to_their_first_difference(length):
    edge = list(range(length))
    for difference in range(1, length + 1):
        key = [-1, *edge[:difference], -2, *edge[difference + 1 :], -3]
        assert common_length(edge, key, 1) == difference
        assert common_length(edge, key[: difference + 1], 1) == difference


# ---- splits


def test_a_match_that_ends_inside_an_edge_splits_it_and_one_at_its_end_does_not():
    tree = filled([1, 2, 3, 4])
    assert [len(tree.path(tree.match_prefix([1, 2, 3, 4][:n])[1])) - 1 for n in (4, 3, 3, 1)] == [1, 1, 1, 1]
    assert [node.key for node in tree.path(tree.find([1, 2, 3, 4])[0])] == [[4], [2, 3], [1], []]


def test_a_match_does_not_renew_what_it_did_not_match():
    """mini-sglang PR #124, sglang PR #24892: the unmatched lower part was renewed, and another entry evicted for it."""
    tree = filled([1, 2, 3, 4], [7, 8])
    tree.match_prefix([1, 2, 9])
    tree.evict(2)
    assert (tree.match_prefix([7, 8])[0], tree.match_prefix([1, 2, 3, 4])[0]) == ([7, 108], [1, 102])


def test_a_split_above_a_locked_node_leaves_nothing_locked_after_unlocking():
    tree = filled([1, 2, 3, 4, 5])
    _, half = tree.match_prefix([1, 2, 3])
    tree.inc_lock_ref(half)
    _, quarter = tree.match_prefix([1])
    tree.check_invariants()
    assert (quarter.lock_ref, half.lock_ref, half.key) == (1, 1, [2, 3])
    assert (tree.evictable_size, tree.protected_size) == (2, 3)
    tree.dec_lock_ref(half)
    tree.check_invariants()
    assert (tree.evictable_size, tree.protected_size, len(tree.evict(9))) == (5, 0, 5)


def test_a_split_between_a_locked_node_and_the_root_keeps_the_count():
    tree = filled([1, 2, 3, 4], [1, 2, 3, 5])
    for key in ([1, 2, 3, 4], [1, 2, 3, 5]):
        tree.inc_lock_ref(tree.match_prefix(key)[1])
    _, upper = tree.match_prefix([1, 2])
    tree.check_invariants()
    assert (upper.lock_ref, upper.num_locks, tree.protected_size) == (2, 0, 5)


def test_who_locked_an_edge_holds_all_of_it_when_others_split_it():
    tree = filled([1, 2, 3, 4])
    _, node = tree.match_prefix([1, 2, 3, 4])
    tree.inc_lock_ref(node)
    tree.insert([1, 2, 9], [0, 0, 9])
    assert (tree.protected_size, tree.evict(9)) == (4, [9])
    assert tree.slots(node) == [1, 102, 203, 304]


def test_a_join_undoes_a_split():
    tree = filled([1, 2, 3, 4])
    _, leaf = tree.match_prefix([1, 2, 3, 4])
    tree.inc_lock_ref(leaf)
    _, upper = tree.match_prefix([1, 2])
    assert tree.join(upper) == [203, 304]
    tree.check_invariants()
    assert (upper.key, upper.value, upper.children) == ([1, 2, 3, 4], [1, 102, 203, 304], {})
    tree.dec_lock_ref(upper)
    tree.check_invariants()
    with pytest.raises(ValueError, match="not in this tree"):
        tree.inc_lock_ref(leaf)


def test_only_a_leaf_that_has_all_the_locks_is_joined():
    tree = filled([1, 2, 3, 4])
    end, middle, upper = (tree.match_prefix([1, 2, 3, 4][:n])[1] for n in (4, 3, 2))
    cases: list[tuple[list[Node], Node]] = [([], middle), ([end], upper), ([end, middle], middle), ([end], end)]
    for locked, joined in cases:
        for node in locked:
            tree.inc_lock_ref(node)
        before = state(tree)
        assert tree.join(joined) == []
        assert state(tree) == before
        for node in locked:
            tree.dec_lock_ref(node)


def test_a_node_with_two_children_and_the_root_are_not_joined():
    tree = filled([1, 2, 3], [1, 2, 4])
    tree.inc_lock_ref(tree.match_prefix([1, 2, 3])[1])
    only_child = filled([1])
    only_child.inc_lock_ref(only_child.match_prefix([1])[1])
    assert (tree.join(tree.find([1, 2])[0]), only_child.join(only_child.root)) == ([], [])
    tree.check_invariants()
    only_child.check_invariants()


# ---- locks


def test_a_locked_node_and_all_above_it_stay():
    """mini-sglang PR #52: the lock began at the parent, so the matched node itself was evicted."""
    tree = filled([1, 2, 3, 4], [1, 2, 5], [6])
    slots, node = tree.match_prefix([1, 2, 3, 4])
    tree.inc_lock_ref(node)
    assert sorted(tree.evict(10**9)) == [6, 205]
    assert tree.match_prefix([1, 2, 3, 4])[0] == slots


def test_two_locks_need_two_unlocks():
    tree = filled([1, 2])
    _, node = tree.match_prefix([1, 2])
    tree.inc_lock_ref(node)
    tree.inc_lock_ref(node)
    tree.dec_lock_ref(node)
    assert tree.evict(2) == []
    tree.dec_lock_ref(node)
    assert tree.evict(2) == [1, 102]


def test_unlocking_is_a_use_of_what_nobody_locks_any_more():
    tree = filled([1, 2], [7])
    _, node = tree.match_prefix([1])
    tree.inc_lock_ref(node)
    tree.match_prefix([7])
    tree.dec_lock_ref(node)
    assert [tree.evict(1) for _ in range(3)] == [[102], [7], [1]]


def test_unlocking_is_no_use_of_what_somebody_else_locks():
    tree = filled([1, 2], [1, 3])
    nodes = [tree.match_prefix(key)[1] for key in ([1, 2], [1, 3])]
    for node in nodes:
        tree.inc_lock_ref(node)
    tree.insert([7], [7])
    tree.dec_lock_ref(nodes[0])
    assert list(tree.lru)[-1] is nodes[0]
    assert tree.evict(9) == [7, 102]


# ---- eviction


def test_no_more_leaves_than_needed_are_evicted_and_each_whole():
    """sglang #4987: the loop never counted what it had freed, so one call emptied the tree."""
    tree = filled([1, 2, 3], [4, 5], [6])
    assert [tree.evict(n) for n in (1, 2, 0)] == [[1, 102, 203], [4, 105], []]
    assert tree.total_size() == 1


def test_a_parent_left_bare_can_be_evicted_and_not_before_its_children():
    tree = filled([1, 2, 3], [1, 2, 4])
    for key in ([1, 2, 3], [1, 2]):
        tree.match_prefix(key)
    assert [tree.evict(1) for _ in range(4)] == [[204], [203], [1, 102], []]


def test_the_least_recently_used_sequence_is_evicted_first():
    tree = filled([1], [2], [3], [4])
    tree.match_prefix([1])
    tree.insert([2], [0])
    _, node = tree.match_prefix([3])
    tree.inc_lock_ref(node)
    tree.match_prefix([2])
    tree.dec_lock_ref(node)
    assert tree.evict(4) == [4, 1, 2, 3]


# ---- wrong calls


def busy_tree() -> tuple[RadixCache, dict[str, Node]]:
    """1 2, with 3 and 4 5 below it; 4 5 locked. And nodes: an evicted one, one of another tree."""
    tree = filled([9, 9])
    nodes = {"evicted": tree.match_prefix([9, 9])[1]}
    tree.evict(2)
    for key in ([1, 2, 3], [1, 2, 4, 5]):
        tree.insert(key, key)
    nodes |= {"above": tree.match_prefix([1, 2])[1], "free": tree.match_prefix([1, 2, 3])[1]}
    nodes["locked"] = tree.match_prefix([1, 2, 4, 5])[1]
    tree.inc_lock_ref(nodes["locked"])
    other = filled([1, 2])
    nodes["other"] = other.match_prefix([1, 2])[1]
    other.inc_lock_ref(nodes["other"])
    return tree, nodes


WRONG_CALLS = {
    "fewer slots than tokens": (lambda t, n: t.insert([1, 2, 9], [1, 2]), "3 tokens with 2 slots"),
    "more slots than tokens": (lambda t, n: t.insert([1, 7], [1, 2, 3]), "2 tokens with 3 slots"),
    "slots without tokens": (lambda t, n: t.insert([], [1]), "0 tokens with 1 slots"),
    "evict a negative number": (lambda t, n: t.evict(-1), "cannot evict -1 tokens"),
    "evict half a token": (lambda t, n: t.evict(0.5), "cannot evict 0.5 tokens"),
    "evict a text": (lambda t, n: t.evict("1"), "cannot evict '1' tokens"),
    "lock an evicted node": (lambda t, n: t.inc_lock_ref(n["evicted"]), "not in this tree; if it was evicted"),
    "lock a node of another tree": (lambda t, n: t.inc_lock_ref(n["other"]), "not in this tree"),
    "lock nothing": (lambda t, n: t.inc_lock_ref(None), "None is not in this tree"),
    "unlock an evicted node": (lambda t, n: t.dec_lock_ref(n["evicted"]), "not in this tree"),
    "unlock a node of another tree": (lambda t, n: t.dec_lock_ref(n["other"]), "not in this tree"),
    "unlock what nobody locks": (lambda t, n: t.dec_lock_ref(n["free"]), "not locked itself"),
    "unlock what is locked for its child": (lambda t, n: t.dec_lock_ref(n["above"]), "not locked itself"),
    "unlock the root": (lambda t, n: t.dec_lock_ref(t.root), "not locked itself"),
}


@pytest.mark.parametrize("what", WRONG_CALLS)
def test_a_wrong_call_names_what_is_wrong_and_changes_nothing(what):
    call, message = WRONG_CALLS[what]
    tree, nodes = busy_tree()
    before = state(tree)
    with pytest.raises(ValueError, match=message):
        call(tree, nodes)
    assert state(tree) == before
    tree.check_invariants()


def test_a_token_that_cannot_be_hashed_is_an_error_and_changes_nothing():
    tree, _ = busy_tree()
    before = state(tree)
    keys: list[Any] = [[[1]], [1, 2, [3]]]
    for key in keys:
        with pytest.raises(TypeError, match="unhashable"):
            tree.insert(key, key)
        with pytest.raises(TypeError, match="unhashable"):
            tree.match_prefix(key)
    assert state(tree) == before


def lock_too_little(tree: RadixCache, nodes: dict[str, Node]) -> None:
    """A lock count below 0, in sums that are right."""
    nodes["free"].num_locks = nodes["free"].lock_ref = -1
    nodes["above"].lock_ref = tree.root.lock_ref = 0


BREAKS: dict[str, Callable[[Any, Any], object]] = {
    "the root has no edge": lambda t, n: t.root.key.append(1),
    "one slot for each token": lambda t, n: n["free"].value.append(1),
    "lock_ref counts the locks here and below": lambda t, n: setattr(n["above"], "lock_ref", 2),
    "never negative": lock_too_little,
    "found by the first token": lambda t, n: n["free"].key.__setitem__(0, 8),
    "a child knows its parent": lambda t, n: setattr(n["free"], "parent", t.root),
    "the list holds the unlocked nodes": lambda t, n: t.lru.pop(n["free"]),
    "a child stands before its parent": lambda t, n: (t.dec_lock_ref(n["locked"]), t.lru.move_to_end(n["free"])),
    "evictable_size is": lambda t, n: setattr(t, "evictable_size", 2),
    "protected_size is": lambda t, n: setattr(t, "protected_size", 5),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_check_invariants_names_the_broken_rule(broken):
    tree, nodes = busy_tree()
    tree.check_invariants()
    BREAKS[broken](tree, nodes)
    with pytest.raises(AssertionError, match=broken):
        tree.check_invariants()


# ---- work, counted


def fan(num_leaves: int) -> RadixCache:
    """Two shared tokens, then two own ones for each leaf."""
    return filled(*([1, 2, 10 + i, 3] for i in range(num_leaves)))


def chain(num_nodes: int, length: int) -> tuple[RadixCache, list[int]]:
    """Keys each `length` tokens longer than the last; the tree and the longest key."""
    key = list(range(num_nodes * length))
    return filled(*(key[: (i + 1) * length] for i in range(num_nodes))), key


def test_evicting_a_leaf_visits_as_many_nodes_in_a_large_tree_as_in_a_small_one():
    """sglang PR #14339: each eviction scanned all leaves."""
    counts = []
    for num_leaves in (30, 300, 3000):
        tree = fan(num_leaves)
        counts.append((visits(Node, tree.evict, 20), lines(tree.evict, 20)))
    assert counts == [counts[0]] * 3
    assert counts[0][0] == 10
    plain = PlainRadixCache()
    for i in range(300):
        plain.insert([1, 2, 10 + i, 3], [0] * 4)
    assert visits(PlainNode, plain.evict, 20) > 300


def test_evicting_down_a_long_path_visits_each_node_once():
    tree, _ = chain(500, 2)
    assert visits(Node, tree.evict, 1000) == 500


def test_a_match_and_an_insertion_visit_nodes_on_their_way_alone():
    counts = []
    for num_leaves in (30, 3000):
        tree = fan(num_leaves)
        matched = visits(Node, tree.match_prefix, [1, 2, 20, 3])
        counts.append((matched, visits(Node, tree.insert, [1, 2, 9, 9], [0] * 4)))
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 4


def test_a_lock_visits_nodes_on_its_way_alone():
    counts = []
    for num_leaves in (30, 3000):
        tree = fan(num_leaves)
        _, node = tree.match_prefix([1, 2, 20, 3])
        locking = lines(tree.inc_lock_ref, node)
        counts.append((locking, lines(tree.dec_lock_ref, node)))
    assert counts[0] == counts[1]


def counting(tokens: Any) -> list[CountingToken]:
    return [CountingToken(token) for token in tokens]


@pytest.mark.parametrize("num_shared", [10, 1000, 8000])
def test_each_token_of_a_key_is_compared_a_few_times_at_most(num_shared):
    tree = RadixCache()
    tree.insert(counting(range(10_000)), range(10_000))
    for key in (range(num_shared), [*range(num_shared), *range(20_000, 22_000)]):
        assert comparisons(tree.find, counting(key)) <= 4 * num_shared + 100


def test_tokens_are_compared_at_the_speed_of_c():
    """No line of Python runs once for each token: of an edge, of a split, of the slots found."""
    key = list(range(10_000))
    for other in (key, key[:7000], key[:7000] + [-1] * 2000):
        tree = RadixCache()
        assert lines(tree.insert, key, key) < 100
        assert lines(tree.match_prefix, other) < 300
        assert lines(tree.evict, 10_000) < 100


class CountingList(list[Any]):
    """A list that counts how many of its items are copied out by slices."""

    num_copied = 0

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            self.num_copied += len(range(*index.indices(len(self))))
        return super().__getitem__(index)


def test_a_deep_path_is_walked_without_copying_the_rest_of_the_key_at_each_node():
    tree, tokens = chain(200, 10)
    key = CountingList(tokens)
    tree.match_prefix(key)
    assert key.num_copied <= 2 * len(tokens)


def test_a_split_copies_the_part_that_was_matched_alone():
    """The lower part stays where it is: its list is shortened at the front, which moves memory and visits no token."""
    tree = filled(list(range(1000)))
    _, whole = tree.match_prefix(range(1000))
    key, value = whole.key, whole.value
    tree.match_prefix([0, 1, 2])
    assert (whole.key is key, whole.value is value, len(key), len(value)) == (True, True, 997, 997)
