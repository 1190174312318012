"""The cage holds for root and for an ordinary user; what is missing in it is seen. Each attempt is made for real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from practice.grader.contract import Limits
from practice.grader.process import Child, standard_library
from practice.grader.protocol import Value

ROOT = Path(__file__).parents[2]
NOBODY = 65534
EXAMINE = f"""
import json, os, sys
sys.path.insert(0, {str(ROOT)!r})
if len(sys.argv) > 1:
    os.setgid(int(sys.argv[1]))
    os.setuid(int(sys.argv[1]))
from practice.grader.doctor import doctor
print(json.dumps([os.getuid(), {{each.protection: each.active for each in doctor()}}]))
"""


def python_of(user: int) -> str | None:
    """A Python that the user may run."""
    for python in filter(None, (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin"))):
        run = [python, "-c", f"import os, sys; os.setuid({user}); os.execv({python!r}, [{python!r}, '-c', ''])"]
        if subprocess.run(run, capture_output=True, check=False).returncode == 0:
            return python
    return None


# Root can try both; an ordinary user is what is to be tried anyhow.
USERS = [os.getuid()] if os.getuid() or python_of(NOBODY) is None else [0, NOBODY]


@pytest.mark.parametrize("user", USERS)
def test_every_protection_is_active(user):
    command = [sys.executable] if user == os.getuid() else [python_of(user) or "", str(user)]
    command[1:1] = ["-B", "-c", EXAMINE]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    seen, findings = json.loads(run.stdout)
    assert seen == user
    assert len(findings) == 14 and all(findings.values()), findings


@pytest.fixture(scope="module")
def child():
    child = Child(Limits())
    child.room = 10_000
    child.ask(20, "load", "class Probe:\n    def do(self, code):\n        return eval(code)\n", "Probe")
    child.ask(20, "new", {})
    yield child
    child.end()


def do(child: Child, code: str) -> object:
    reply = child.ask(20, "call", "do", (code,), {})
    return reply.value if isinstance(reply, Value) else reply.type_name


@pytest.mark.parametrize(
    "module",
    "array bisect collections ctypes dataclasses decimal enum functools hashlib heapq itertools json math queue random "
    "re statistics struct threading typing zlib sqlite3 xml.etree.ElementTree".split(),
)
def test_the_standard_library_can_be_imported(child, module):
    assert do(child, f"__import__({module!r}).__name__") == module.partition(".")[0]


@pytest.mark.parametrize("module", ["numpy", "torch", "practice", "handbook", "pip"])
def test_no_other_package_can_be_imported(child, module):
    assert do(child, f"__import__({module!r})") == "ModuleNotFoundError"


@pytest.mark.parametrize("path", [__file__, "/etc/passwd", "/proc/self/environ", "/proc/self/mem", "/dev/null", "."])
def test_nothing_else_can_be_read(child, path):
    assert do(child, f"__import__('os').open({path!r}, 0)") == "PermissionError"


def test_packages_beside_the_standard_library_are_not_among_what_can_be_read():
    readable = [Path(path) for path, names_only in standard_library() if not names_only]
    for place in {Path(path) for path in sys.path if path.endswith("-packages")}:
        assert not any(place.is_relative_to(path) for path in readable)


def test_threads_can_be_started_and_joined(child):
    code = "[thread.start() or thread.join() for thread in [__import__('threading').Thread(target=print)]]"
    assert do(child, code) == [None]


def test_what_python_itself_needs_of_the_system_still_works(child):
    assert do(child, "len(__import__('secrets').token_bytes(8))") == 8
    assert do(child, "__import__('time').sleep(0.001)") is None
    assert do(child, "__import__('sys').stdout.isatty()") is False
    assert do(child, "__import__('signal').alarm(0)") == 0
    assert do(child, "__import__('resource').getrlimit(0)") == (2, 3)


def test_limits_cannot_be_lifted_by_root_either(child):
    assert do(child, "__import__('resource').setrlimit(0, (100, 100))") == "ValueError"
    assert do(child, "open('/proc/self/status')") == "PermissionError"
    assert do(child, "__import__('os').setuid(12345)") == "PermissionError"
