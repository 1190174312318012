"""What a teacher asks: a folder of submissions as a table, as CSV, and as misconceptions that learners share.

Each file is graded by itself; what is wrong with one is told in its row, and stops no other.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from practice.grader import safe_files
from practice.grader.apart import grade
from practice.grader.contract import Diagnosis, Problem, Report
from practice.grader.diagnose import Diagnostician
from practice.grader.layout import Block, Grid, Heading, Piece, Toned, line, one_line
from practice.grader.progress_bar import Bar
from practice.grader.report import verdict_piece
from practice.grader.request import FAILED, FAULT, PASSED, Answer, Request, UsageError, as_typed
from practice.grader.submissions import NoSubmission, submission
from practice.grader.words import Words

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for the beginning of one


@dataclass(frozen=True)
class Graded:
    """What became of one file. Without a report, `problem` says why there is none: a key of `words`, and a detail."""

    name: str
    report: Report | None = None
    diagnosis: Diagnosis | None = None
    problem: tuple[str, str] = ("", "")

    @property
    def failed_groups(self) -> list[str]:
        return [] if self.report is None else [result.group.name for result in self.report.groups if result.failed]


def grade_class(request: Request, given: str, folder: str) -> Answer:
    problem, words, place = request.problem(given), request.words, Path(folder)
    if not place.is_dir():
        raise UsageError(words("class_no_folder", path=folder))
    paths = submissions(place)
    if not paths:
        raise UsageError(words("class_empty", path=folder))
    with Bar() as bar:
        graded = grade_all(problem, paths, request.seed, request.learner.diagnostician(problem), bar)
    blocks = [*_class_table(graded, words, problem.number), Heading(words("class_report")), *_shared(graded, words)]
    table = place / f"grades-{problem.number}.csv"
    try:
        safe_files.write(table, as_csv(graded, words, problem.number))
        blocks.append(line(words("class_csv", path=as_typed(table))))
    except OSError as error:
        blocks.append(line(words("class_csv_failed", detail=error)))
    verdicts = {one.report.verdict if one.report else "" for one in graded}
    status = FAULT if "IE" in verdicts else PASSED if verdicts == {"AC"} else FAILED
    return Answer(blocks, _class_data(graded, words, problem.number), status)


def _class_table(graded: list[Graded], words: Words, number: int) -> Iterator[Block]:
    rows: list[tuple[Piece, ...]] = []
    for one in graded:
        why = reason(one, words, number)
        if one.report is None:
            rows.append((one_line(one.name), Toned("-", "bad"), "", "", one_line(why)))
        else:
            points = str(one.report.points)
            failed = " ".join(one.failed_groups)
            rows.append((one_line(one.name), verdict_piece(one.report.verdict, words), points, failed, why))
    columns = ("submission", "verdict", "group_points", "failed_groups", "misconception")
    yield Grid(tuple(map(words, columns)), tuple(rows), numbers=(2,))


def _shared(graded: list[Graded], words: Words) -> Iterator[Block]:
    shared = misconceptions(graded, words.language)
    if not shared:
        yield line(words("class_none"))
        return
    rows = [(str(count), sentence) for sentence, count in shared]
    unknown = sum(one.report is not None and one.report.verdict != "AC" and not one.diagnosis for one in graded)
    rows += [(str(unknown), words("class_unknown"))] if unknown else []
    yield Grid((words("learners"), words("misconception")), tuple(rows), numbers=(0,))


def _class_data(graded: list[Graded], words: Words, number: int) -> dict[str, Any]:
    files = [
        {
            "file": one.name,
            "verdict": one.report.verdict if one.report else None,
            "points": one.report.points if one.report else None,
            "failed_groups": one.failed_groups,
            "misconception": one.diagnosis.sentence[words.language] if one.diagnosis else None,
            "error": None if one.report else reason(one, words, number),
        }
        for one in graded
    ]
    shared = [{"sentence": each, "learners": count} for each, count in misconceptions(graded, words.language)]
    return {"problem": number, "files": files, "misconceptions": shared}


def submissions(folder: Path) -> list[Path]:
    """The .py and .ipynb files in `folder`, by name; hidden ones are no submissions."""
    return sorted(
        path for path in folder.iterdir() if path.suffix in (".py", ".ipynb") and not path.name.startswith(".")
    )


def grade_all(
    problem: Problem,
    paths: Sequence[Path],
    seed: int,
    diagnostician: Diagnostician,
    on_progress: Callable[[int, int], None],
) -> list[Graded]:
    """In the order of `paths`. The work is in processes, so threads keep all cores busy; a bad file stops nothing."""
    starter = problem.starter()

    def one(path: Path) -> Graded:
        try:
            if path.is_symlink() and path.resolve().parent != path.parent.resolve():
                raise NoSubmission("link_outside")
            source = submission(path, problem.number, problem.limits.source)
            report, small = grade(problem, source, seed, starter)
            return Graded(path.name, report, diagnostician.diagnose(report, small))
        except NoSubmission as error:
            return Graded(path.name, problem=(str(error), ""))
        except Exception as error:
            return Graded(path.name, problem=("unreadable", f"{type(error).__name__}: {error}"))

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        futures = [pool.submit(one, path) for path in paths]
        try:
            for done, _ in enumerate(as_completed(futures), 1):
                on_progress(done, len(futures))
        except BaseException:  # told to end, among others
            pool.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]


def misconceptions(graded: Sequence[Graded], language: str) -> list[tuple[str, int]]:
    """Each recognised misconception and the number of learners who share it, the most frequent first."""
    counts = Counter(one.diagnosis.sentence[language] for one in graded if one.diagnosis is not None)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def reason(graded: Graded, words: Words, number: int) -> str:
    """What the table says beside a file: the misconception, or why the file was not graded."""
    if graded.report is None:
        return words(graded.problem[0], detail=graded.problem[1], number=number)
    return "" if graded.diagnosis is None else graded.diagnosis.sentence[words.language]


def as_csv(graded: Sequence[Graded], words: Words, number: int) -> bytes:
    """For a spreadsheet: UTF-8 with its mark, and no cell that it would take for a formula."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(["file", "verdict", "points", "of", "failed groups", "misconception"])
    for one in graded:
        report = one.report
        row = [one_line(one.name), *((report.verdict, report.points, report.of) if report else ("", "", ""))]
        row += [" ".join(one.failed_groups), one_line(reason(one, words, number))]
        writer.writerow([f"'{cell}" if str(cell).startswith(FORMULA) else cell for cell in row])
    return file.getvalue().encode("utf-8-sig", "backslashreplace")
