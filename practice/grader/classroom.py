"""A class's submissions: each graded by itself, what they failed, and which misconception how many learners share."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from practice.grader import materials
from practice.grader.contract import Diagnosis, Problem, Report
from practice.grader.diagnose import Diagnostician
from practice.grader.grade import grade
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
    """In the order of `paths`. The work is in children, so threads keep all cores busy; a bad file stops nothing."""
    starter = materials.starter(problem)

    def one(path: Path) -> Graded:
        try:
            source = submission(path, problem.number, problem.limits.source)
            report = grade(problem, source, seed, starter)
            return Graded(path.name, report, diagnostician.diagnose(report))
        except NoSubmission as error:
            return Graded(path.name, problem=(str(error), ""))
        except Exception as error:
            return Graded(path.name, problem=("unreadable", f"{type(error).__name__}: {error}"))

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        futures = [pool.submit(one, path) for path in paths]
        for done, _ in enumerate(as_completed(futures), 1):
            on_progress(done, len(futures))
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
        of = sum(result.group.points for result in report.groups) if report else ""
        row = [one.name, report.verdict if report else "", report.points if report else "", of]
        row += [" ".join(one.failed_groups), reason(one, words, number)]
        writer.writerow([f"'{cell}" if str(cell).startswith(FORMULA) else cell for cell in row])
    return file.getvalue().encode("utf-8-sig", "backslashreplace")
