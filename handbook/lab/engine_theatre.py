"""The theatre of chapter 02: what an engine does with its requests and its blocks, one forward pass after the other.

`EngineTheatre(engine)` adds requests to the real engine, makes its steps, and records the state after each. Nothing
shown is invented: the batch is what the engine's own `_schedule` returned, captions and titles are computed from the
states. An engine that was built cell by cell is played as well, and one with a fault as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from handbook import request as requests
from handbook.lab.engine_picture import EngineState, Packed, SeenRequest, draw_engine, name_of, names
from handbook.lab.played import count, each, lower
from handbook.lab.scene import Mark
from handbook.lab.theatre import Step, Theatre

Engine = Any  # a `handbook.nano_engine.LLMEngine`, or whatever else has its queues, its pool and its `_schedule`
MOST_BLOCKS, MOST_REQUESTS, MOST_STEPS = 24, 8, 60


@dataclass(frozen=True)
class Pass:
    """What a forward pass computed of a request: tokens `start` to `stop` - 1 of `num_tokens`, stored in `table`."""

    start: int
    stop: int
    num_tokens: int
    decodes: bool
    again: int  # of these, tokens whose K and V were lost by a preemption
    table: tuple[int, ...]


class EngineTheatre(Theatre):
    """Plays a real engine: `add` a request, make a `step`, `abort` a request. `text` turns token ids into words."""

    def __init__(self, engine: Engine, text: Callable[[list[int]], str] = str) -> None:
        super().__init__()
        if engine.pool.num_blocks > MOST_BLOCKS:
            raise ValueError(
                f"The pool has {engine.pool.num_blocks} blocks; the stage holds {MOST_BLOCKS}: play a smaller pool."
            )
        self.engine, self.text = engine, text
        self.requests: list[Any] = []  # in order of arrival
        self.labels: list[str] = []
        self._ended: dict[Any, str] = {}
        self._reached: dict[Any, int] = {}  # tokens that were computed at some time, also those lost since
        self._came: list[Any] = []  # since the last step
        self._key: tuple[Any, ...] = ()

    def add(self, prompt: Sequence[int], params: requests.SamplingParams, label: str = "") -> None:
        """Hand the engine a request; it is seen from the next step on."""
        if len(self.requests) == MOST_REQUESTS:
            raise ValueError(f"The stage holds {MOST_REQUESTS} requests: play fewer.")
        self.engine.add_request(prompt, params)
        self.requests.append(self.engine.waiting[-1])
        self.labels.append(label or f"{len(prompt)} tokens")
        self._came.append(self.requests[-1])

    def abort(self, name: str) -> None:
        """Abort the request of this letter; it is seen from the next step on."""
        request = next((one for one in self.requests if self._name(one) == name), None)
        if request is None:
            raise ValueError(f"there is no request {name!r}; those that came: {self._names(self.requests) or 'none'}.")
        self.engine.abort(request.request_id)
        self._ended[request] = "aborted"

    def step(self) -> None:
        """One step of the engine, and its record."""
        engine, running, held = self.engine, list(self.engine.running), self._held()
        decoding = {request for request in self.requests if request.is_decoding}
        passed: dict[Any, Pass] = {}
        schedule = engine._schedule

        def watched() -> Any:
            result = schedule()
            for request, num_tokens in result[0].items():
                start, stop = request.num_computed, request.num_computed + num_tokens
                again = max(0, min(stop, self._reached.get(request, 0)) - start)
                table = tuple(request.block_table)
                passed[request] = Pass(start, stop, len(request.token_ids), request in decoding, again, table)
            return result

        engine._schedule = watched
        try:
            finished = engine.step()
        finally:
            del engine._schedule
        self._ended |= dict.fromkeys(finished, "finished")
        victims = [request for request in running if request in engine.waiting]
        self._reached |= {r: max(one.stop, self._reached.get(r, 0)) for r, one in passed.items()}
        in_pass, after = {block for one in passed.values() for block in one.table}, self._held()
        state = EngineState(
            engine.pool.block_size,
            engine.pool.num_blocks,
            engine.max_num_batched_tokens,
            tuple(Packed(self.requests.index(r), one.stop - one.start, one.decodes) for r, one in passed.items()),
            tuple(self._seen(request, passed.get(request)) for request in self.requests),
            frozenset(in_pass - held),
            frozenset((held | in_pass) - after),
        )
        key, title = self._title(passed, victims, finished)
        if key != self._key:
            self._key = key
            self.act(title)
        total, prefill, decode = (engine.step_log[-1][f"num_{what}"] for what in ("tokens", "prefill", "decode"))
        call = f"engine.step() → {count(total, 'token')}: {prefill} prefill, {decode} decode"
        self.acts[-1].steps.append(Step(call, self._caption(state, passed, victims, finished), state))
        self._came = []

    def draw(self, state: EngineState, top: float) -> list[Mark]:
        """The marks that show `state`; the row of the batch has the same scale in every step."""
        return draw_engine(state, self._largest, top)

    def scenes(self) -> tuple[float, list[list[Mark]]]:
        """As every theatre's, after the scale that all steps share was chosen."""
        states = [step.state for act in self.acts for step in act.steps]
        self._largest = max((sum(part.num_tokens for part in state.batch) for state in states), default=0)
        return super().scenes()

    # ---- what is seen, and how it is told

    def _held(self) -> set[int]:
        return {block for block, count in enumerate(self.engine.pool.ref_cnt) if count}

    def _name(self, request: Any) -> str:
        return name_of(self.requests.index(request))

    def _names(self, requests: Sequence[Any]) -> str:
        return names([self.requests.index(request) for request in requests])

    def _seen(self, request: Any, computed: Pass | None) -> SeenRequest:
        status = self._ended.get(request) or ("preempted, waiting" if request in self._reached else "waiting")
        if request in self.engine.running:
            status = "running: " + ("decode" if request.is_decoding else "prefill")
        start = stop = request.num_computed
        if computed:
            start, stop = computed.start, computed.stop
        place = self.requests.index(request)
        return SeenRequest(place, self.labels[place], status, len(request.token_ids), request.num_prompt, start, stop,
                           tuple(request.block_table), self.text(request.output_token_ids))  # fmt: skip

    def _caption(self, state: EngineState, passed: dict[Any, Pass], victims: list[Any], finished: list[Any]) -> str:
        said = [f"{self._names(self._came)} came."] if self._came else []
        for victim in victims:
            said.append(f"{self._name(victim)} gives back all of its blocks; its output so far is kept.")
        for request, one in passed.items():
            if not one.decodes:
                part = f"tokens {one.start} to {one.stop - 1}" if one.stop - one.start > 1 else f"token {one.start}"
                again = f", {one.again} of them once more" if one.again else ""
                said.append(f"{self._name(request)} computes {part} of its {one.num_tokens}{again}.")
        if decodes := [request for request, one in passed.items() if one.decodes]:
            said.append(f"{self._names(decodes)} {'decodes' if len(decodes) == 1 else 'decode'}.")
        for request in finished:
            gone = [block for block in passed[request].table if block in state.freed] if request in passed else []
            said.append(f"{self._name(request)} ends: {lower(each('block', gone, 'is', 'are'))} free.")
        return " ".join([*said, self._why_waiting(state, victims)]).strip()

    def _why_waiting(self, state: EngineState, victims: list[Any]) -> str:
        waiting = [request for request in self.engine.waiting if request not in victims]
        if not waiting:
            return ""
        who = f"{self._names(waiting)} {'waits' if len(waiting) == 1 else 'wait'}"
        if victims:
            return f"{who}: a step that preempts admits nobody."
        if sum(packed.num_tokens for packed in state.batch) == state.budget:
            return f"{who}: the budget is used up."
        if len(state.batch) == self.engine.max_num_seqs:
            return f"{who}: {count(self.engine.max_num_seqs, 'request')} may run at once."
        return f"{who}: too few blocks were free."

    def _title(self, passed: dict[Any, Pass], victims: list[Any], finished: list[Any]) -> tuple[tuple[Any, ...], str]:
        """What the step shows: a key, by which steps make one act, and a title that holds for all of them."""
        prefills = [request for request, one in passed.items() if not one.decodes]
        back = [request for request in prefills if passed[request].again]
        if victims:
            last = "the youngest, is" if len(victims) == 1 else "the youngest, are"
            return ("victims", *victims), f"No block is free: {self._names(victims)}, {last} preempted"
        if back:
            return ("back", *back), f"{self._names(back)} again: what was stored is gone and computed once more"
        if finished:
            ends = "ends: its blocks are" if len(finished) == 1 else "end: their blocks are"
            return ("ends", *finished), f"{self._names(finished)} {ends} free at once"
        if prefills and len(prefills) < len(passed):
            return ("mixed", *prefills), f"One forward pass: {self._names(prefills)} in prefill beside decodes"
        if prefills:
            budget = count(self.engine.max_num_batched_tokens, "token")
            return ("prefill", *prefills), f"{self._names(prefills)} in prefill: at most {budget} a step"
        if passed:
            return ("decode",), "Decode: one token a step for each running request"
        return ("idle",), "Nothing to do: a step without requests computes nothing"


def play(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    labels: Sequence[str] = (),
    *,
    every: int = 1,
    max_tokens: int = 16,
    text: Callable[[list[int]], str] = str,
) -> EngineTheatre:
    """The prompts come one by one, a new one `every` so many steps, and the engine steps until all have ended, or until
    the stage is full: it holds `MOST_STEPS`."""
    if every < 0:
        raise ValueError(f"every must be at least 0 steps; got {every}.")
    stage, coming = EngineTheatre(engine, text), list(enumerate(prompts))
    for number in range(MOST_STEPS):
        while coming and number >= coming[0][0] * every:
            place, prompt = coming.pop(0)
            params = requests.SamplingParams(
                max_tokens=max_tokens
            )  # looked up now: it may have been built cell by cell
            stage.add(prompt, params, labels[place] if place < len(labels) else "")
        stage.step()
        if not (coming or engine.waiting or engine.running):
            break
    return stage
