"""The words that all parts of the judge share: what a problem is, and what grading a solution yields.

A case is a sequence of calls on an object of the learner's class. The rules of the problem are a class with the same
constructor and methods, which the parent process alone holds: what a call must return is what the rules return.

Python 3.10 and the standard library are all that this package needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

VERDICTS = ("AC", "WA", "RTE", "TLE", "MLE", "OLE", "CE", "UNATTEMPTED", "IE")
DEFAULT_SEED = 0
MAKE = "__init__"  # the method of a step that makes another object, with the arguments as parameters


@dataclass(frozen=True)
class Result:
    """In the arguments of a step: the value that an earlier step of the same case returned, or one element of it."""

    step: int  # that step's id
    item: int | None = None  # which element of a returned tuple or list; None is the value itself


@dataclass(frozen=True)
class Step:
    """One call of a case. `id` is unique in its case and stays what it is when other steps are removed.

    `on` is the id of the step that made the object which is called; None is the object that the case starts with.
    """

    id: int
    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    on: int | None = None

    def uses(self) -> Iterator[int]:
        """The ids of the steps whose results this one takes."""
        return (value.step for value in (*self.args, *self.kwargs.values()) if isinstance(value, Result))


@dataclass(frozen=True)
class Case:
    """A fresh object, made with `parameters` as keyword arguments, and the calls it gets; steps may make others.

    A step that takes the result of a step which is absent, was left out or returned None is left out itself, and so is
    one on an object that was not made.
    """

    name: str
    parameters: Mapping[str, Any]
    steps: tuple[Step, ...]
    cpu_seconds: float | None = None  # a limit of its own, for a large case of one object, which tests time alone


@dataclass(frozen=True)
class Group:
    """Cases that test one idea, and the points for passing all of them."""

    name: str
    title: Mapping[str, str]  # by language, "en" and "zh"; names the idea
    points: int
    cases: tuple[Case, ...]
    late: bool = False  # many cases, that no diagnosis needs; a solution that fails an example is not asked for them

    @property
    def speed(self) -> bool:
        """Whether its cases test time alone; a solution that fails an example is not asked for these, either."""
        return any(case.cpu_seconds is not None for case in self.cases)


@dataclass(frozen=True)
class Table:
    """A part of the rules' own state, to be shown before and after a step; a table without columns is one line."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Rules(Protocol):
    """The problem's rules as a class: the constructor and methods of the learner's class, and its state as tables.

    Methods return plain data: None, bool, int, float, str, and lists and tuples of these.
    """

    def tables(self) -> list[Table]: ...


@dataclass(frozen=True)
class Diagnosis:
    """A known misconception: the sentence that names it, and the section that explains it."""

    sentence: Mapping[str, str]  # by language
    link: Mapping[str, str]  # by language: a path from the repository's root, with the heading after '#'


@dataclass(frozen=True)
class Limits:
    """What a solution may use in all cases together: bytes, and seconds of CPU (and several times that of waiting).

    The seconds are for all cases without a limit of their own.
    """

    cpu_seconds: float = 1.3
    memory: int = 512 << 20
    output: int = 64 << 10
    source: int = 256 << 10


@dataclass(frozen=True)
class Problem:
    """All that the judge knows of a problem. Its folder holds statement, hints, starter, reference and solutions."""

    number: int
    folder: Path
    title: Mapping[str, str]
    difficulty: str  # easy, medium or hard
    chapter: str  # the notebook that teaches it, without its ending
    class_name: str
    variable: str  # what a story calls the object
    rules: Callable[..., Any]  # called with a case's parameters; a `Rules`
    groups: Callable[[int], Sequence[Group]]  # from the seed; the first group holds the statement's examples
    diagnoses: Mapping[str, Diagnosis]
    chinese: Mapping[str, str] = field(default_factory=dict)  # of the English names of cases and words of tables
    limits: Limits = Limits()
    # A case that is not graded, and lines (language, its steps, their answers) about what the solution did in it.
    showcase: Callable[[int], Case] | None = None
    describe_showcase: Callable[[str, Case, Sequence[Any]], list[str]] | None = None

    def statement(self, language: str) -> str:
        return self._text(f"statement.{language}.md").strip()

    def hints(self, language: str) -> list[str]:
        """The hints in order: in the file each stands under a heading of the second level."""
        parts = ("\n" + self._text(f"hints.{language}.md")).split("\n## ")[1:]
        return [part.partition("\n")[2].strip() for part in parts]

    def starter(self) -> bytes:
        return (self.folder / "starter.py").read_bytes()

    def reference(self) -> str:
        return self._text("reference.py")

    def _text(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Move:
    """A step as it was really called: references replaced by values."""

    step: Step
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class Failure:
    """Where a case went wrong: at which of the moves made (the last one), and what happened instead."""

    verdict: str
    moves: tuple[Move, ...]  # up to and with the one that failed; none: the constructor or the class itself failed
    expected: Any
    got: Any = None  # the plain value returned, or a `Foreign`
    detail: str = ""  # the learner's traceback, the limit that was reached


@dataclass(frozen=True)
class Foreign:
    """A returned value that is no plain data: the name of its type, and how it prints, cut."""

    type_name: str
    text: str


@dataclass(frozen=True)
class CaseResult:
    case: Case
    num_verified: int  # answers that were verified
    num_asked: int  # answers that a right solution gives
    failure: Failure | None


@dataclass(frozen=True)
class GroupResult:
    group: Group
    cases: tuple[CaseResult, ...]  # none: the group was not run

    @property
    def passed(self) -> bool:
        return bool(self.cases) and not self.failed

    @property
    def failed(self) -> bool:
        return any(result.failure for result in self.cases)


@dataclass
class Report:
    """What grading one solution yields; a story and a diagnosis are added for a failing one."""

    problem: Problem
    verdict: str
    seed: int
    groups: tuple[GroupResult, ...] = ()
    message: str = ""  # for CE, UNATTEMPTED, IE: what is the matter
    printed: str = ""  # what the learner's code printed, cut
    showcase: tuple[Any, ...] | None = None  # the answers in the showcase

    @property
    def points(self) -> int:
        return sum(result.group.points for result in self.groups if result.passed)

    @property
    def of(self) -> int:
        """The points that there are."""
        return sum(result.group.points for result in self.groups)

    @property
    def first_failure(self) -> CaseResult | None:
        return next((case for group in self.groups for case in group.cases if case.failure), None)
