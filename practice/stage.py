"""An accepted solution of problem 131 in the theatre of chapter 03: the pool's state, and the solution's answers.

A solution shows no state of its own, so `handbook.prefix_cache` is played beside it with the same calls, which it
answers alike wherever both have rules. A pool knows no adapters: a token of one adapter is another token to it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from string import ascii_uppercase
from typing import Any

from handbook.lab.draw import PoolTheatre
from handbook.lab.played import PlayedRequest
from handbook.prefix_cache import PrefixCachingBlockPool
from practice.grader.contract import DEFAULT_SEED, Case
from practice.grader.play import script
from practice.grader.problems import load


def play(solution: Callable[..., Any], case: Case | None = None) -> PoolTheatre:
    """Play a case of problem 131, by default the statement's first example, with a learner's class: an act for each
    call, whose title says what the class answered and whether the pool agrees."""
    problem = load(131)
    case = case or problem.groups(DEFAULT_SEED)[0].cases[0]
    pool, cache = PrefixCachingBlockPool(**case.parameters), solution(**case.parameters)
    stage, requests = PoolTheatre(pool), dict[int, PlayedRequest]()
    numbers = dict[tuple[int | None, int], int]()  # of adapters and tokens, in the order of their appearance
    for move, _ in script(case, problem.rules):
        answer = getattr(cache, move.step.method)(*deepcopy(move.args), **move.kwargs)  # it may change what it gets
        if move.step.method == "allocate":
            tokens, lora_id = _adapted(*move.args, **move.kwargs)
            request = requests[move.step.id] = PlayedRequest(ascii_uppercase[len(requests) % 26], tokens)
            request.ids = [numbers.setdefault((lora_id, token), len(numbers)) for token in tokens]
            adapter = "" if lora_id is None else f", LoRA {lora_id},"
            stage.act(f"{request.name}{adapter} allocates: the class answers {answer}")
            expected = _allocate(stage, request)
            stage.retitle(f"{stage.acts[-1].title}, {_agreement(answer, expected)}")
        else:
            (freed,) = move.step.uses()
            stage.act(f"{requests[freed].name} is freed")
            stage.free(requests[freed])
    return stage


def _adapted(tokens: list[int], lora_id: int | None = None) -> tuple[list[int], int | None]:
    """What a call of `allocate` gives, by name or by place."""
    return tokens, lora_id


def _allocate(stage: PoolTheatre, request: PlayedRequest) -> tuple[list[int], int] | None:
    """What problem 131 asks of one call, on the stage's pool: look up, take the hits, take new blocks, register."""
    pool = stage.pool
    hits = stage.lookup(request)
    num_new = -(-len(request.ids) // pool.block_size) - len(hits)
    if num_new > pool.num_free - sum(pool.ref_cnt[block] == 0 for block in hits):
        stage.show(f"{request.name} needs {num_new} new blocks, and too few are free: nothing changes.")
        return None
    if hits:
        stage.touch(request)
    if num_new:
        stage.allocate(request)
    stage.cache_blocks(request)
    return request.table, request.num_cached


def _agreement(answer: Any, expected: Any) -> str:
    return "as the pool does" if answer == expected else f"but the pool {expected}"
