"""One report for all readers: a page for people, and the same as plain data for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from practice.grader.contract import DEFAULT_SEED, Report, Table
from practice.grader.explain import Explained
from practice.grader.layout import Beside, Block, Code, Grid, Heading, Line, Piece, Toned, line
from practice.grader.story import UNSAFE, Story
from practice.grader.words import Words

MOST_CALLS = 12  # lines of a story that are shown
MOST_LINES, LONGEST_LINE = 20, 200  # lines and characters of what came from the learner's code


@dataclass(frozen=True)
class Asked:
    """How the judge was asked, so that what it says next can be typed where it is read."""

    command: str = "python practice/judge.py"
    file: str = ""  # the FILE that was given, quoted for a shell; empty for the learner's own file
    path: str = ""  # where the solution is
    in_cell: bool = False


def verdict_piece(verdict: str, words: Words) -> Toned:
    return Toned(words.verdict(verdict), {"AC": "good", "UNATTEMPTED": "strong"}.get(verdict, "bad"))


def page(explained: Explained, words: Words, asked: Asked) -> list[Block]:
    """The report to be read from top to bottom: verdict, groups, story, misconception, next step."""
    report, story = explained.report, explained.story
    blocks: list[Block] = [_headline(report, words)]
    if report.message:
        blocks.append(_excerpt(words.of(report.message), words))
    if report.of and report.verdict != "UNATTEMPTED":
        blocks.append(_groups(report, words))
        if not all(result.cases for result in report.groups):
            blocks.append(line(words("not_run")))
    if report.showcase is not None and (lines := _showcase(report, words)):
        blocks += [Heading(words("showcase")), Code(tuple(lines))]
    if story is not None:
        blocks += _story(story, words, report.problem.chinese)
    if report.printed:
        blocks += [Heading(words("printed")), _excerpt(report.printed, words)]
    if explained.diagnosis is not None:
        sentence = explained.diagnosis.sentence[words.language]
        link = explained.diagnosis.link[words.language]
        blocks += [
            line(Toned(sentence, "strong")),
            line(words("diagnosis_link"), Toned(link, link=link)),
        ]
    if story is not None:
        blocks += [Heading(words("replay")), Code((replay(explained, asked),))]
        if not explained.alone:
            blocks.append(line(words("replay_note")))
    return [*blocks, *_next(report, words, asked)]


def _headline(report: Report, words: Words) -> Line:
    problem = report.problem
    pieces: list[Piece] = [verdict_piece(report.verdict, words), f"  {problem.number} {problem.title[words.language]}"]
    if report.of:
        pieces.append(f"  {words('points', points=report.points, of=report.of)}")
    return Line(tuple(pieces))


def _groups(report: Report, words: Words) -> Grid:
    rows = []
    for result in report.groups:
        passed = sum(case.failure is None for case in result.cases)
        points = f"{result.group.points if result.passed else 0}/{result.group.points}"
        mark = Toned("✓", "good") if result.passed else Toned("✗", "bad") if result.failed else "–"
        rows.append((mark, result.group.title[words.language], points, f"{passed}/{len(result.group.cases)}"))
    columns = ("", words("group"), words("group_points"), words("group_cases"))
    return Grid(columns, tuple(rows), numbers=(2, 3))


def _showcase(report: Report, words: Words) -> list[str]:
    problem = report.problem
    if problem.showcase is None or problem.describe_showcase is None or report.showcase is None:
        return []
    return problem.describe_showcase(words.language, problem.showcase(report.seed), report.showcase)


def _story(story: Story, words: Words, chinese: Mapping[str, str]) -> Iterator[Block]:
    yield Heading(words("story"))
    key, case = "story_shrunk" if story.shrunk else "story_case", words.of(story.case_name, chinese)
    yield line(words(key, case=case, left_out=story.num_left_out))
    calls = _cut(story.calls, words)
    yield Code(calls, marked=len(calls) - 1)
    if len(story.calls) == 1:
        yield line(words("story_constructor"))
    if story.expected is not None:
        got = words("story_nothing") if story.got is None else story.got
        rows = ((words("story_expected"), Toned(story.expected, "strong")), (words("story_got"), Toned(got, "strong")))
        yield Grid((), rows)
    if story.types is not None:
        yield line(words("story_types", expected=story.types[0], got=story.types[1]))
    if story.detail:
        yield line(words("story_detail"))
        yield _excerpt(words.of(story.detail), words)
    if story.after:
        yield Heading(words("state"))
        yield from _state(story, words, chinese)


def _excerpt(text: str, words: Words) -> Code:
    """The text, or of a long one its first and last lines."""
    lines = [
        each if len(each) <= LONGEST_LINE else each[:LONGEST_LINE] + " ..." for each in text.rstrip("\n").split("\n")
    ]
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines[half:-half] = [words("lines_cut", count=len(lines) - 2 * half)]
    return Code(tuple(lines))


def _cut(calls: tuple[str, ...], words: Words) -> tuple[str, ...]:
    if len(calls) <= MOST_CALLS:
        return calls
    start, end = calls[:3], calls[3 - MOST_CALLS + 1 :]
    return (*start, words("story_cut", count=len(calls) - len(start) - len(end)), *end)


def _in(words: Words, table: Table, chinese: Mapping[str, str]) -> Table:
    def row(cells: Iterable[str]) -> tuple[str, ...]:
        return tuple(words.of(cell, chinese) for cell in cells)

    return Table(words.of(table.title, chinese), row(table.columns), tuple(map(row, table.rows)))


def _state(story: Story, words: Words, chinese: Mapping[str, str]) -> Iterator[Block]:
    before, after = words("state_before"), words("state_after")
    befores, afters = ([_in(words, table, chinese) for table in tables] for tables in (story.before, story.after))
    for old, new in zip(befores, afters):  # noqa: B905 (the same rules show the same tables)
        if new.columns:
            title = partial(words, "state_when", title=new.title)
            yield Beside(_table(old, title(when=before)), _table(new, title(when=after), known={*old.rows}))
    lines = [(old, new) for old, new in zip(befores, afters) if not new.columns]  # noqa: B905
    if lines:
        rows = tuple((new.title, _line(old), Toned(_line(new), "strong" if old != new else "")) for old, new in lines)
        yield Grid(("", before, after), rows)


def _line(table: Table) -> str:
    return "  ".join(" ".join(row) for row in table.rows)


def _table(table: Table, title: str, known: set[tuple[str, ...]] | None = None) -> Grid:
    """Rows that are not among the `known` ones stand out."""
    rows = tuple(
        tuple(Toned(cell, "" if known is None or row in known else "strong") for cell in row) for row in table.rows
    )
    return Grid(table.columns, rows, title=title)


def replay(explained: Explained, asked: Asked) -> str:
    """The command that plays the story again; the whole run where the case alone does not fail."""
    report, story = explained.report, explained.story
    assert story is not None, "only a failure is replayed"
    command = f"{asked.command} {report.problem.number}" + (f" {asked.file}" if asked.file else "")
    seed = "" if report.seed == DEFAULT_SEED else f" --seed {report.seed}"
    if explained.alone and story.replay is not None:
        return f'{command} --case "{story.replay}"'
    if explained.alone and story.case_name != "--case" and not UNSAFE & set(story.case_name):
        return f'{command} --case "{story.case_name}"{seed}'
    return command + seed


def _next(report: Report, words: Words, asked: Asked) -> Iterator[Block]:
    number, command = report.problem.number, asked.command
    if report.verdict == "IE":
        yield line(words("next_report"))
    elif report.verdict == "UNATTEMPTED":
        key = "next_cell" if asked.in_cell else "next_open"
        yield line(words(key, path=asked.path, command=command, number=number))
    elif report.verdict == "AC":
        yield line(words("next_passed", command=command, number=number))
    else:
        yield line(words("next_hint", command=command, number=number))


def data(explained: Explained, words: Words, asked: Asked) -> dict[str, Any]:
    """The report as plain data, for --json."""
    report, story, diagnosis = explained.report, explained.story, explained.diagnosis
    language = words.language
    return {
        "problem": report.problem.number,
        "title": report.problem.title[language],
        "verdict": report.verdict,
        "word": words(report.verdict),
        "points": report.points,
        "of": report.of,
        "seed": report.seed,
        "groups": [
            {
                "name": result.group.name,
                "title": result.group.title[language],
                "points": result.group.points if result.passed else 0,
                "of": result.group.points,
                "cases": [_case(case) for case in result.cases],
            }
            for result in report.groups
        ],
        "message": words.of(report.message),
        "printed": report.printed,
        "showcase": _showcase(report, words),
        "story": None
        if story is None
        else {**asdict(story), "detail": words.of(story.detail), "replay": replay(explained, asked)},
        "diagnosis": None
        if diagnosis is None
        else {"sentence": diagnosis.sentence[language], "link": diagnosis.link[language]},
    }


def _case(case: Any) -> dict[str, Any]:
    verdict = "AC" if case.failure is None else case.failure.verdict
    return {"name": case.case.name, "verdict": verdict, "verified": case.num_verified, "asked": case.num_asked}
