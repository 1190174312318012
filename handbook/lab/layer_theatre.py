"""The theatre of chapter 01: what one layer of a real model does to a prompt, and then to each new token.

Every shape shown is that of a tensor which was there: hooks on the modules, and a cache that looks on, note them while
the model decodes greedily. On the left is the way of the tokens through the layer. On the right is what the layer
keeps, K and V with a column for each token, and below it which columns each new token reads.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from handbook.attention import ContiguousKVCache
from handbook.lab.played import count
from handbook.lab.scene import FAINT, INK, Line, Mark, Rect, Text
from handbook.lab.theatre import Step, Theatre
from handbook.mini_llm import Transformer

ACTIVE, KEPT, NEW, WAITING = "#ffe08a", "#9cc3e6", "#a63c00", "#f3f4f1"
LEFT, FLOW, ROW, BOX = 44, 420, 43, 33  # px: where the flow begins, how wide it is, how high a row and a box are
PANEL, STRIP = 500, 236  # px: where the right panel begins, and how wide it is

# The boxes from the top down, and in which step of an act each row comes to life.
ROWS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (0, ("embed_tokens",)),
    (1, ("input_layernorm",)),
    (1, ("q_proj", "k_proj", "v_proj")),
    (2, ("q_norm, turned", "k_norm, turned", "v")),
    (3, ("attend",)),
    (4, ("o_proj, + what was there",)),
    (5, ("post_attention_layernorm",)),
    (5, ("gate_proj", "up_proj")),
    (5, ("down_proj, + what was there",)),
    (6, ("logits of the last token",)),
)


@dataclass(frozen=True)
class Flow:
    """One pass as far as it has come: the shape in each box, the step, and the tokens computed now and kept before."""

    shapes: dict[str, str]
    step: int
    num_new: int
    num_before: int


class LayerTheatre(Theatre):
    """Plays `input_ids` `[1, T]` through a model, then `num_new_tokens - 1` of the tokens that it says, one at a time.

    `layer` is the one that is shown. A pass is an act.
    """

    def __init__(self, model: Transformer, input_ids: Tensor, num_new_tokens: int = 3, layer: int = 0) -> None:
        super().__init__()
        kv_cache, num_before = ContiguousKVCache(), 0
        for _ in range(num_new_tokens):
            shapes, logits = observe(model, input_ids, num_before, kv_cache, layer)
            self._play(model, shapes, input_ids.shape[1], num_before)
            num_before += input_ids.shape[1]
            input_ids = logits.argmax(-1, keepdim=True)

    def _play(self, model: Transformer, shapes: dict[str, str], num_new: int, num_before: int) -> None:
        new, total, config = count(num_new, "token"), num_before + num_new, model.config
        if num_before == 0:
            self.act(f"Prefill: {new} at once, whose K and V are kept")
        else:
            self.act(f"Decode: {new}, which reads the K and V of {total}")
        captions = (
            f"{new} to compute. An id picks a row of the embedding matrix: {config.hidden_size} numbers a token.",
            f"Behind a norm, three matrices make q, k, v: {config.num_attention_heads} heads of q, "
            f"{config.num_key_value_heads} of k and of v.",
            "Each head's q and k are normed, then turned by the token's position. v stays as it is.",
            f"The new K and V are kept beside the {num_before} before; each new token reads those up to its own.",
            "The heads side by side again, through a matrix, added to what was there before the norm.",
            "SwiGLU, behind its norm, looks at each token by itself: wide, gated, narrow again, and added.",
            f"After {len(model.layers)} such layers and a norm, the last token's row says what comes next.",
        )
        for step, caption in enumerate(captions):
            self.acts[-1].steps.append(Step("", caption, Flow(shapes, step, num_new, num_before)))

    def draw(self, state: Flow, top: float) -> list[Mark]:
        return [*_flow(state, top), *_kept(state, top)]


def observe(
    model: Transformer, input_ids: Tensor, num_before: int, kv_cache: ContiguousKVCache, layer: int
) -> tuple[dict[str, str], Tensor]:
    """Run one pass behind `num_before` tokens; the shape in each box of `ROWS`, and the last token's logits."""
    shapes: dict[str, str] = {}
    block = model.layers[layer]
    watched: dict[str, nn.Module] = {"embed_tokens": model.embed_tokens}
    for name in ("input_layernorm", "post_attention_layernorm"):
        watched[name] = block.get_submodule(name)
    for name in ("q_proj", "k_proj", "v_proj"):
        watched[name] = block.get_submodule(f"self_attn.{name}")
    for name in ("gate_proj", "up_proj"):
        watched[name] = block.get_submodule(f"mlp.{name}")
    watched["o_proj, + what was there"] = block.get_submodule("self_attn.o_proj")
    watched["down_proj, + what was there"] = block.get_submodule("mlp.down_proj")

    class LookingOn:
        def attend(self, index: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            out = kv_cache.attend(index, q, k, v)
            if index == layer:
                names = ("q_norm, turned", "k_norm, turned", "v", "attend")
                shapes.update(zip(names, map(_shape, (q, k, v, out)), strict=True))
            return out

    hooks = [
        module.register_forward_hook(lambda _, x, out, name=name: shapes.update({name: _shape(out)}))
        for name, module in watched.items()
    ]
    try:
        with torch.inference_mode():
            positions = torch.arange(num_before, num_before + input_ids.shape[1])[None]
            logits = model.logits(model.hidden_states(input_ids, positions, LookingOn())[:, -1])
    finally:
        for hook in hooks:
            hook.remove()
    shapes["logits of the last token"] = _shape(logits)
    return shapes, logits


def _shape(tensor: Tensor) -> str:
    return str(list(tensor.shape))


def _flow(state: Flow, top: float) -> list[Mark]:
    """The boxes of the layer, with the arrows between them and the two ways around."""
    marks: list[Mark] = []
    for row, (step, names) in enumerate(ROWS):
        y, width = top + row * ROW, (FLOW - 8 * (len(names) - 1)) / len(names)
        if row:
            marks.append(Line(((LEFT + FLOW / 2, y - ROW + BOX), (LEFT + FLOW / 2, y - 1))))
        for place, name in enumerate(names):
            x, fill = LEFT + place * (width + 8), ACTIVE if step == state.step else WAITING
            reached = step <= state.step
            marks.append(Rect(x, y, width, BOX, fill, INK if reached else "#c9cdc6", 1.6 if step == state.step else 1))
            shape = state.shapes[name] if reached else ""
            if len(names) == 1:
                marks.append(Text(x + 10, y + 21, name, 13, fill=INK if reached else FAINT))
                marks.append(Text(x + width - 10, y + 21, shape, 12, "end", mono=True, name=f"shape {name}"))
            else:
                marks.append(Text(x + width / 2, y + 14, name, 12, "middle", fill=INK if reached else FAINT))
                marks.append(Text(x + width / 2, y + 28, shape, 11, "middle", mono=True, name=f"shape {name}"))
    for first, last in ((0, 5), (5, 8)):  # what goes around attention, and around SwiGLU
        start, end, x = top + first * ROW + BOX * 0.75, top + last * ROW + BOX * 0.25, LEFT - 16
        marks.append(Line(((LEFT, start), (x, start), (x, end), (LEFT - 1, end))))
    return marks


def _kept(state: Flow, top: float) -> list[Mark]:
    """K and V of the layer, a column each token, and which columns each new token reads."""
    kept = state.num_before + (state.num_new if state.step >= 3 else 0)
    total = state.num_before + state.num_new
    cell = min(14.0, STRIP / (total + 2))
    marks: list[Mark] = [Text(PANEL, top + 13, "Kept by this layer:", 13, bold=True)]
    for place, name in enumerate("KV"):
        y = top + 26 + place * 34
        marks.append(Text(PANEL - 8, y + 19, name, 13, "end", mono=True))
        for column in range(kept):
            fill = NEW if column >= state.num_before else KEPT
            marks.append(Rect(PANEL + column * cell, y, cell - 1.5, 26, fill, name=f"{name} {column}"))
    marks.append(Text(PANEL, top + 112, f"{state.num_before} columns before, {kept} now", 12, fill=FAINT))
    if state.step >= 3:
        marks.append(Text(PANEL, top + 152, "Read by each new token:", 13, bold=True))
        height = min(12.0, 200 / state.num_new)
        for row in range(state.num_new):
            width = (state.num_before + row + 1) * cell - 1.5
            y = top + 166 + row * height
            marks.append(Rect(PANEL, y, width, height - min(1.5, height / 3), KEPT, name="reads"))
        pairs = sum(state.num_before + row + 1 for row in range(state.num_new))
        y = top + 166 + state.num_new * height + 18
        marks.append(Text(PANEL, y, f"{count(pairs, 'pair')} of q and k in each head", 12, fill=FAINT))
    return marks
