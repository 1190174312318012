"""The learner's best score and the hints they have seen, in practice/solutions/progress.json."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from practice.grader import safe_files
from practice.grader.contract import Report

NAME = "progress.json"


@dataclass
class Score:
    """Of one problem. `points` is None before the first attempt."""

    points: int | None = None
    of: int = 0
    passed: bool = False
    hints: int = 0  # how many were shown


@dataclass
class Progress:
    """Read from and written to `folder`. `lost` is set when what lay there was no progress, and is kept elsewhere."""

    folder: Path
    scores: dict[int, Score] = field(default_factory=dict)
    lost: bool = False

    @property
    def path(self) -> Path:
        return self.folder / NAME

    @classmethod
    def load(cls, folder: Path) -> Progress:
        try:
            content = json.loads((folder / NAME).read_bytes())
            return cls(folder, {int(number): _score(entry) for number, entry in content.items()})
        except FileNotFoundError:
            return cls(folder)
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return cls(folder, lost=True)

    def of(self, number: int) -> Score:
        return self.scores.get(number, Score())

    def record(self, report: Report) -> None:
        """Keep the best: a pass stays a pass, whatever is tried afterwards."""
        if report.verdict in ("UNATTEMPTED", "IE"):
            return
        score = self.scores.setdefault(report.problem.number, Score())
        score.points = max(score.points or 0, report.points)
        score.of = report.of or score.of
        score.passed = score.passed or report.verdict == "AC"
        self._save()

    def show_hint(self, number: int, hint: int) -> None:
        score = self.scores.setdefault(number, Score())
        score.hints = max(score.hints, hint)
        self._save()

    def _save(self) -> None:
        content = {str(number): asdict(score) for number, score in sorted(self.scores.items())}
        write = safe_files.write if self.lost else safe_files.replace  # what could not be read is kept
        write(self.path, json.dumps(content, indent=1).encode())


def _score(entry: dict[str, Any]) -> Score:
    score = Score(**entry)
    points = 0 if score.points is None else score.points
    if not all(type(value) is int for value in (points, score.of, score.hints)) or type(score.passed) is not bool:
        raise ValueError("no score")
    return score
