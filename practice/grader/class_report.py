"""What a teacher asks: a folder of submissions as a table, as CSV, and as misconceptions that learners share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from practice.grader import classroom, keep
from practice.grader.bar import Bar
from practice.grader.page import Block, Grid, Heading, Piece, Toned, line
from practice.grader.report import verdict_piece
from practice.grader.request import FAILED, FAULT, PASSED, Answer, Request, UsageError, shown
from practice.grader.words import Words


def grade_class(request: Request, given: str, folder: str) -> Answer:
    problem, words, place = request.problem(given), request.words, Path(folder)
    if not place.is_dir():
        raise UsageError(words("class_no_folder", path=folder))
    paths = classroom.submissions(place)
    if not paths:
        raise UsageError(words("class_empty", path=folder))
    with Bar() as bar:
        graded = classroom.grade_all(problem, paths, request.seed, request.learner.diagnostician(problem), bar)
    blocks = [*_class_table(graded, words, problem.number), Heading(words("class_report")), *_shared(graded, words)]
    table = place / f"grades-{problem.number}.csv"
    try:
        keep.write(table, classroom.as_csv(graded, words, problem.number))
        blocks.append(line(words("class_csv", path=shown(table))))
    except OSError as error:
        blocks.append(line(words("class_csv_failed", detail=error)))
    verdicts = {one.report.verdict if one.report else "" for one in graded}
    status = FAULT if "IE" in verdicts else PASSED if verdicts == {"AC"} else FAILED
    return Answer(blocks, _class_data(graded, words, problem.number), status)


def _class_table(graded: list[classroom.Graded], words: Words, number: int) -> Iterator[Block]:
    rows: list[tuple[Piece, ...]] = []
    for one in graded:
        why = classroom.reason(one, words, number)
        if one.report is None:
            rows.append((one.name, Toned("-", "bad"), "", "", why))
        else:
            points = str(one.report.points)
            rows.append((one.name, verdict_piece(one.report.verdict, words), points, " ".join(one.failed_groups), why))
    columns = ("submission", "verdict", "group_points", "failed_groups", "misconception")
    yield Grid(tuple(map(words, columns)), tuple(rows), numbers=(2,))


def _shared(graded: list[classroom.Graded], words: Words) -> Iterator[Block]:
    shared = classroom.misconceptions(graded, words.language)
    if not shared:
        yield line(words("class_none"))
        return
    rows = [(str(count), sentence) for sentence, count in shared]
    unknown = sum(one.report is not None and one.report.verdict != "AC" and not one.diagnosis for one in graded)
    rows += [(str(unknown), words("class_unknown"))] if unknown else []
    yield Grid((words("learners"), words("misconception")), tuple(rows), numbers=(0,))


def _class_data(graded: list[classroom.Graded], words: Words, number: int) -> dict[str, Any]:
    files = [
        {
            "file": one.name,
            "verdict": one.report.verdict if one.report else None,
            "points": one.report.points if one.report else None,
            "failed_groups": one.failed_groups,
            "misconception": one.diagnosis.sentence[words.language] if one.diagnosis else None,
            "error": None if one.report else classroom.reason(one, words, number),
        }
        for one in graded
    ]
    shared = [{"sentence": each, "learners": count} for each, count in classroom.misconceptions(graded, words.language)]
    return {"problem": number, "files": files, "misconceptions": shared}
