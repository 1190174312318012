"""pyproject.toml, constraints.txt and environment.yml agree with each other, this environment and the imports."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from itertools import product
from pathlib import Path

import nbformat
import pytest
import yaml
from IPython.core.inputtransformer2 import TransformerManager
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
TESTS_ONLY = "dashscope"  # installed without its dependencies, so it cannot stand in pyproject.toml
SYSTEMS = {
    "Linux": {"platform_system": "Linux", "sys_platform": "linux", "os_name": "posix"},
    "macOS": {"platform_system": "Darwin", "sys_platform": "darwin", "os_name": "posix"},
    "Windows": {"platform_system": "Windows", "sys_platform": "win32", "os_name": "nt"},
}
INSTALLED = {canonicalize_name(d.metadata["Name"]) for d in metadata.distributions()}
PLACES = list(product(SYSTEMS, ["3.11", "3.12", "3.13"]))


def parsed(lines: list[str]) -> dict[str, Requirement]:
    """Requirement lines by the name that pip compares."""
    requirements = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): r for r in requirements}


DECLARED = parsed(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"])
PINS = parsed(
    [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
)


def pinned_version(name: str) -> Version:
    (specifier,) = PINS[name].specifier
    assert specifier.operator == "==", f"constraints.txt must say {name}==..., not {PINS[name]}."
    return Version(specifier.version)


@cache
def requirements_of(name: str) -> list[Requirement]:
    """What the installed package's metadata ask for; nothing for a package that exists for another system only."""
    return [Requirement(line) for line in metadata.requires(name) or []] if name in INSTALLED else []


@cache
def needed(system: str, python: str) -> set[str]:
    """All packages that the declared ones bring there, by the metadata found here; torch pins its CUDA ones itself."""
    environment = {**SYSTEMS[system], "python_version": python, "python_full_version": python + ".0"}
    todo = [(name, frozenset(r.extras)) for name, r in DECLARED.items()]
    seen = set(todo)
    while todo:
        name, extras = todo.pop()
        for r in requirements_of(name):
            item = canonicalize_name(r.name), frozenset(r.extras)
            wanted = r.marker is None or any(r.marker.evaluate({**environment, "extra": e}) for e in extras | {""})
            if wanted and item not in seen and not item[0].startswith(("cuda-", "nvidia-", "triton")):
                seen.add(item)
                todo.append(item)
    return {name for name, _ in seen}


def code_of(path: Path) -> Iterator[str]:
    """The Python text of a module, or of a notebook's code cells: magic lines become calls, a leading %%time goes."""
    if path.suffix == ".py":
        yield path.read_text(encoding="utf-8")
        return
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            yield TransformerManager().transform_cell(re.sub(r"^%%.*\n", "", cell.source))


def imported_names(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def test_conda_users_get_the_packages_and_bounds_of_pyproject():
    (pip_part,) = (part["pip"] for part in CONDA if isinstance(part, dict))
    options = [line for line in pip_part if line.startswith("-")]
    assert options == ["-c constraints.txt", "-e ."]
    assert parsed([line for line in pip_part if not line.startswith("-")]) == DECLARED


def test_conda_itself_brings_only_pip_and_the_python_of_pyproject():
    assert [part for part in CONDA if isinstance(part, str)] == [f"python{PROJECT['requires-python']}", "pip"]


def test_this_python_is_within_the_bounds_of_pyproject():
    assert SpecifierSet(PROJECT["requires-python"]).contains(".".join(map(str, sys.version_info[:3])))


@pytest.mark.parametrize("name", DECLARED)
def test_the_installed_version_is_within_the_bounds_of_pyproject(name):
    assert DECLARED[name].specifier.contains(metadata.version(name))


@pytest.mark.parametrize("name", DECLARED)
def test_the_pinned_version_is_within_the_bounds_of_pyproject(name):
    assert DECLARED[name].specifier.contains(pinned_version(name))


@pytest.mark.parametrize(("system", "python"), PLACES)
def test_every_package_that_an_installation_brings_is_pinned(system, python):
    environment = {**SYSTEMS[system], "python_version": python}
    pinned = {name for name, pin in PINS.items() if pin.marker is None or pin.marker.evaluate(environment)}
    assert needed(system, python) - pinned == set()


def test_nothing_is_pinned_that_no_installation_brings():
    brought = set().union(*(needed(*place) for place in PLACES))
    assert set(PINS) - brought == {TESTS_ONLY}


def test_what_is_installed_here_is_what_is_pinned():
    installed = {name: Version(metadata.version(name)) for name in PINS if name in INSTALLED}
    assert {n: str(v) for n, v in installed.items() if Version(v.public) != pinned_version(n)} == {}


def test_every_pin_installs_on_the_oldest_python_that_pyproject_admits():
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    found = {name: metadata.metadata(name).get_all("Requires-Python") for name in PINS if name in INSTALLED}
    bounds = {name: each[0] for name, each in found.items() if each}
    assert {name: bound for name, bound in bounds.items() if not SpecifierSet(bound).contains(oldest)} == {}


def test_every_third_party_import_of_the_tree_is_declared():
    providers = metadata.packages_distributions()
    ours = {"handbook", "practice", "tests"}
    files = [f for folder in [*ours, "notebooks"] for f in (ROOT / folder).rglob("*") if f.suffix in {".py", ".ipynb"}]
    undeclared: dict[str, list[str]] = {}
    for file in files:
        if file.is_relative_to(ROOT / "practice") and file.parent.name in ("hostile", "solutions", "earlier"):
            continue  # submissions, which come with names of their own, and are not run here
        for name in {n for code in code_of(file) for n in imported_names(code)} - ours - sys.stdlib_module_names:
            packages = {canonicalize_name(p) for p in providers.get(name, [name])}
            if not packages & {*DECLARED, TESTS_ONLY}:
                undeclared.setdefault(name, []).append(str(file.relative_to(ROOT)))
    assert undeclared == {"rich": ["practice/grader/rich_terminal.py"]}, "the judge uses it where it is installed"


def test_the_package_with_qwens_vocabulary_is_installed():
    try:
        version, files = metadata.version(TESTS_ONLY), metadata.files(TESTS_ONLY) or []
    except metadata.PackageNotFoundError:
        pytest.fail("The tests need Qwen's vocabulary: pip install -c constraints.txt --no-deps dashscope")
    assert Version(version) == pinned_version(TESTS_ONLY)
    assert any(file.name == "qwen.tiktoken" for file in files)
