"""A problem that is small enough to be seen through: a ledger that hands out tickets. And a grader without a child."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from practice.grader.contract import (
    MAKE,
    Case,
    CaseResult,
    Diagnosis,
    Failure,
    Group,
    GroupResult,
    Problem,
    Report,
    Result,
    Step,
    Table,
)
from practice.grader.diagnose import Diagnostician
from practice.grader.explain import smallest, to_explain
from practice.grader.play import play, script

STARTER = b"class Ledger:\n    def __init__(self, limit=100):\n        raise NotImplementedError('7, step 1: begin')\n"
RIGHT = b"""\
class Ledger:
    def __init__(self, limit=100):
        self.limit, self.held, self.next = limit, {}, 0

    def put(self, items, tag=None):
        if self.total() + sum(items) > self.limit:
            return None
        self.held[self.next] = list(items)
        self.next += 1
        return self.next - 1, self.total()

    def drop(self, ticket):
        del self.held[ticket]

    def total(self):
        return sum(map(sum, self.held.values()))
"""
SHARED_STATE = RIGHT.replace(
    b"self.limit, self.held, self.next =", b"Ledger.limit, Ledger.held, Ledger.next ="
).replace(b"self.next += 1", b"Ledger.next += 1")
# Wrong in one way each.
FORGETS_LIMIT = RIGHT.replace(b"> self.limit", b"> 10 ** 9")
KEEPS_DROPPED = RIGHT.replace(b"del self.held[ticket]", b"pass")
SEVEN_IS_EIGHT = RIGHT.replace(b"list(items)", b"[8 if item == 7 else item for item in items]")
RAISES = RIGHT.replace(b"del self.held[ticket]", b"raise KeyError(ticket)")
LIST_FOR_TUPLE = RIGHT.replace(b"return self.next - 1, self.total()", b"return [self.next - 1, self.total()]")


class Rules:
    def __init__(self, limit: int = 100) -> None:
        if limit < 1:
            raise ValueError("a ledger holds something")
        self.limit, self.held, self.next = limit, dict[int, list[int]](), 0

    def put(self, items: list[int], tag: int | None = None) -> tuple[int, int] | None:
        assert items, "no items"
        if self.total() + sum(items) > self.limit:
            return None
        self.held[self.next] = list(items)
        self.next += 1
        return self.next - 1, self.total()

    def drop(self, ticket: int) -> None:
        del self.held[ticket]

    def total(self) -> int:
        return sum(map(sum, self.held.values()))

    def tables(self) -> list[Table]:
        rows = tuple((str(ticket), str(items)) for ticket, items in self.held.items())
        return [Table("held", ("ticket", "items"), rows), Table("total", (), ((str(self.total()),),))]


def put(number: int, *items: int, **tag: int) -> Step:
    return Step(number, "put", (list(items),), tag)


def drop(number: int, of: int) -> Step:
    return Step(number, "drop", (Result(of, 0),))


def other(number: int, limit: int) -> Step:
    """Another ledger."""
    return Step(number, MAKE, kwargs={"limit": limit})


def groups(seed: int) -> list[Group]:
    example = Case("an example", {"limit": 20}, (put(0, 1, 2), drop(1, 0), put(2, 3)))
    full = Case("a full ledger", {"limit": 5}, (put(0, 3), put(1, 3), put(2, 2)))
    many = [step for n in range(0, 40, 2) for step in (put(n, n % 5 + seed, 9, tag=n), drop(n + 1, n))]
    sevens = Case("random 1", {"limit": 90}, (*many, put(50, 5, 7, 3), put(51, 1)))
    return [
        Group("examples", {"en": "the examples", "zh": "题目里的例子"}, 10, (example,)),
        Group("limit", {"en": "the limit", "zh": "上限"}, 20, (full,)),
        Group("random", {"en": "random calls", "zh": "随机调用"}, 30, (sevens,)),
    ]


def with_speed(seed: int) -> list[Group]:
    """The groups, and one that tests speed."""
    fast = Case("fast", {"limit": 9}, tuple(Step(number, "total") for number in range(50)), cpu_seconds=0.3)
    return [*groups(seed), Group("speed", {"en": "speed", "zh": "速度"}, 40, (fast,))]


def problem(folder: Path, texts: bool = True) -> Problem:
    """The problem, with its texts in `folder`."""
    if texts:
        write_texts(folder)
    diagnoses = {
        key: Diagnosis({"en": f"It looks as if {key}.", "zh": f"看起来是 {key}。"}, {"en": "a.md#b", "zh": "a.md#b"})
        for key in ("no-limit", "never-drops", "slow")
    }
    titles = {"en": "A ledger", "zh": "账本"}
    chinese = {"an example": "一个例子", "held": "持有", "ticket": "票号"}
    return Problem(7, folder, titles, "easy", "00_tiny", "Ledger", "ledger", Rules, groups, diagnoses, chinese)


def write_texts(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "starter.py").write_bytes(STARTER)
    (folder / "reference.py").write_bytes(RIGHT)
    for language, words in {"en": ("State it.", "First", "Second"), "zh": ("题目在此。", "第一", "第二")}.items():
        (folder / f"statement.{language}.md").write_text(words[0] + "\n", encoding="utf-8")
        text = f"## 1\n\n{words[1]}\n\n## 2\n\n{words[2]}\n"
        (folder / f"hints.{language}.md").write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Wrong:
    """A catalogued wrong solution."""

    name: str
    source: bytes
    diagnosis: str | None
    verdict: str = "WA"
    group: str | None = None

    def make(self) -> Any:
        return made(self.source)


CATALOGUE = (
    Wrong("forgets the limit", FORGETS_LIMIT, "no-limit", group="limit"),
    Wrong("keeps what is dropped", KEEPS_DROPPED, "never-drops", group="examples"),
    Wrong("slow", RIGHT, "slow", "TLE", "random"),
)


def made(source: bytes) -> Any:
    names: dict[str, Any] = {}
    exec(source, names)
    return names["Ledger"]


def grade(problem: Problem, source: bytes, seed: int, starter: bytes | None = None, on_progress: Any = None) -> Report:
    """Grades in this process."""
    if source == starter:
        return Report(problem, "UNATTEMPTED", seed, message="still the starter")
    try:
        make = made(source)
    except Exception as error:
        return Report(problem, "CE", seed, message=f"{type(error).__name__}: {error}")
    results = tuple(
        GroupResult(group, tuple(play(case, problem.rules, make) for case in group.cases))
        for group in problem.groups(seed)
    )
    report = Report(problem, "AC", seed, results)
    if (first := report.first_failure) and first.failure:
        report.verdict = first.failure.verdict
    return report


def grade_apart(problem: Problem, source: bytes, *rest: Any) -> tuple[Report, CaseResult | None]:
    report = grade(problem, source, *rest)
    first = to_explain(report)
    return report, None if first is None else smallest(first, problem, source)[0]


class Runner:
    """Plays in this process; `restart` gives the module anew."""

    def __init__(self, problem: Problem, source: bytes) -> None:
        self.problem, self.source = problem, source
        self.restart()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def restart(self) -> None:
        self.make = made(self.source)

    def run(self, case: Case) -> CaseResult:
        return play(case, self.problem.rules, self.make)


def failed(problem: Problem, source: bytes, seed: int = 0) -> CaseResult:
    """The first failure of a solution."""
    result = grade(problem, source, seed).first_failure
    assert result is not None
    return result


def install(monkeypatch: Any, folder: Path) -> Problem:
    """Let the judge know this problem alone, as number 7, grade it in this process, and keep solutions in `folder`."""
    tiny = problem(folder / "007_ledger")
    for module in ("practice.grader.verbs", "practice.grader.request", "practice.notebook"):
        monkeypatch.setattr(f"{module}.folders", lambda: {7: tiny.folder})
        monkeypatch.setattr(f"{module}.load", lambda number: tiny)
    monkeypatch.setattr("practice.grader.learner.grade", grade)
    monkeypatch.setattr("practice.grader.classroom.grade", grade_apart)
    monkeypatch.setattr("practice.grader.explain.Runner", Runner)
    monkeypatch.setattr(
        "practice.grader.learner.Learner.diagnostician", lambda self, problem: Diagnostician(problem, CATALOGUE)
    )
    monkeypatch.setenv("PRACTICE_SOLUTIONS", str(folder / "solutions"))
    monkeypatch.setenv("LC_ALL", "C")
    return tiny


def limit_reached(case: Case) -> CaseResult:
    """A result as of a solution that is too slow in the case's first call."""
    move = next(script(case, Rules))[0]
    return CaseResult(case, 0, len(case.steps), Failure("TLE", (move,), None, detail="more than 3 s of CPU time"))
