"""One learner at the judge, whether at the command line or in a notebook: their files, grading, their progress."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from practice.grader import safe_files
from practice.grader.contract import Case, Group, Problem
from practice.grader.diagnose import Diagnostician
from practice.grader.explain import Explained, explain
from practice.grader.grade import OnProgress, grade
from practice.grader.progress import Progress
from practice.grader.words import LANGUAGES, Words

FOLDER = "PRACTICE_SOLUTIONS"  # the variable that names another folder than practice/solutions
DEFAULT = Path(__file__).parents[1] / "solutions"


class Learner:
    """`folder` holds the solutions, one file a problem, named after its number."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(os.environ.get(FOLDER) or DEFAULT)
        self.progress = Progress.load(self.folder)
        self.unsaved: OSError | None = None  # why the progress could not be written

    def shown(self, path: Path) -> str:
        """The path as the repository's root sees it: the same on every machine, unless another folder was named."""
        if self.folder != DEFAULT:
            return str(path)
        return f"practice/solutions/{path.relative_to(self.folder).as_posix()}"

    def notes(self, words: Words) -> list[str]:
        """What went wrong beside grading: progress that could not be read or written."""
        lost = [words("progress_lost", path=self.shown(self.progress.path))] if self.progress.lost else []
        unsaved = [] if self.unsaved is None else [words("progress_unsaved", detail=self.unsaved)]
        return lost + unsaved

    def path(self, number: int) -> Path:
        return self.folder / f"{number}.py"

    def start(self, problem: Problem) -> bool:
        """Make the solution's file from the starter, if there is none; whether that was done."""
        if self.path(problem.number).exists():
            return False
        safe_files.replace(self.path(problem.number), problem.starter())
        return True

    def save(self, number: int, source: bytes) -> Path | None:
        """Make `source` the solution; returns where an earlier, different one is kept."""
        return safe_files.write(self.path(number), source)

    def diagnostician(self, problem: Problem) -> Diagnostician:
        from practice.grader.catalogue import catalogued  # not needed, and not loaded, when all is well

        return Diagnostician(problem, catalogued(problem))

    def grade(
        self,
        problem: Problem,
        source: bytes,
        seed: int,
        case: Case | None = None,
        on_progress: OnProgress | None = None,
        own: bool = True,
    ) -> Explained:
        """The report on a solution and its story. A `case` is played alone and told as it is, without a score; so is
        what is not the learner's own.
        """
        asked = problem if case is None else one_case(problem, case)
        report = grade(asked, source, seed, problem.starter(), on_progress)
        explained = Explained(report)
        if report.first_failure:
            explained = explain(report, source, self.diagnostician(problem), as_it_is=case is not None)
        if own and case is None:
            try:
                self.progress.record(report)
            except OSError as error:
                self.unsaved = error
        return explained


def one_case(problem: Problem, case: Case) -> Problem:
    """The problem with nothing but this case in it, which gives no points."""
    title = {language: Words(language)("replay_group") for language in LANGUAGES}
    return replace(problem, groups=lambda seed: (Group("replay", title, 0, (case,)),), showcase=None)
