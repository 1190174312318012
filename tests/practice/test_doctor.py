"""The doctor's findings are what the attempts met: a protection that is missing is missed."""

from __future__ import annotations

import pytest

from practice.grader.doctor import _files, _processes


@pytest.mark.parametrize(
    ("without", "missed"),
    [
        ((), set()),
        (("landlock",), {"files of yours cannot be read"}),
        (("seccomp",), {"modes of files cannot be changed", "times of files cannot be changed"}),
        (
            ("seccomp", "landlock"),
            {
                "files of yours cannot be read",
                "files cannot be written",
                "files cannot be removed",
                "modes of files cannot be changed",
                "times of files cannot be changed",
            },
        ),
    ],
)
def test_a_missing_protection_of_files_is_noticed(tmp_path, without, missed):
    assert {each.protection for each in _files(tmp_path, without) if not each.active} == missed


def test_missing_protections_of_processes_are_noticed_and_nothing_is_left_all_the_same():
    findings = {each.protection: each.active for each in _processes(("seccomp", "landlock"))}
    assert findings == {
        "no process can be started": False,
        "no process is left behind": True,
        "the judge cannot be killed": False,
        "no network": False,
    }


def test_what_an_attempt_met_is_told(tmp_path):
    assert "PermissionError" in next(iter(_files(tmp_path, ()))).detail
    assert next(iter(_files(tmp_path / "..", ("landlock",)))).detail == "nothing stopped it"
