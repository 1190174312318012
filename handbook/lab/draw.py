"""The theatre of chapter 03: what a block pool with prefix caching does to its blocks, its queue and its hashes.

`PoolTheatre(pool)` has the pool's own verbs, taken by a request: each calls the real pool, compares the state before
and after, and records a step with what happened. Nothing shown is invented: captions are computed from the states, and
the one thing a pool does not know, the tokens behind its hashes, is remembered here when they are written.
Any pool with `num_blocks`, `block_size`, `ref_cnt`, `free_queue`, `block_hash` and these five verbs will do, also one
that was built cell by cell, and one with a fault: it is played as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from handbook.lab.played import PlayedRequest, count, each, lower
from handbook.lab.pool_picture import Block, PoolState, draw_pool
from handbook.lab.scene import Mark
from handbook.lab.theatre import Step, Theatre

__all__ = ["PlayedRequest", "PoolTheatre", "six_acts"]


Pool = Any  # a `handbook.prefix_cache.PrefixCachingBlockPool`, or whatever else has what this module's text names
Tokens = Sequence[int | str] | str
_blocks = partial(each, "block")


class PoolTheatre(Theatre):
    """Plays a real pool. `act(title)` begins an act; `lookup`, `touch`, `allocate`, `cache_blocks` and `free` do for a
    request what an engine does; `show(caption)` records the pool as it stands."""

    def __init__(self, pool: Pool, *requests: PlayedRequest) -> None:
        """`requests` are listed from the first step on; others appear with their first call."""
        super().__init__()
        if pool.num_blocks > 24:
            raise ValueError(f"The pool has {pool.num_blocks} blocks; the stage holds 24: play a smaller pool.")
        self.pool = pool
        self.requests = list(requests)
        self._written: dict[int, Block] = {}  # what was put into each block, as far as this theatre saw it

    def show(self, caption: str, call: str = "") -> None:
        """Record the pool as it is now."""
        self._record(call, caption, self._observe())

    def lookup(self, request: PlayedRequest) -> list[int]:
        """Look for the request's prefix. As in an engine its last token is left out: it is always computed."""
        self._enter(request)
        request.found = list(self.pool.lookup(request.ids[:-1]))
        request.status = "running" if request.table else "waiting"
        size, total = self.pool.block_size, len(request.ids)
        if request.found:
            first = f"the first {len(request.found) * size} of {request.name}'s {total} tokens"
            caption = f"{_blocks(request.found, 'holds', 'hold')} {first}. "
            caption += "The last token is never looked up: it must be computed to yield the next one."
        elif total <= size:
            caption = f"Without its last token {request.name} fills no block of {size}: there is nothing to look up."
        else:
            caption = f"No block of {request.name} is found: nothing in the cache begins with its first {size} tokens."
        self._record(f"pool.lookup({request.name}[:-1]) → {request.found}", caption, self._observe(hits=request.found))
        return request.found

    def touch(self, request: PlayedRequest) -> None:
        """Take a reference on each block that the look-up found."""
        self._enter(request)
        if not request.found:
            return self.show(f"Nothing of {request.name} was found, so there is nothing to touch.")
        before = self._observe()
        self.pool.touch(request.found)
        request.table, request.num_cached = list(request.found), len(request.found) * self.pool.block_size
        request.status = "running"
        after = self._observe(before, hits=request.found)
        left = [block for block in request.found if block in before.queue and block not in after.queue]
        caption = "One more reference to each hit; the free queue stays as it was."
        if left:
            caption = "One more reference to each hit. "
            caption += f"{_blocks(left, 'leaves', 'leave')} the free queue, safe from allocation."
        self._record(f"pool.touch({request.found})", caption, after)

    def allocate(self, request: PlayedRequest) -> bool:
        """Take blocks for the tokens that were not found. False: the pool has too few, and the request gets none."""
        self._enter(request)
        need = ceil(len(request.ids) / self.pool.block_size) - len(request.table)
        before = self._observe()
        taken = self.pool.allocate(need)
        call = f"pool.allocate({need}) → {taken}"
        if taken is None:
            request.status = "no room"
            after = self._observe(before)
            same = (after.blocks, after.queue) == (before.blocks, before.queue)
            rest = "changes nothing." if same else "yet its state changed!"
            needs = f"{request.name} needs {count(need, 'block')}, {len(before.queue)} free"
            self._record(call, f"{needs}: the pool gives none and {rest}", after)
            return False
        request.table, request.status = request.table + taken, "running"
        self._written |= {block: Block(words=None) for block in taken}
        after = self._observe(before, taken=taken)
        lost = [block for block in taken if after.blocks[block].lost is not None]
        kept = [block for block in taken if after.blocks[block].hash is not None]
        where = (
            "the head of the queue"
            if tuple(taken) == before.queue[:need]
            else "not the head of the queue, but the pool"
        )
        caption = f"{request.name} needs {count(need, 'block')}: {where} gives {_row(taken)}. "
        if lost:
            caption += f"{_blocks(lost, 'was', 'were')} cached: the hash is dropped, the content will be overwritten."
        if kept:
            caption += f"{_blocks(kept, 'keeps', 'keep')} a hash, though the content will be overwritten!"
        if not lost + kept:
            caption += "There was no hash in it, so the cache loses nothing."
        self._record(call, caption, after)
        return True

    def cache_blocks(self, request: PlayedRequest) -> None:
        """Compute the tokens that were not found, and register the blocks that are full."""
        self._enter(request)
        size, total = self.pool.block_size, len(request.ids)
        before = self._observe()
        call = f"pool.cache_blocks({request.name}, {request.table}, {total})"
        request.table = list(self.pool.cache_blocks(request.ids, request.table, total) or request.table)
        chain = [self.pool.block_hash[block] for block in self.pool.lookup(request.ids)]
        for place in range(request.num_cached // size, len(request.table)):
            block, parent = request.table[place], chain[place - 1] if 0 < place <= len(chain) else None
            words = tuple(request.words[place * size : (place + 1) * size])
            self._written[block] = Block(hash=self.pool.block_hash[block], parent=parent, words=words)
        after = self._observe(before)
        full, rest = request.table[: total // size], request.table[total // size :]
        new = [block for block in full if after.blocks[block].hash != before.blocks[block].hash]
        twins = [block for block in full if after.blocks[block].hash is None]
        caption = f"{request.name} computes {count(total - request.num_cached, 'token')}. "
        if new:
            caption += f"{_blocks(new, 'is', 'are')} full: hashed, the parent's hash included. "
        if twins:
            caption += f"{_blocks(twins, 'gets', 'get')} no hash: another block has registered it already. "
        if rest:
            caption += f"{_blocks(rest, 'is', 'are')} not full: no hash."
        self._record(call, caption, after)

    def free(self, request: PlayedRequest) -> None:
        """The request ends and gives back what it holds."""
        self._enter(request)
        table, request.table, request.found, request.num_cached = request.table, [], [], 0
        if not table:
            return self.show(f"{request.name} holds no block: there is nothing to free.")
        request.status = "ended"
        before = self._observe()
        self.pool.free(table)
        after = self._observe(before)
        joined = [block for block in reversed(table) if block in after.joined]
        kept = [block for block in joined if after.blocks[block].hash is not None]
        held = [block for block in table if after.blocks[block].refs]
        caption = f"{request.name} ends. "
        if joined and tuple(joined) == after.queue[-len(joined) :]:
            caption += f"The queue now ends with {_row(joined)}, the last block first. "
        elif joined:
            caption += f"The queue now reads {_row(after.queue)}: not with {_row(joined)} at the tail. "
        if kept:
            caption += f"{_blocks(kept, 'keeps', 'keep')} content and hash: free, and still in the cache. "
        if held:
            caption += f"{_blocks(held, 'is', 'are')} still in use by another request."
        self._record(f"pool.free({table})", caption, after)

    @property
    def state(self) -> PoolState:
        """The state of the last step."""
        return next(act.steps[-1].state for act in reversed(self.acts) if act.steps)

    def draw(self, state: PoolState, top: float) -> list[Mark]:
        """The marks that show `state`; requests that come later are listed, so that every step is equally high."""
        come = [PlayedRequest(request.name, request.words) for request in self.requests[len(state.requests) :]]
        return draw_pool(state, come, top)

    def _enter(self, request: PlayedRequest) -> None:
        if request not in self.requests:
            self.requests.append(request)

    def _observe(
        self, before: PoolState | None = None, hits: Sequence[int] = (), taken: Sequence[int] = ()
    ) -> PoolState:
        """The pool now, as values; compared with `before`, they say what is new."""
        queue, blocks = tuple(self.pool.free_queue), []
        for number in range(self.pool.num_blocks):
            key, known = self.pool.block_hash[number], self._written.get(number, Block())
            words, parent = (known.words, known.parent) if known.hash == key else (None, None)
            lost = before.blocks[number].hash if before and key is None else None
            mark = "hit" if number in hits else "taken" if number in taken else ""
            blocks.append(Block(self.pool.ref_cnt[number], number in queue, key, parent, words, mark, lost))
        joined = frozenset(queue).difference(before.queue if before else queue)
        requests = tuple(replace(request, found=[*request.found], table=[*request.table]) for request in self.requests)
        return PoolState(self.pool.block_size, tuple(blocks), queue, joined, requests)

    def _record(self, call: str, caption: str, state: PoolState) -> None:
        if not self.acts:
            self.act("What the pool did")
        self.acts[-1].steps.append(Step(call, caption.strip(), state))


def six_acts(pool: Pool, first: Tokens, second: Tokens, third: Tokens) -> PoolTheatre:
    """The life of a cached block. `first` runs and ends; `second`, best with the same beginning, reuses what it left;
    `third`, best a stranger of many blocks, needs the room; then `second` is looked up again."""
    a, b, c = PlayedRequest("A", first), PlayedRequest("B", second), PlayedRequest("C", third)
    stage, size = PoolTheatre(pool, a, b, c), pool.block_size

    stage.act("A finds no room in the pool")
    stage.show(f"Before: {len(pool.free_queue)} of {count(pool.num_blocks, 'block')} free, in the order of the queue.")
    if stage.allocate(a):
        stage.cache_blocks(a)
        hashed = sum(pool.block_hash[block] is not None for block in a.table)
        which = f"the {hashed} full ones get chained hashes"
        if hashed < 2:
            which = "the full one gets a hash" if hashed else "no block gets a hash"
        stage.retitle(f"A fills {count(len(a.table), 'block')}; {which}")

    stage.act("A ends: it holds nothing to give back")
    held = bool(a.table)
    stage.free(a)
    joined = [block for block in stage.state.queue if block in stage.state.joined]
    if held:
        cached = sum(pool.block_hash[block] is not None for block in joined)
        stage.retitle(f"A ends: {lower(_blocks(joined, 'joins', 'join'))} the free queue; {cached} stay cached")

    stage.act("B comes: nothing of it is found")
    if stage.lookup(b):
        stage.retitle(f"B comes: the first {len(b.found) * size} of its {count(len(b.ids), 'token')} are found")
    hits, unused = len(b.found), [block for block in b.found if block in pool.free_queue]

    stage.act("Nothing to touch" if not hits else "Touch adds a reference; the free queue stays as it was")
    if unused:
        stage.retitle(f"Touched, {lower(_blocks(unused, 'leaves', 'leave'))} the free queue")
    stage.touch(b)

    stage.act("C finds no room in the pool")
    if stage.allocate(b):
        stage.cache_blocks(b)
    stage.free(b)
    if fits := stage.allocate(c):
        lost = [number for number, block in enumerate(stage.state.blocks) if block.lost is not None]
        which = _blocks(lost, "loses its hash", "lose their hashes") if lost else "no hash is lost"
        stage.retitle(f"C takes {count(len(c.table), 'block')} of the queue: {lower(which)}")

    stage.act("")
    if fits:
        stage.cache_blocks(c)
    change = "still finds" if len(stage.lookup(b)) == hits else "now finds"
    stage.retitle(f"The same look-up {change} {count(len(b.found) * size, 'token')}; before, {hits * size}")
    return stage


def _row(blocks: Sequence[int]) -> str:
    return " ".join(map(str, blocks)) or "none"
