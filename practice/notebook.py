"""Grading from Python: `practice.check(131)`, and what the magic does with a cell."""

from __future__ import annotations

import linecache
from types import FunctionType

from practice.grader.contract import DEFAULT_SEED
from practice.grader.explain import Explained
from practice.grader.html import html
from practice.grader.layout import Block, line
from practice.grader.learner import Learner
from practice.grader.problems import folders, load
from practice.grader.report import Asked, page
from practice.grader.submissions import read_source
from practice.grader.terminal import plain
from practice.grader.words import Words, system_language


class Checked:
    """A graded solution; it prints as its report, and a notebook shows that as HTML."""

    def __init__(self, explained: Explained, words: Words, asked: Asked, notes: list[str]) -> None:
        self.explained, self.words = explained, words
        self.page = page(explained, words, asked)
        self.notes: list[Block] = [line(note) for note in notes]  # what depends on more than the solution

    @property
    def verdict(self) -> str:
        return self.explained.report.verdict

    @property
    def points(self) -> int:
        return self.explained.report.points

    @property
    def was_made(self) -> bool:
        """Whether the class got as far as answering a call: what it is defined by ran to its end."""
        report = self.explained.report
        failed = report.first_failure
        return report.verdict == "AC" or (
            failed is not None and failed.failure is not None and bool(failed.failure.moves or failed.num_verified)
        )

    def __repr__(self) -> str:
        return plain([*self.page, *self.notes]).rstrip("\n")

    def _repr_html_(self) -> str:
        return html([*self.page, *self.notes])

    def bundle(self) -> dict[str, str]:
        """For a cell's output. Its text is the report alone, the same wherever the same source is graded."""
        return {"text/html": self._repr_html_(), "text/plain": plain(self.page).rstrip("\n")}


def check(
    number: int, solution: type | str | None = None, *, lang: str | None = None, seed: int = DEFAULT_SEED
) -> Checked:
    """Grade practice/solutions/NUMBER.py, or the class or the source that is given (which is then kept in that file).

    A class stands for the whole cell or file that defines it: its imports and helpers must be there, too.
    """
    number = number_of(str(number))
    if solution is None:
        learner, problem = Learner(), load(number)
        learner.start(problem)
        source = read_source(learner.path(number), problem.limits.source)
        return _checked(learner, number, source, lang, seed, in_cell=False, notes=[])
    text = source_of(solution) if isinstance(solution, type) else solution
    return check_source(number, text.encode("utf-8", "surrogatepass"), lang, seed)


def check_source(number: int, source: bytes, lang: str | None = None, seed: int = DEFAULT_SEED) -> Checked:
    """Keep the source as the learner's solution, then grade it: whatever happens, it is kept."""
    learner, words = Learner(), Words(lang or system_language())
    kept = learner.save(number, source)
    notes = [] if kept is None else [words("earlier_kept", path=learner.shown(kept))]
    return _checked(learner, number, source, lang, seed, in_cell=True, notes=notes)


def _checked(
    learner: Learner, number: int, source: bytes, lang: str | None, seed: int, in_cell: bool, notes: list[str]
) -> Checked:
    words = Words(lang or system_language())
    explained = learner.grade(load(number), source, seed)
    asked = Asked(path=learner.shown(learner.path(number)), in_cell=in_cell)
    return Checked(explained, words, asked, [*notes, *learner.notes(words)])


def number_of(given: str) -> int:
    known = folders()
    if not (given.isascii() and given.isdecimal() and int(given) in known):
        raise ValueError(f"there is no problem {given}; there are {', '.join(map(str, known))}.")
    return int(given)


def source_of(solution: type) -> str:
    """The text of the cell or file in which a class was defined, found by its methods."""
    for value in vars(solution).values():
        if isinstance(value, FunctionType) and (lines := linecache.getlines(value.__code__.co_filename)):
            return "".join(lines)
    raise ValueError(
        f"the source of {solution.__name__} is not known here; give it as a string, or as the file's number."
    )
