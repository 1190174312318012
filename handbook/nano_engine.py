"""Continuous batching over paged KV memory: requests come and go at every step, and none waits for a batch to end.

A step packs one token of every decoding request and as much prefill as the token budget still holds into ONE
forward pass. A long prompt is prefilled in chunks over several steps. When blocks run out, the youngest request
is preempted: it gives its blocks back and is computed again later, its output so far kept.

Invariants: without a policy the running requests are older than the waiting ones, oldest first in both; with any, the
one admitted first always gets on. K and V of a request's first `num_computed` tokens lie in its block table. A drained
engine holds no block.
Source: Orca (OSDI 2022) for scheduling by step; in vLLM 0.33.0 `Scheduler.schedule` and `KVCacheManager`.
"""

# Woven from notebooks/zh/02_paged_engine.ipynb by make build: edit it there.

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Sequence

import torch

from handbook.mini_llm import Transformer
from handbook.paged import BlockPool, CachingBlockPool, PagedBatch, PagedKVCache, Span
from handbook.request import Request, SamplingParams, sample
from handbook.waiting import Policy, Waiting, ordered


class LLMEngine:
    """Runs requests on a model. With a pool whose `enable_caching` is true it reuses the K and V of cached prefixes."""

    def __init__(
        self,
        model: Transformer,
        eos_token_id: int | None = None,
        pool: BlockPool | None = None,
        *,
        num_blocks: int = 256,
        block_size: int = 16,
        max_num_seqs: int = 64,
        max_num_batched_tokens: int = 2048,
        policy: Policy | None = None,
    ) -> None:
        for name, value in (("max_num_seqs", max_num_seqs), ("max_num_batched_tokens", max_num_batched_tokens)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1; got {value}.")
        self.model, self.eos_token_id = model, eos_token_id
        self.pool = BlockPool(num_blocks, block_size) if pool is None else pool
        self._cache = self.pool if isinstance(self.pool, CachingBlockPool) else None
        if self._cache is not None and self._cache.has_engine:
            raise ValueError("this pool serves another engine, where the K and V of its blocks are; make a new pool.")
        if self._cache is not None and (found := self._cache.num_cached_blocks):
            raise ValueError(f"{found} registered blocks of this pool were computed by no engine; make a new pool.")
        dtype = model.embed_tokens.weight.dtype
        self.kv_cache = PagedKVCache(model.config, self.pool.num_blocks, self.pool.block_size, dtype)
        self.pool.has_engine = True
        self.max_num_seqs, self.max_num_batched_tokens = max_num_seqs, max_num_batched_tokens
        self.policy = policy  # who is admitted next; None is first come, first served
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.step_log: list[dict[str, int]] = []
        self._next_id = self._num_computed = 0
        self._undelivered: list[Request] = []  # finished, and not yet returned by a `step`

    # ---- requests come and go

    def add_request(self, prompt: Sequence[int], params: SamplingParams) -> int:
        """Queue a prompt; its id. A prompt that could never fit into the pool is a ValueError."""
        token_ids = self._check(prompt, params)
        request_id, self._next_id = self._next_id, self._next_id + 1
        came, generator = self._num_computed, params.generator()
        self.waiting.append(Request(request_id, token_ids, len(token_ids), params, generator, came))
        return request_id

    def _check(self, prompt: Sequence[int], params: SamplingParams) -> list[int]:
        if not isinstance(params, SamplingParams):
            raise TypeError(f"params must be SamplingParams; got {params!r}.")
        token_ids = [operator.index(token) for token in prompt]
        if not token_ids:
            raise ValueError("the prompt is empty: there is no last token whose hidden state yields the first new one.")
        vocab_size = self.model.config.vocab_size
        for token in token_ids:
            if not 0 <= token < vocab_size:
                raise ValueError(f"token {token} is outside the vocabulary of 0 to {vocab_size - 1}.")
        most = len(token_ids) + params.max_tokens - 1  # the last new token is never computed
        if self._num_blocks_for(most) > self.pool.num_blocks:
            raise ValueError(
                f"a prompt of {len(token_ids)} tokens with max_tokens={params.max_tokens} needs "
                f"{self._num_blocks_for(most)} blocks of {self.pool.block_size}; the pool has {self.pool.num_blocks}."
            )
        return token_ids

    def _num_blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.pool.block_size)

    # ---- blocks are given and taken back

    def _cached_prefix(self, request: Request) -> list[int]:
        """The blocks of the longest cached prefix. The last token is left out: its hidden state is still needed."""
        if self._cache is None:
            return []
        self._cache.extend_hashes(request.block_hashes, request.token_ids)
        return self._cache.lookup(request.token_ids[:-1], request.block_hashes)

    def _admit(self, request: Request, budget: int) -> int:
        """Give a waiting request its cached prefix and blocks for a first chunk; the chunk's tokens, 0 if none fits."""
        cached = self._cached_prefix(request)
        num_cached = len(cached) * self.pool.block_size
        num_tokens = min(len(request.token_ids) - num_cached, budget)
        missing = self._num_blocks_for(num_cached + num_tokens) - len(cached)
        num_idle = sum(self.pool.ref_cnt[block] == 0 for block in cached)  # free, but about to be taken as hits
        if missing > self.pool.num_free - num_idle:
            return 0
        if self._cache is not None:
            self._cache.touch(cached)
        request.block_table = cached + (self.pool.allocate(missing) or [])
        request.num_computed = num_cached
        if request.num_cached is None:
            request.num_cached = num_cached
            if self._cache is not None:
                self._cache.record(request.num_prompt - 1, num_cached)
        return num_tokens

    def _grow(self, request: Request, num_tokens: int) -> bool:
        """Give a running request blocks for num_tokens more, preempting the youngest; False if that was itself."""
        missing = self._num_blocks_for(request.num_computed + num_tokens) - len(request.block_table)
        while (blocks := self.pool.allocate(missing)) is None:
            if len(self.running) == 1:
                raise RuntimeError(self._blocked_by_others(request))
            youngest = self.running.pop()
            self._release(youngest)
            self.waiting.appendleft(youngest)
            if youngest is request:
                return False
        request.block_table.extend(blocks)
        return True

    def _release(self, request: Request) -> None:
        self.pool.free(request.block_table)
        request.block_table, request.num_computed = [], 0

    def _blocked_by_others(self, request: Request) -> str:
        return (
            f"request {request.request_id} cannot go on with the {self.pool.num_free} of {self.pool.num_blocks} blocks "
            "that are free: the others are held outside this engine; free those blocks first."
        )

    # ---- one step: schedule, compute, update

    def _schedule(self) -> tuple[dict[Request, int], int]:
        """Tokens to compute for each request in this step, and the tokens that admitted requests found cached."""
        scheduled: dict[Request, int] = {}
        budget, num_cached, num_running = self.max_num_batched_tokens, 0, len(self.running)
        for request in self.running:  # oldest first: decodes, then one prefill at most; preemption takes from the end
            num_tokens = min(request.num_uncomputed, budget)
            if num_tokens and self._grow(request, num_tokens):
                scheduled[request] = num_tokens
                budget -= num_tokens
        was_preempted = len(self.running) < num_running
        may_admit = budget and len(self.running) < self.max_num_seqs and not was_preempted
        if self.policy is not None and self.waiting and may_admit:
            self.waiting = deque(ordered(self._views(), self.policy))
        while self.waiting and budget and len(self.running) < self.max_num_seqs and not was_preempted:
            request = self.waiting[0]
            num_tokens = self._admit(request, budget)
            if num_tokens == 0:
                break
            num_cached += request.num_computed
            scheduled[request] = num_tokens
            budget -= num_tokens
            self.running.append(self.waiting.popleft())
        if self.waiting and not self.running and not was_preempted:
            raise RuntimeError(self._blocked_by_others(self.waiting[0]))
        return scheduled, num_cached

    def _views(self) -> list[Waiting]:
        by_arrival, now = sorted(self.waiting, key=lambda r: r.request_id), self._num_computed
        return [
            Waiting(r, r.token_ids, len(r.token_ids), r.params.max_tokens, now - r.came, self._num_cached)
            for r in by_arrival
        ]

    def _num_cached(self, request: Request) -> int:
        return len(self._cached_prefix(request)) * self.pool.block_size

    def _compute(self, scheduled: dict[Request, int]) -> dict[Request, int]:
        """The forward pass; a new token for each request whose last token was computed in it."""
        spans, input_ids, last = [], [], []
        for request, num_tokens in scheduled.items():
            start, stop = request.num_computed, request.num_computed + num_tokens
            spans.append(Span(request.block_table, start, stop))
            input_ids += request.token_ids[start:stop]
            last.append(len(input_ids) - 1)
        batch = PagedBatch(self.kv_cache, spans)
        hidden = self.model.hidden_states(torch.tensor([input_ids]), batch.positions, batch)  # [1, T, hidden]
        logits = self.model.logits(hidden[0, last])  # [requests, vocab]
        return {
            request: sample(row, request.params, request.generator)
            for (request, num_tokens), row in zip(scheduled.items(), logits, strict=True)
            if num_tokens == request.num_uncomputed
        }

    @torch.inference_mode()
    def step(self) -> list[Request]:
        """Schedule, run one forward pass, and return the requests that finished. After an interrupt: call it again."""
        scheduled, num_cached = self._schedule()
        next_tokens = self._compute(scheduled) if scheduled else {}
        decodes = sum(request.is_decoding for request in scheduled)
        total = sum(scheduled.values())
        self._num_computed += total
        self.step_log.append(
            {"num_tokens": total, "num_prefill": total - decodes, "num_decode": decodes, "num_cached": num_cached}
        )
        for request, num_tokens in scheduled.items():
            self._register_full_blocks(request, request.num_computed + num_tokens)
            request.num_computed += num_tokens
            if request not in next_tokens:
                continue
            request.token_ids.append(next_tokens[request])
            if request.is_finished(self.eos_token_id):
                self.running.remove(request)
                self._release(request)
                self._undelivered.append(request)
        finished, self._undelivered = self._undelivered, []
        return finished

    def _register_full_blocks(self, request: Request, num_computed: int) -> None:
        if self._cache is not None:
            self._cache.extend_hashes(request.block_hashes, request.token_ids)
            request.block_table = self._cache.cache_blocks(
                request.token_ids, request.block_table, num_computed, request.block_hashes
            )

    # ---- for callers

    def abort(self, request_id: int) -> None:
        """Drop a waiting or running request and free its blocks."""
        for queue in (self.waiting, self.running):
            for request in queue:
                if request.request_id == request_id:
                    queue.remove(request)
                    self._release(request)
                    return
        raise ValueError(f"request {request_id!r} is neither waiting nor running: it is finished, aborted or unknown.")

    def generate(
        self, prompts: Sequence[Sequence[int]], params: SamplingParams | Sequence[SamplingParams]
    ) -> list[list[int]]:
        """Run all prompts to their end; the new tokens of each, in the order given. `params`: one, or one a prompt."""
        each = [params] * len(prompts) if isinstance(params, SamplingParams) else list(params)
        if len(each) != len(prompts):
            raise ValueError(f"{len(prompts)} prompts but {len(each)} sampling params: give one, or one a prompt.")
        checked = [self._check(prompt, p) for prompt, p in zip(prompts, each, strict=True)]
        pending: set[int] = set()
        outputs: dict[int, list[int]] = {}
        try:
            for prompt, p in zip(checked, each, strict=True):
                pending.add(self.add_request(prompt, p))
            while pending:
                for request in self.step():
                    if request.request_id in pending:
                        pending.remove(request.request_id)
                        outputs[request.request_id] = request.output_token_ids
                    else:
                        self._undelivered.append(request)
        finally:  # an interrupted cell leaves nothing of its own behind
            for request in [*self.waiting, *self.running]:
                if request.request_id in pending:
                    self.abort(request.request_id)
            self._undelivered = [r for r in self._undelivered if r.request_id not in pending]
        return [outputs[request_id] for request_id in sorted(outputs)]
