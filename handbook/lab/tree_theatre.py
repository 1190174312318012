"""The theatre of chapter 04: a radix tree grows request by request, and the hit rate with it.

`TreeTheatre(tree, capacity)` does for a request what an engine does, with the tree's own methods: `match`, `lock`,
`make_room`, `insert`, `finish`. Each compares the tree before and after and records a step. Nothing shown is invented:
marks and captions are computed from the states. A tree that was built cell by cell is played as well, and one with a
fault as it is. The theatre itself is only the memory around the tree: which slots are free, and who holds which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from handbook.lab.played import PlayedRequest, count, lower
from handbook.lab.scene import Mark
from handbook.lab.theatre import Step, Theatre
from handbook.lab.tree_panels import Played, draw_panels
from handbook.lab.tree_picture import draw_lru, draw_tree, fitting_step, path_to, tree_height
from handbook.lab.tree_state import Tree, TreeNode, TreeState, observe, these


class TreeTheatre(Theatre):
    """Plays a real tree in a memory of `capacity` slots."""

    def __init__(self, tree: Tree, capacity: int, *requests: PlayedRequest) -> None:
        """`requests` are listed from the first step on; others appear with their first call."""
        super().__init__()
        if not isinstance(capacity, int) or capacity < 1:
            raise ValueError(f"capacity is {capacity!r}; it is the number of KV slots, a whole number from 1 up.")
        self.tree, self.capacity, self.requests = tree, capacity, list(requests)
        self.state = observe(tree)
        held = {slot for seen in self.state.nodes for slot in seen.node.value}
        self.free = [slot for slot in range(capacity) if slot not in held]
        self.ran: list[PlayedRequest] = []
        self.rates: list[tuple[str, int, int]] = []  # after each that ran: its name, and all hits and tokens up to it
        self._layout = 0.0, 0.0  # chosen when all steps are known: px from a box to its child's, and of the tree
        self._ends: dict[PlayedRequest, Any] = {}  # the node where a request's last look-up ended
        self._locked: dict[PlayedRequest, Any] = {}  # the node that it has locked

    @property
    def running(self) -> list[PlayedRequest]:
        return [request for request in self.requests if request.status == "running"]

    def show(self, caption: str, call: str = "", request: PlayedRequest | None = None) -> None:
        """Record the tree as it is now."""
        self._record(call, caption, observe(self.tree, self.state), request)

    def match(self, request: PlayedRequest) -> int:
        """Look for the request's prefix; how many tokens were found. As in an engine its last token is left out."""
        self._enter(request)
        key = request.tokens[:-1]
        slots, node = self.tree.match_prefix(key)
        request.found, self._ends[request] = list(slots), node
        request.status = "running" if request.status == "running" else "looked up"
        after = observe(self.tree, self.state, hits=path_to(node))
        path = after.marked("hit")
        if slots:
            first = f"the first {len(slots)}" if len(slots) > 1 else "the first"
            caption = f"{these(path, 'holds', 'hold')} {first} of {request.name}'s "
            caption += f"{count(len(request.tokens), 'token')}. {_cut(after)}"
            if len(slots) == len(key):
                caption += "That is all but the last, which is never looked up: it is computed to yield the next token."
        elif key:
            caption = f"The tree finds nothing of {request.name}: all of it must be computed."
        else:
            caption = f"Without its last token {request.name} is empty: there is nothing to look up."
        call = f"tree.match_prefix({request.name}[:-1]) → {count(len(slots), 'slot')}, {_one(after, node)}"
        self._record(call, caption, after, request)
        return len(slots)

    def lock(self, request: PlayedRequest) -> None:
        """Lock what the look-up found, so that nobody can evict it while the request runs."""
        self._enter(request)
        if not request.found:
            return self.show(f"Nothing of {request.name} was found: there is nothing to lock.", request=request)
        node = self._locked[request] = self._ends[request]
        self.tree.inc_lock_ref(node)
        request.status = "running"
        after = observe(self.tree, self.state)
        name = _one(after, node)
        caption = f"One more lock on {name} and all above it. "
        left = [seen for seen in after.nodes if seen.place == 0 and _then(self.state, seen).place]
        if left:
            caption += f"{these(left, 'leaves', 'leave')} the lru list: no eviction while {request.name} runs."
        elif after.lru is not None:
            caption += "All of it was locked before, so the lru list stays as it was."
        self._record(f"tree.inc_lock_ref({name})", caption, after, request)

    def make_room(self, request: PlayedRequest) -> bool:
        """Evict as many tokens as the request lacks slots. False: there are too few, and it cannot run yet."""
        self._enter(request)
        need = len(request.tokens) - len(request.found)
        missing = need - len(self.free)
        if missing <= 0:
            return True
        wants = f"{request.name} needs {count(need, 'slot')}, {len(self.free)} free"
        if missing > self.tree.evictable_size:
            caption = f"{wants}, and {self.tree.evictable_size} could be evicted, the rest is locked: no room now. "
            request.status, call = "no room", ""
            if request in self._locked:
                node = self._locked.pop(request)
                self.tree.dec_lock_ref(node)
                caption, call = caption + "It gives up its lock.", f"tree.dec_lock_ref({_one(self.state, node)})"
            self.show(caption, call, request)
            return False
        before = self.state
        slots = list(self.tree.evict(missing))
        self.free += slots
        after = observe(self.tree, before)
        gone = sorted(after.marked("evicted"), key=lambda seen: seen.place or 0)
        if not gone:
            caption = f"{wants}, yet nothing was evicted!"
        elif locked := [seen for seen in gone if seen.lock]:
            caption = f"{wants}. {these(locked, 'was', 'were')} locked, and evicted!"
        elif before.lru and {seen.number for seen in gone} != set(before.lru[: len(gone)]):
            caption = f"{wants}. {these(gone, 'was', 'were')} evicted: not the head of the lru list!"
        else:
            caption = f"{wants}. Evicted from the head of the lru list: {lower(these(gone, 'with', 'with'))} "
            caption += f"{count(sum(seen.length for seen in gone), 'token')}. {_spared(after, gone)}"
        self._record(f"tree.evict({missing}) → {slots}", caption, after, request)
        return len(self.free) >= need

    def insert(self, request: PlayedRequest) -> bool:
        """Compute what was not found, insert the whole request, and lock all of it. False: there is no room."""
        self._enter(request)
        if not self.make_room(request):
            return False
        request.num_cached, name = len(request.found), request.name
        new = len(request.tokens) - request.num_cached
        mine, self.free = self.free[:new], self.free[new:]
        present = self.tree.insert(request.tokens, request.found + mine)
        self.free += mine[: max(0, present - request.num_cached)]  # somebody else has computed these as well
        request.table, end = self.tree.match_prefix(request.tokens)  # the slots that the tree keeps, and where to lock
        held, self._locked[request] = self._locked.get(request), end
        self.tree.inc_lock_ref(end)
        if held is not None:
            self.tree.dec_lock_ref(held)
        request.status = "running"
        hits, tokens = self.rates[-1][1:] if self.rates else (0, 0)
        self.ran.append(request)
        self.rates.append((name, hits + request.num_cached, tokens + len(request.tokens)))
        after = observe(self.tree, self.state, used=path_to(end))
        caption = f"{name} computes {count(new, 'token')}. {_cut(after)}"
        if leaves := after.marked("new"):
            parent = next(seen for seen in after.nodes if seen.number == leaves[0].parent)
            caption += f"{these(leaves, 'is', 'are')} new, a leaf under {parent.name} with "
            caption += f"{count(leaves[0].length, 'token')}. "
        else:
            caption += "The tree has all of it already, so nothing is added. "
        caption += f"While {name} runs, its whole path is locked."
        self._record(f"tree.insert({name}, slots) → {present}; tree.inc_lock_ref({_one(after, end)})", caption, after,
                     request)  # fmt: skip
        return True

    def finish(self, request: PlayedRequest) -> None:
        """The request ends and unlocks what it holds."""
        self._enter(request)
        if request not in self._locked:
            return self.show(f"{request.name} holds no lock: there is nothing to unlock.", request=request)
        node = self._locked.pop(request)
        self.tree.dec_lock_ref(node)
        request.status, request.found, request.table = "ended", [], []
        after = observe(self.tree, self.state)
        joined = [seen for seen in after.nodes if seen.place and not _then(self.state, seen).place]
        joined.sort(key=lambda seen: seen.place or 0)
        still = [seen for seen in after.alive if seen.lock and _then(self.state, seen).lock != seen.lock]
        caption = f"{request.name} ends. "
        if joined:
            caption += f"{these(joined, 'joins', 'join')} the lru list: cached as before, but evictable. "
        if still:
            caption += f"{these(still, 'stays', 'stay')} locked: another request uses it."
        name = _one(after, node)
        self._record(f"tree.dec_lock_ref({name})", caption, after, request)

    def draw(self, state: Played, top: float) -> list[Mark]:
        """The marks that show `state`; its parts stand in the same place in every step."""
        step, height = self._layout
        panels, top = draw_panels(state, [request.name for request in self.requests], top)
        return panels + draw_tree(state.tree, top, step) + draw_lru(state.tree, top + height + 6)[0]

    def scenes(self) -> tuple[float, list[list[Mark]]]:
        """As every theatre's, after the layout that all steps share was chosen."""
        states = [step.state.tree for act in self.acts for step in act.steps]
        self._layout = fitting_step(states), max(map(tree_height, states), default=0)
        return super().scenes()

    def _enter(self, request: PlayedRequest) -> None:
        if request not in self.requests:
            self.requests.append(request)

    def _record(self, call: str, caption: str, tree: TreeState, request: PlayedRequest | None = None) -> None:
        if not self.acts:
            self.act("What the tree did")
        copies = {id(one): replace(one, found=[*one.found], table=[*one.table]) for one in self.requests}
        shown = copies[id(request)] if request else None
        self.state = tree
        state = Played(tree, shown, tuple(copies.values()), tuple(self.rates), self.capacity)
        self.acts[-1].steps.append(Step(call, caption.strip(), state))


def _one(state: TreeState, node: Any) -> str:
    return next((seen.name for seen in state.alive if seen.node is node), "a node that is not in the tree")


def _then(before: TreeState, node: TreeNode) -> TreeNode:
    """The node as it was; itself, if it is new."""
    return next((seen for seen in before.nodes if seen.number == node.number), node)


def _cut(state: TreeState) -> str:
    parts = [f"{upper.name} is its upper part, {low.name} the rest" for upper, low in state.cuts()]
    return f"An edge is cut there: {', '.join(parts)}. " if parts else ""


def _spared(state: TreeState, gone: Sequence[TreeNode]) -> str:
    if older := state.older_locked(gone):
        return f"{these(older, 'was', 'were')} used even longer ago, but locked: spared. "
    return "What is locked is spared." if any(node.lock for node in state.alive) else ""
