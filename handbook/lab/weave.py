"""From the cells of a chapter to the module that it builds: the notebook is the source.

    #| export NAME.py       first line of a cell: the cell goes, in order, into handbook/NAME.py
    @part_of(ClassName)     first decorator of a function in a later cell: one more method of a class of that module

In the notebook a part is attached to its class when the cell runs. In the module it stands in the class's body: at the
end, or in the place of the method whose name it bears. Ruff sorts the imports and lays the module out. What would mean
one thing in the notebook and another in the module is an error (`handbook.lab.weave_rules`), and then no file is
written. The idea of the marks: nbdev's `#| export`, d2l's `add_to_class`.

`python -m handbook.lab.weave` writes, `python -m handbook.lab.weave --check` compares byte for byte.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handbook.lab import weave_rules as rules
from handbook.lab.weave_rules import WeaveError

ROOT = Path(__file__).parents[2]
Texts = dict[str | int, str]  # a class: the text of each member by its name, if it has one; anything else: one text


def part_of(cls: type) -> Callable[[Any], Any]:
    """Attach the function (property, staticmethod, ...) below to `cls`; instances that exist have it, too."""

    def attach(member: Any) -> Any:
        function = getattr(member, "fget", getattr(member, "func", member))  # of a property, of a cached one
        setattr(cls, function.__name__, member)
        if hasattr(member, "__set_name__"):  # which Python calls for members that stand in the class itself
            member.__set_name__(cls, function.__name__)
        return member

    return attach


@dataclass
class Module:
    """A module as it grows, cell by cell. The text of a statement begins with the blank lines and comments above it."""

    name: str
    notebook: str
    docstring: str = ""
    imports: list[str] = field(default_factory=lambda: ["from __future__ import annotations\n"])
    statements: list[Texts] = field(default_factory=list)
    classes: dict[str, Texts] = field(default_factory=dict)  # those of the statements that are classes
    parts: list[tuple[str, ast.FunctionDef]] = field(default_factory=list)  # each with its notebook and cell

    def add(self, where: str, text: str) -> None:
        """Add an exported cell; `where` names notebook and cell."""
        tree = rules.parsed(where, text)
        if not self.docstring and ast.get_docstring(tree) is None:
            raise WeaveError(f"{where}, line 1: the first cell of {self.name}.py must begin with its docstring.")
        lines = [f"{line}\n" for line in text.split("\n")]
        lines[0] = "\n"  # was the mark
        indented = _indented(lines, tree)
        end = 0
        for node in tree.body:
            start, end = end, node.end_lineno or 0
            match node:
                case _ if not self.docstring:
                    self.docstring = "".join(lines[start:end])
                case ast.Import() | ast.ImportFrom():
                    self.imports += lines[start:end]
                case ast.ClassDef():
                    self.classes[node.name] = _members(node, lines, start)
                    self.statements.append(self.classes[node.name])
                case ast.FunctionDef(decorator_list=[ast.Call(ast.Name("part_of"), [ast.Name(owner)]) as mark, *_]):
                    if owner not in self.classes:
                        sentence = f"no earlier cell that goes into {self.name}.py defines the class {owner}."
                        raise WeaveError(f"{where}, line {mark.lineno}: {sentence}")
                    rules.check_part(where, node, owner)
                    self.parts.append((where, node))
                    indented[mark.lineno - 1] = ""
                    self.classes[owner][node.name] = "".join(indented[start:end])
                case _:
                    self.statements.append({"": "".join(lines[start:end])})
        self.statements.append({"": "".join(lines[end:])})  # comments

    def source(self) -> str:
        """The text of handbook/NAME.py."""
        header = f"\n# Woven from notebooks/zh/{self.notebook} by make build: edit it there.\n\n"
        body = [text for statement in self.statements for text in statement.values()]
        text = "".join([self.docstring, header, *self.imports, *body])
        return rules.checked(self.notebook, self.name, text, self.parts)


def _indented(lines: list[str], tree: ast.Module) -> list[str]:
    """The lines one level deeper, but for those that begin inside a string literal. Ruff moves docstrings."""
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    inside = {index for node in literals for index in range(node.lineno, node.end_lineno or 0)}
    return [line if index in inside else f"    {line}" for index, line in enumerate(lines)]


def _members(node: ast.ClassDef, lines: list[str], start: int) -> Texts:
    end = node.lineno
    members: Texts = {"": "".join(lines[start:end])}
    for member in node.body:
        start, end = end, member.end_lineno or 0
        name = getattr(member, "name", start)
        members[name] = members.get(name, "") + "".join(lines[start:end])  # a property and its setter are one
    return members


def woven(path: Path) -> dict[str, str]:
    """The modules that the notebook at `path` builds: name, without .py, to source."""
    modules: dict[str, Module] = {}
    for index, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], start=1):
        if cell["cell_type"] == "code":
            where = f"{path.name}, cell {index} (id {cell.get('id')})"
            text = "".join(cell["source"])
            if name := rules.exported(where, text):
                modules.setdefault(name, Module(name, path.name)).add(where, text)
    return {name: module.source() for name, module in modules.items()}


def difference(notebook: str) -> None:
    """Print how handbook/ differs from what a notebook (its name, without .ipynb), as last saved, weaves to."""
    here = Path(f"{notebook}.ipynb")  # a kernel runs in its notebook's folder
    for name, source in woven(here if here.exists() else ROOT / "notebooks" / "zh" / here).items():
        diff = _diff(ROOT / "handbook" / f"{name}.py", source)
        print("\n".join(diff) or f"handbook/{name}.py is identical to what these cells weave to.")


def _diff(path: Path, text: str) -> list[str]:
    old = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    ends = f"{path.name} as it is", f"{path.name} as the cells have it"
    return list(difflib.unified_diff(old.splitlines(), text.splitlines(), *ends, lineterm=""))


def _english(chinese: Path, english: Path) -> str:
    """The English notebook with the code cells and outputs of the Chinese one."""
    theirs, ours = (json.loads(path.read_text(encoding="utf-8")) for path in (chinese, english))
    keys = [[(cell.get("id"), cell["cell_type"]) for cell in notebook["cells"]] for notebook in (theirs, ours)]
    for here, there in itertools.zip_longest(*keys):
        if here != there:
            raise WeaveError(f"{chinese.name}: notebooks/zh has the cell {here} where notebooks/en has {there}.")
    cells = [c if c["cell_type"] == "code" else e for c, e in zip(theirs["cells"], ours["cells"], strict=True)]
    return json.dumps({**theirs, "cells": cells}, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def files(root: Path = ROOT) -> dict[Path, str]:
    """Every file that the notebooks decide, with what it must contain."""
    contents: dict[Path, str] = {}
    for notebook in sorted((root / "notebooks" / "zh").glob("*.ipynb")):
        for name, source in woven(notebook).items():
            module = root / "handbook" / f"{name}.py"
            if module in contents:
                raise WeaveError(f"{notebook.name} exports {name}.py, and so does an earlier notebook: rename one.")
            contents[module] = source
        if (english := root / "notebooks" / "en" / notebook.name).exists():
            contents[english] = _english(notebook, english)
    return contents


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m handbook.lab.weave", description="Weave the chapters' modules.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file differs by a byte")
    check = parser.parse_args(arguments).check
    try:
        contents = files(root)
    except WeaveError as error:
        print(error, file=sys.stderr)
        return 1
    wrong = 0
    for path, text in contents.items():
        name = path.relative_to(root).as_posix()
        if path.exists() and path.read_bytes() == text.encode():
            continue
        if check:
            wrong += 1
            print(f"{name} is not what its notebook weaves to; `make build` writes it.")
            print("\n".join(_diff(path, text)[:40]))
        else:
            draft = path.with_suffix(".draft")
            draft.write_text(text, encoding="utf-8", newline="\n")
            draft.replace(path)
            print(f"{name}: written.")
    print(f"{len(contents) - wrong} of {len(contents)} files are what the notebooks weave to.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
