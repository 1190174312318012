"""The play of chapter 04: requests come to a radix tree one after the other, ours or the learner's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from operator import eq
from typing import Any

from handbook.lab.played import PlayedRequest, count, lower
from handbook.lab.theatre import Act
from handbook.lab.tree_state import Tree, these
from handbook.lab.tree_theatre import TreeTheatre

STORY = (
    "You are a kind cook . Bake bread",
    "You are a kind cook . Any soup for today ?",
    "You are a kind cook . Any soup without salt ?",
    "How far is the moon ?",
)
SINGLY = 12  # requests that are played step by step; of more, only what became of the tree is shown


def play(tree: Tree, requests: Iterable[Sequence[int | str] | str] = STORY, capacity: int = 20) -> TreeTheatre:
    """The requests come one after the other, and each ends before the next comes; but the first one that runs goes on
    until all others have ended or its room is needed. At last a request is looked up again that lost by evictions."""
    if isinstance(requests, str):
        raise TypeError(
            f"requests is one string, {requests!r}; give a list of requests, each a string or a list of ids."
        )
    cast = [PlayedRequest(_name(place), request) for place, request in enumerate(requests)]
    stage = TreeTheatre(tree, capacity, *cast)
    if not cast:
        stage.act("No request comes")
        stage.show("There is nothing to play: the tree stays as it is.")
        return stage
    lost: dict[PlayedRequest, int] = {}  # what was cached of each when an eviction first took of it
    for request in cast[:SINGLY]:
        _come_and_go(stage, request, lost)
    if unseen := cast[SINGLY:]:
        first = len(stage.acts)
        for request in unseen:
            _come_and_go(stage, request, lost)
        last = stage.acts[-1].steps[-1]
        stage.acts[first:] = [
            Act(f"{count(len(unseen), 'more request')} came, unseen; the last was {request.name}", [last])
        ]
    _look_again(stage, lost)
    return stage


def _come_and_go(stage: TreeTheatre, request: PlayedRequest, lost: dict[PlayedRequest, int]) -> None:
    name, total = request.name, count(len(request.tokens), "token")
    slowly = not any(hits for _, hits, _ in stage.rates)  # the first hit is taken apart
    stage.act(f"{name} can never run: {total} do not fit in {count(stage.capacity, 'slot')}")
    if len(request.tokens) > stage.capacity:
        request.status = "no room"
        return stage.show(f"{name} is refused, and the tree stays as it is.", request=request)
    found = stage.match(request)
    hit = f"{found} of its {total} {'is' if found == 1 else 'are'} found" if found else "nothing of it is found"
    stage.retitle(f"{name} comes: {hit}" + "; an edge is cut there" * any(stage.state.cuts()))
    if found and slowly:
        stage.act("")
    if found:
        stage.lock(request)
    cached = {one: _cached(stage.tree, one.tokens[:-1]) for one in stage.ran}
    while not stage.make_room(request):
        if not stage.running:
            return stage.retitle(f"{name} finds no room")
        stage.finish(stage.running[0])
        if stage.match(request):
            stage.lock(request)
    if gone := stage.state.marked("evicted"):
        spared = stage.state.older_locked(gone)
        which = "; " + lower(these(spared, "is", "are")) + " older, but locked" if spared else ""
        stage.retitle(f"{name} needs room: {lower(these(gone, 'is', 'are'))} evicted{which}")
        lost |= {one: had for one, had in cached.items() if _cached(stage.tree, one.tokens[:-1]) < had} | lost
        stage.act("")
    stage.insert(request)
    grown = "the tree has all of it already"
    if leaves := stage.state.marked("new"):
        new = sum(leaf.length for leaf in leaves)
        grown = f"{count(new, 'token')} {'becomes' if new == 1 else 'become'} a new leaf"
    stays = len(stage.ran) == 1
    if found and slowly:
        stage.retitle(f"{name} runs: what it hit is locked, and {grown}")
    elif gone:
        stage.retitle(f"{name} runs{'' if stays else ' and ends'}: {grown}")
    else:
        stage.retitle(f"{name} comes: {hit}; {grown.replace(' tokens', '') if found else grown}")
    if stays:
        return
    if found and slowly:
        stage.act("")
    stage.finish(request)
    if found and slowly:
        kept = _cached(stage.tree, request.tokens)
        its = f"its {total}" if kept == len(request.tokens) else f"{kept} of its {total}"
        stage.retitle(f"{name} ends: {its} stay cached; evictable now: {stage.tree.evictable_size}")


def _look_again(stage: TreeTheatre, lost: dict[PlayedRequest, int]) -> None:
    if not stage.ran:
        return
    stage.act("")
    for request in stage.running:
        stage.finish(request)
    again = max(lost, key=lambda one: lost[one] - _cached(stage.tree, one.tokens[:-1]), default=stage.ran[0])
    found, name = stage.match(again), again.name
    if again in lost:
        stage.retitle(f"The same look-up of {name} finds {count(found, 'token')}; before the eviction, {lost[again]}")
    else:
        stage.retitle(f"Looked up again, {name} finds {found} of its {count(len(again.tokens), 'token')}")


def _cached(tree: Tree, key: Sequence[Any]) -> int:
    """How many tokens of key the tree has, read without a change."""
    node, total = tree.root, 0
    while total < len(key) and (child := node.children.get(key[total])):
        same = sum(1 for _ in takewhile(bool, map(eq, child.key, key[total:])))
        node, total = child, total + same
        if same < len(child.key):
            break
    return total


def _name(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else f"R{place + 1}"
