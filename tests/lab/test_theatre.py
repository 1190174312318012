"""The player and its pictures, with a theatre that needs no pool."""

from __future__ import annotations

import base64
import io
import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import matplotlib.image
import pytest

from handbook.lab.scene import MARGIN, WIDTH, Line, Mark, Rect, Text, shorten, text_width
from handbook.lab.theatre import Step, Theatre

SVG = "{http://www.w3.org/2000/svg}"


class Numbers(Theatre):
    """Shows a number and as many boxes."""

    def play(self, *numbers: int, caption: str = "it counts") -> None:
        for number in numbers:
            self.acts[-1].steps.append(Step(f"count({number})", caption, number))

    def draw(self, state: Any, top: float) -> list[Mark]:
        boxes: list[Mark] = [Rect(MARGIN + 30 * n, top, 20, 20, "#ff0000", name="box") for n in range(state)]
        return [*boxes, Text(MARGIN, top + 40, f"number {state}"), Line(((20, top + 50), (90, top + 50)))]


def counting() -> Numbers:
    stage = Numbers()
    stage.act("It begins with one")
    stage.play(0, 1)
    stage.act("Then it grows")
    stage.play(2, 3, 4)
    return stage


def show_of(html: str) -> dict[str, Any]:
    """What the script of the player plays."""
    return json.JSONDecoder().raw_decode(html, html.index("const show = ") + len("const show = "))[0]


def texts(svg: str, name: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text") if node.get("data-name") == name]


def test_a_step_is_drawn_with_the_title_of_its_act_its_call_and_its_caption() -> None:
    svg = counting().svg(2)
    assert [texts(svg, name) for name in ("title", "call", "caption")] == [
        ["2. Then it grows"], ["count(2)"], ["it counts"]
    ]  # fmt: skip
    assert len([node for node in ET.fromstring(svg).iter() if node.get("data-name") == "box"]) == 2


def test_the_player_puts_together_exactly_the_steps_that_svg_draws() -> None:
    stage = counting()
    show = show_of(stage.html())
    frames = [show["svg"].replace("></svg>", ">" + "".join(show["parts"][n] for n in frame) + "</svg>")
              for frame in show["frames"]]  # fmt: skip
    assert frames == [stage.svg(number) for number in range(5)]


def test_the_player_knows_the_act_of_each_step_and_stores_a_shared_mark_once() -> None:
    show = show_of(counting().html())
    assert show["acts"] == [0, 0, 1, 1, 1]
    assert show["says"] == ["It begins with one. it counts"] * 2 + ["Then it grows. it counts"] * 3
    assert len(show["parts"]) == len(set(show["parts"]))


def test_without_a_script_the_last_step_of_the_first_act_is_seen() -> None:
    stage = counting()
    before_script = stage.html().split("<script>")[0]
    poster = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', before_script)
    assert poster and base64.b64decode(poster[1]).decode() == stage.svg(1)


def test_the_player_loads_nothing_and_has_no_ids() -> None:
    html = counting().html() + counting().svg(0)
    assert set(re.findall(r"https?:[\w/.]*", html)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\sid\s*=|url\(|@import|<link|\ssrc=\"(?!data:)", html)


def test_two_runs_give_the_same_bytes() -> None:
    assert counting().html() == counting().html()
    assert counting().contact_sheet().data == counting().contact_sheet().data


def test_different_shows_on_a_page_have_different_keys() -> None:
    other = counting()
    other.play(5)
    keys = [re.findall(r'data-show="(\w+)"', stage.html()) for stage in (counting(), other)]
    assert keys[0] != keys[1] and all(len(set(pair)) == 1 and len(pair) == 2 for pair in keys)


@pytest.mark.parametrize("nasty", ["</script><b>&", "<!-- <script>", "KEY SHOW", 'quote " and \\ and $1 $&', "行内"])
def test_no_text_breaks_the_player(nasty: str) -> None:
    stage = Numbers()
    stage.act(nasty)
    stage.play(1, caption=nasty)
    html = stage.html()
    assert html.count("</script") == 1 and "<!--" not in html
    assert show_of(html)["says"] == [f"{nasty}. {nasty}"]
    assert texts(stage.svg(0), "caption") == [nasty]


def test_plain_text_has_one_line_for_each_act() -> None:
    assert counting()._repr_mimebundle_()["text/plain"] == (
        "Numbers: 2 acts, 5 steps\n1. It begins with one\n2. Then it grows"
    )


def test_a_theatre_that_has_played_nothing_has_plain_text_alone() -> None:
    assert Numbers()._repr_mimebundle_() == {"text/plain": "Numbers: 0 acts, 0 steps"}


def test_a_contact_sheet_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="recorded no step"):
        Numbers().contact_sheet()


def test_the_contact_sheet_shows_the_last_step_of_each_act() -> None:
    stage = counting()
    pixels = matplotlib.image.imread(io.BytesIO(stage.contact_sheet().data), format="png")[..., :3]
    red = (pixels[..., 0] > 0.9) & (pixels[..., 1] < 0.1)
    assert pixels.shape[:2] == (stage.scenes()[0], 2 * WIDTH + 12)
    assert 300 < red[:, :WIDTH].sum() < 400  # one box of 20 x 20 with round corners
    assert red[:, WIDTH:].sum() == 4 * red[:, :WIDTH].sum()


def test_an_act_in_which_nothing_happens_has_no_place_on_the_contact_sheet() -> None:
    stage = counting()
    stage.act("Nothing happens")
    assert stage.contact_sheet().data == counting().contact_sheet().data


def test_an_act_can_be_named_when_its_finding_is_known() -> None:
    stage = counting()
    stage.retitle("It has grown")
    assert [act.title for act in stage.acts] == ["It begins with one", "It has grown"]


def test_a_long_caption_is_wrapped_and_no_word_is_lost() -> None:
    stage, caption = Numbers(), "one two three four five six seven eight nine ten " * 9
    stage.act("Long")
    stage.play(1, caption=caption)
    lines = texts(stage.svg(0), "caption")
    assert len(lines) > 2 and " ".join(lines) == caption.strip()


def test_all_steps_are_equally_high() -> None:
    stage = counting()
    stage.play(1, caption="much longer than all the others " * 6)
    assert len({ET.fromstring(stage.svg(n)).get("viewBox") for n in range(6)}) == 1


def test_shortened_text_fits_and_says_that_it_was_shortened() -> None:
    assert shorten("short", 12, 100) == "short"
    for word in ("incomprehensibilities", "互联网基础设施工程师"):
        short = shorten(word, 12, 60)
        assert short.endswith("…") and word.startswith(short[:-1]) and 40 < text_width(short, 12) <= 60


def test_a_chinese_character_takes_two_places() -> None:
    assert text_width("块", 10) == text_width("ab", 10)
