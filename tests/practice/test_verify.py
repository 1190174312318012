"""The author's check finds what is wrong with a problem, and nothing wrong with ours."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from practice.grader import margins
from practice.grader import verify as verify_module
from practice.grader.problems import folders, load
from practice.grader.verify import verify
from tests.practice import tiny


@pytest.fixture
def problem(tmp_path, monkeypatch):
    """Problem 131 with few cases, its own folder, and a catalogue of two solutions."""
    monkeypatch.setattr(verify_module, "hostile", lambda problem: [])
    real = load(131)
    for name in ("starter.py", "reference.py", "wrong/no_parent.py", "right/linked_list.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(real.folder / name, tmp_path / name)
    return replace(real, folder=tmp_path, groups=lambda seed: real.groups(seed)[:3])


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_sound_problem_has_no_faults_and_its_table_shows_who_fails_where(problem):
    seen = []
    result = verify(problem, 0, lambda done, total: seen.append((done, total)))
    assert result.faults == []
    header, rows = result.table()
    assert header == ("solution", "verdict", "examples", "chain", "adapter", "diagnosis")
    assert rows == [
        ("starter", "UNATTEMPTED", "x", "x", "x", ""),
        ("reference", "AC", "", "", "", ""),
        ("right/linked_list", "AC", "", "", "", ""),
        ("wrong/no_parent", "WA", "", "x", "", "no_parent"),
    ]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_for_a_wrong_solution_there_is_a_sequence_on_which_it_differs(problem):
    (wrong,) = (each for each in verify(problem, 0).checked if each.name == "wrong/no_parent")
    assert wrong.differs is not None and (failure := wrong.differs.failure) is not None
    assert failure.verdict == "WA" and failure.expected != failure.got and len(failure.moves) == 2


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        (
            "wrong/no_parent.py",
            'f"{lora_id} {block}"',
            'f"{lora_id} {parent} {block}"',
            "the verdict is AC; it should be WA",
        ),
        ("wrong/no_parent.py", "group: chain", "group: adapter", "it passes the group adapter"),
        ("wrong/no_parent.py", "diagnosis: no_parent", "diagnosis: stale_key", ""),
        ("wrong/no_parent.py", " | diagnosis: no_parent", "", ""),
        ("right/linked_list.py", "reversed(block_table)", "block_table", "the verdict is WA; it should be AC"),
        ("starter.py", "raise NotImplementedError", "return None  #", "it should be UNATTEMPTED"),
        ("reference.py", "keys: list[bytes] = []", "keys = [bytes(99 << 20)][:0]", "within one part in 10 of memory"),
    ],
)
def test_a_fault_is_named(problem, name, old, new, fault):
    rewrite(problem.folder / name, old, new)
    faults = verify(problem, 0).faults
    assert len(faults) == bool(fault), faults
    assert all(each.startswith(f"131 {name[:-3]}: ") and fault in each for each in faults)


def test_a_diagnosis_that_is_not_the_one_meant_is_a_fault(problem):
    shutil.copy(problem.folder / "wrong/no_parent.py", problem.folder / "wrong/other.py")
    rewrite(problem.folder / "wrong/other.py", "diagnosis: no_parent", "diagnosis: one_block_back")
    faults = verify(problem, 0).faults
    assert any("the diagnosis is None; it should be one_block_back" in fault for fault in faults)


def test_a_reference_that_is_too_slow_for_its_part_of_the_limits_is_a_fault(problem):
    limits = replace(problem.limits, cpu_seconds=0.05)
    faults = verify(replace(problem, limits=limits), 0).faults
    assert any("131 reference: it takes" in fault for fault in faults)


def test_margins_tell_which_part_of_a_limit_is_used(tmp_path):
    case = tiny.with_speed(0)[-1].cases[0]
    endless = tiny.RIGHT.replace(b"return sum", b"while self.limit == 9: pass\n        return sum")
    tiny_problem = tiny.problem(tmp_path)
    assert 0 < margins.part(tiny_problem, tiny.RIGHT, case, tries=1) < 1
    assert margins.part(tiny_problem, endless, case, tries=1) == pytest.approx(margins.LONGEST, rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("problem", [load(number) for number in folders()], ids=lambda problem: str(problem.number))
def test_our_own_problems_have_no_faults(problem):
    assert verify(problem, 0).faults == []
