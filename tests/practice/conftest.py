"""No test of the judge writes where a learner's solutions are."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def solutions_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("PRACTICE_SOLUTIONS", str(tmp_path_factory.mktemp("solutions")))
