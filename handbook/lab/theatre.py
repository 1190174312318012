"""A theatre: records what a data structure did, step by step, and plays it in a notebook.

A subclass draws its structure's state as marks (`handbook.lab.draw` that of a block pool, `handbook.lab.tree_theatre`
that of a radix tree); titles, captions and playing are the same for all. The player is one piece of HTML: a picture,
for places that run no scripts, and a script that replaces it by the player. It loads nothing, has no ids (a page may
hold it twice), and is the same in every run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import textwrap
from dataclasses import dataclass, field
from html import escape
from math import ceil
from typing import Any

from IPython.display import Image

from handbook.lab.scene import MARGIN, PAPER, WIDTH, Mark, Rect, Text, contact_sheet, places, svg


@dataclass(frozen=True)
class Step:
    """What is shown at once: the call that was made, what it did in a sentence, and the state after it."""

    call: str
    caption: str
    state: Any


@dataclass
class Act:
    """A title that says the finding, and the steps that show it."""

    title: str
    steps: list[Step] = field(default_factory=list)


def _path(points: Any) -> str:
    return "M" + "L".join(f"{x:.4g} {y:.4g}" for x, y in points)


def _header(title: str, step: Step) -> list[Mark]:
    """Title, call and caption, each wrapped to the width of the picture."""
    marks: list[Mark] = []
    y = 12.0
    for line in wrap(title, 18 * 0.6):
        marks.append(Text(MARGIN, y := y + 24, line, 18, bold=True, name="title"))
    y += 4
    for line in wrap(step.call, 13 * 0.602):
        marks.append(Text(MARGIN, y := y + 19, line, 13, mono=True, fill="#0b4f8a", name="call"))
    y += 4
    for line in wrap(step.caption, 14 * 0.55):
        marks.append(Text(MARGIN, y := y + 20, line, 14, name="caption"))
    return marks


def wrap(string: str, place: float) -> list[str]:
    """Lines of `string` that fit into the picture when a character takes `place` px on average."""
    widest = max(map(places, string), default=1)
    return textwrap.wrap(string, int((WIDTH - 2 * MARGIN) / place / widest))


class Theatre:
    """Acts of steps, shown as a player (as the value of a cell) or as `contact_sheet()`. A subclass gives `draw`."""

    def __init__(self) -> None:
        self.acts: list[Act] = []

    def act(self, title: str) -> None:
        """Begin an act: the steps that follow belong to it."""
        self.acts.append(Act(title))

    def retitle(self, title: str) -> None:
        """Name the act anew, when only its steps could tell what the finding is."""
        self.acts[-1].title = title

    def draw(self, state: Any, top: float) -> list[Mark]:
        """The marks that show `state`, from y = `top` downwards, in a picture of `WIDTH` px."""
        raise NotImplementedError(f"{type(self).__name__} has no draw(state, top) yet.")

    def scenes(self) -> tuple[float, list[list[Mark]]]:
        """The height that all steps share, and the marks of each step."""
        shows = [(number, act.title, step) for number, act in enumerate(self.acts, 1) for step in act.steps]
        headers = [_header(f"{number}. {title}", step) for number, title, step in shows]
        top = max((header[-1].bottom for header in headers), default=0) + 14
        scenes = [header + self.draw(step.state, top) for header, (_, _, step) in zip(headers, shows, strict=True)]
        height = ceil(max((mark.bottom for scene in scenes for mark in scene), default=0) + 14)
        paper = Rect(0.5, 0.5, WIDTH - 1, height - 1, PAPER, "#d5d8d2")
        return height, [[paper, *scene] for scene in scenes]

    def svg(self, number: int) -> str:
        """Step `number` (from 0, over all acts) as a picture of its own."""
        height, scenes = self.scenes()
        return svg(height, "".join(mark.svg() for mark in scenes[number]))

    def contact_sheet(self) -> Image:
        """The last step of each act, two in a row, as one PNG: for places that run no scripts."""
        height, scenes = self.scenes()
        last = [sum(len(act.steps) for act in self.acts[: n + 1]) - 1 for n, act in enumerate(self.acts) if act.steps]
        if not last:
            raise ValueError("This theatre has recorded no step: play something before asking for its contact sheet.")
        return Image(data=contact_sheet(height, [scenes[n] for n in last]), format="png", alt=str(self))

    def __str__(self) -> str:
        count = sum(len(act.steps) for act in self.acts)
        lines = [f"{number}. {act.title}" for number, act in enumerate(self.acts, 1)]
        return "\n".join([f"{type(self).__name__}: {len(self.acts)} acts, {count} steps", *lines])

    def html(self) -> str:
        """The player. Without a script it shows the last step of the first act."""
        height, scenes = self.scenes()
        parts: dict[str, int] = {}  # marks that several steps share are stored once
        frames = [[parts.setdefault(mark.svg(), len(parts)) for mark in scene] for scene in scenes]
        acts = [number for number, act in enumerate(self.acts) for _ in act.steps]
        says = [f"{act.title}. {step.caption}" for act in self.acts for step in act.steps]
        show = {"svg": svg(height, ""), "parts": list(parts), "frames": frames, "acts": acts, "says": says}
        data = json.dumps(show, ensure_ascii=False, separators=(",", ":"))
        data = data.replace("</", r"<\/").replace("<!", r"\u003c!")  # or they could end the script
        key = hashlib.sha256(data.encode()).hexdigest()[:12]
        poster = base64.b64encode(self.svg(acts.count(acts[0]) - 1).encode()).decode()
        return (
            f'<div class="handbook-theatre" data-show="{key}" style="max-width:900px">'
            f'<img alt="{escape(str(self))}" src="data:image/svg+xml;base64,{poster}" style="width:100%">'
            f"<script>{_SCRIPT.replace('KEY', key).replace('SHOW', data)}</script></div>"
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        bundle = {"text/plain": str(self)}
        return bundle | {"text/html": self.html()} if any(act.steps for act in self.acts) else bundle


# KEY ties the script to its own show, wherever a front end puts the script; a second copy of the show plays by itself.
_SCRIPT = r"""
for (const root of document.querySelectorAll('.handbook-theatre[data-show="KEY"]:not([data-ready])')) {
  const show = SHOW, last = show.frames.length - 1;
  let now = 0, timer = null;
  const make = (kind, css, label = "") => {
    const it = document.createElement(kind);
    it.style.cssText = css; it.textContent = label;
    return it;
  };
  const picture = make("div", "");
  const bar = make("div", "display:flex;flex-wrap:wrap;gap:5px;align-items:center;padding:6px;font:14px sans-serif");
  const button = (label, tip, go) => {
    const it = make("button", "font:14px sans-serif;color:#1c2733;background:#fff;border:1px solid #8a939c;" +
      "border-radius:4px;padding:3px 10px;cursor:pointer", label);
    it.type = "button"; it.title = tip; it.onclick = go;
    return bar.appendChild(it);
  };
  const turn = (to) => {
    now = Math.max(0, Math.min(last, to));
    picture.innerHTML = show.svg;
    picture.firstChild.innerHTML = show.frames[now].map((part) => show.parts[part]).join("");
    picture.firstChild.setAttribute("aria-label", show.says[now]);
    count.textContent = `step ${now + 1} of ${last + 1}`;
    back.style.opacity = now > 0 ? 1 : 0.4; step.style.opacity = now < last ? 1 : 0.4;
    acts.forEach((it, act) => {
      it.style.background = act === show.acts[now] ? "#cfe3f5" : "#fff";
      it.style.fontWeight = act === show.acts[now] ? "bold" : "normal";
    });
  };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = "play"; };
  const move = (to) => { stop(); turn(to); };
  const toggle = () => {
    if (timer) return stop();
    turn(now === last ? 0 : now + 1);
    play.textContent = "pause";
    timer = setInterval(() => { if (now < last && root.isConnected) turn(now + 1); else stop(); }, 3500);
  };
  const back = button("\u25c0 back", "previous step (left arrow)", () => move(now - 1));
  const play = button("play", "play or pause (space)", toggle);
  const step = button("step \u25b6", "next step (right arrow)", () => move(now + 1));
  bar.appendChild(make("span", "margin-left:12px", "act"));
  const acts = [...Array(show.acts[last] + 1).keys()].map((act) =>
    button(String(act + 1), "first step of act " + (act + 1), () => move(show.acts.indexOf(act))));
  const count = bar.appendChild(make("span", "margin-left:auto"));
  root.dataset.ready = "yes";
  root.tabIndex = 0;
  root.setAttribute("data-lm-suppress-shortcuts", "true");  // or JupyterLab takes the keys
  root.onkeydown = (event) => {
    const go = { ArrowRight: () => move(now + 1), ArrowLeft: () => move(now - 1), " ": toggle }[event.key];
    if (go && (event.key !== " " || event.target === root)) { event.preventDefault(); event.stopPropagation(); go(); }
  };
  root.replaceChildren(picture, bar);
  turn(0);
}
"""
