"""The report: text, HTML and data say the same, columns line up, and nothing in a value can break out of its place."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from practice.grader.contract import GroupResult, Problem, Report
from practice.grader.diagnose import Diagnostician
from practice.grader.explain import Explained, explain
from practice.grader.html import html
from practice.grader.layout import Beside, Code, Grid, Toned, clean, line, padded, width
from practice.grader.report import Asked, data, page, replay
from practice.grader.terminal import plain, show, wants_colour
from practice.grader.words import LANGUAGES, Words, said
from tests.practice import tiny


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Problem:
    monkeypatch.setattr("practice.grader.explain.Runner", tiny.Runner)
    return tiny.problem(tmp_path)


def explained(problem: Problem, source: bytes, seed: int = 0) -> Explained:
    return explain(tiny.grade(problem, source, seed), source, Diagnostician(problem, tiny.CATALOGUE))


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_html_and_data_tell_the_same_story(problem: Problem, language: str) -> None:
    found, words = explained(problem, tiny.KEEPS_DROPPED), Words(language)
    text, markup = plain(page(found, words, Asked())), html(page(found, words, Asked()))
    content = json.loads(json.dumps(data(found, words, Asked())))
    story = content["story"]
    for each in (
        content["word"],
        story["got"],
        story["expected"],
        *story["calls"],
        content["diagnosis"]["sentence"],
    ):
        assert each in text
        assert each in re.sub("<[^>]*>", "", markup)
    assert story["replay"] in text
    assert content["groups"][0] == {
        "name": "examples",
        "title": (Words(language).language == "en" and "the examples") or "题目里的例子",
        "points": 0,
        "of": 10,
        "cases": [{"name": "an example", "verdict": "WA", "verified": 2, "asked": 3}],
    }


def test_what_was_not_run_is_said_not_to_be(problem: Problem) -> None:
    found, whole = (explained(problem, source) for source in (tiny.KEEPS_DROPPED, tiny.FORGETS_LIMIT))
    speed = GroupResult(tiny.with_speed(0)[-1], ())
    found.report.groups += (speed,)
    text = plain(page(found, Words("en"), Asked()))
    assert re.search(r"–  speed +0/40 +0/1\n\nNot run", text)
    assert "Not run" not in plain(page(whole, Words("en"), Asked()))


def test_a_chinese_report_says_in_chinese_what_the_problem_has_in_both_languages(problem: Problem) -> None:
    found = explained(problem, tiny.KEEPS_DROPPED)
    text, english = (plain(page(found, Words(language), Asked())) for language in ("zh", "en"))
    assert all(each in text for each in ("“一个例子”", "持有，调用之前", "票号"))
    assert "ticket" not in text and "票号" not in english
    slow = explain(Report(problem, "TLE", 0, _timed_out(problem)), b"", Diagnostician(problem, ()))
    assert "没有按时回答" in plain(page(slow, Words("zh"), Asked()))
    assert data(slow, Words("en"), Asked())["story"]["detail"] == "no answer in time"


def _timed_out(problem: Problem) -> tuple[GroupResult, ...]:
    group = problem.groups(0)[0]
    result = tiny.limit_reached(group.cases[0])
    assert result.failure
    late = replace(result.failure, detail=said("no answer in time", "没有按时回答"))
    return (GroupResult(group, (replace(result, failure=late),)),)


def test_a_foreign_seed_is_part_of_a_replay_by_name(problem: Problem) -> None:
    found = explained(problem, tiny.SEVEN_IS_EIGHT, seed=5)
    assert replay(found, Asked()).endswith('--case "ledger = Ledger(); ledger.put([7])"')
    assert found.story is not None
    by_name = Explained(found.report, replace(found.story, replay=None), alone=True)
    assert replay(by_name, Asked()) == 'python practice/judge.py 7 --case "random 1" --seed 5'
    whole = Explained(found.report, found.story, alone=False)
    assert replay(whole, Asked()) == "python practice/judge.py 7 --seed 5"


def test_a_flood_of_output_is_cut_for_people_and_whole_for_programs(problem: Problem) -> None:
    found = explained(problem, tiny.KEEPS_DROPPED)
    found.report.printed = "first\n" + "x" * 50_000 + "\n" + "line\n" * 5_000 + "last"
    text = plain(page(found, Words("en"), Asked()))
    assert len(text) < 3_000
    assert "first" in text
    assert "... 4983 lines ..." in text
    assert "last" in text
    assert data(found, Words("en"), Asked())["printed"] == found.report.printed


def test_chinese_and_latin_columns_line_up() -> None:
    grid = Grid(("考查", "points"), (("题目里的例子", "5/5"), ("abc", Toned("10/10", "bad"))), numbers=(1,))
    rows = plain([grid]).rstrip("\n").split("\n")
    assert {width(row) for row in rows} == {width("  题目里的例子   10/10")} | {width("  题目里的例子  points")}
    assert width(padded("é", 4)) == 4
    assert width("ｆｕｌｌ") == 8


def test_tables_too_wide_to_stand_beside_each_other_stand_below() -> None:
    narrow, wide = Grid(("a",), (("1",),)), Grid(("b",), (("2" * 60,),))
    assert len(plain([Beside(narrow, narrow)]).splitlines()) == 2
    assert len(plain([Beside(wide, wide)]).splitlines()) == 5


def test_html_is_well_formed_and_what_a_learner_returns_stays_text() -> None:
    evil = "</pre></div><script>alert(1)</script>\x1b[0m\ud800"
    markup = html([line(evil, Toned(evil, "bad")), Code((evil,)), Grid((evil,), ((evil,),), title=evil)])
    open_tags: list[str] = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            open_tags.append(tag)
            assert tag in {"div", "span", "pre", "table", "caption", "tr", "td", "th"}

        def handle_endtag(self, tag: str) -> None:
            assert open_tags.pop() == tag

    Checker().feed(markup)
    assert open_tags == []
    markup.encode()


def test_html_brings_no_colour_of_text_without_its_ground() -> None:
    markup = html([line(Toned("a", "good"), Toned("b", "bad"), Toned("c", "dim"))])
    for style in re.findall('style="([^"]*)"', markup):
        if re.search("(^|;)color:#", style):
            assert "background:#" in style


def test_a_link_leads_from_the_working_folder_to_the_chapter(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root / "notebooks" / "zh")
    markup = html([line(Toned("there", link="notebooks/zh/03_hash_blocks.ipynb#空闲队列"))])
    assert 'href="03_hash_blocks.ipynb#%E7%A9%BA' in markup


def test_what_would_steer_a_terminal_is_written_out() -> None:
    assert clean("a\x1b[2J\r\x07\u202e\ud800 中文\n\tb") == "a\\x1b[2J\\r\\x07\\u202e\\ud800 中文\n\tb"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_goes_to_a_terminal_that_wants_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    assert not wants_colour(Terminal(), refused=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


def test_colour_changes_no_word_with_rich_and_without(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    report = page(explained(problem, tiny.KEEPS_DROPPED), Words("zh"), Asked())
    painted = plain(report, colour=True)
    assert painted != plain(report)
    bare = re.sub(r"\x1b\[\d*m", "", painted)
    assert [row.rstrip() for row in bare.split("\n")] == plain(report).split("\n")
    stream = Terminal()
    show(report, stream, colour=True)
    bare = re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())
    for each in ("账本", "t1 = ledger.put([1])", "(1, 3)", "看起来是 never-drops。", "ledger.put([2])"):
        assert each in bare
