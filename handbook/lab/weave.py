"""From the cells of a chapter to the module that it builds: the notebook is the source.

    #| export NAME.py       first line of a cell: the cell goes, in order, into handbook/NAME.py
    @part_of(ClassName)     above a function in a later cell: one more method of a class of that module

In the notebook a part is attached to its class when the cell runs. In the module it stands in the class's body: at the
end, or in the place of the earlier method whose name it bears. Text inside string literals is never re-indented, but
for docstrings, whose indentation means nothing. What would mean one thing in the notebook and another in the module is
an error (`handbook.lab.weave_rules`), and then no file is written. The idea of the marks: nbdev's `#| export`, d2l's
`add_to_class`.

`python -m handbook.lab.weave` writes, `python -m handbook.lab.weave --check` compares byte for byte.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import io
import itertools
import json
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from handbook.lab import weave_rules as rules
from handbook.lab.weave_rules import WeaveError

ROOT = Path(__file__).parents[2]
Member = TypeVar("Member")
Import = tuple[str, str, str | None]  # module ("" in `import x`), name, alias


def part_of(cls: type) -> Callable[[Member], Member]:
    """Attach the function (property, staticmethod, ...) below to `cls`; instances that exist have it, too."""

    def attach(member: Member) -> Member:
        function: Any = next((getattr(member, a) for a in ("fget", "func", "__func__") if hasattr(member, a)), member)
        setattr(cls, function.__name__, member)
        if hasattr(member, "__set_name__"):  # a cached_property learns its name in a class body only
            member.__set_name__(cls, function.__name__)
        return member

    return attach


@dataclass
class Piece:
    """A top-level statement of an exported cell with the comments above it, or the comments that end a cell."""

    where: str  # notebook and cell
    node: Any  # the statement, None for comments
    lines: dict[int, str]  # by number in the cell
    literal: set[int]  # lines that begin inside a string literal and must stay as they are
    gap: int  # blank lines above
    parts: dict[str, Piece] = field(default_factory=dict)  # of a class

    def error(self, at: ast.AST, sentence: str) -> WeaveError:
        return WeaveError(f"{self.where}, line {getattr(at, 'lineno', next(iter(self.lines)))}: {sentence}")

    def method(self) -> list[str]:
        """The piece as a method of a class."""
        return [line if n in self.literal or not line.strip() else f"    {line}" for n, line in self.lines.items()]

    def woven(self) -> list[str]:
        """The piece as it stands in the module: a class with its parts."""
        lines = {n: [line] for n, line in self.lines.items()}
        added = dict(self.parts)
        for node in self.node.body if added else []:
            if isinstance(node, rules.FUNCTION) and node.name in added:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                while self.lines[first - 1].lstrip().startswith("#"):
                    first -= 1
                lines |= {n: [] for n in range(first, (node.end_lineno or 0) + 1)}
                lines[first] = added.pop(node.name).method()
        for part in added.values():
            lines[max(lines) + 1] = ["", *part.method()]
        return [line for group in lines.values() for line in group]


def _pieces(where: str, text: str) -> Iterator[Piece]:
    try:
        tree = ast.parse(text)
        compile(tree, where, "exec")  # sees what the parser does not: `return` outside a function
    except SyntaxError as e:
        sentence = f"{e.msg}. An exported cell is plain Python, without magics and shell commands."
        raise WeaveError(f"{where}, line {e.lineno}: {sentence}") from e
    if not tree.body:
        raise WeaveError(f"{where}, line 1: an exported cell without a statement; fill it or delete it.")
    lines = dict(enumerate(text.split("\n"), start=1))
    literal = _inside_strings(text, tree)
    done = 1  # the mark
    for node in [*tree.body, None]:
        end: int = getattr(node, "end_lineno", len(lines))
        if node and node.lineno <= done:
            raise WeaveError(f"{where}, line {node.lineno}: two statements share it; give each a line of its own.")
        if first := next((n for n in range(done + 1, end + 1) if lines[n].strip()), None):
            gap = 1 if done == 1 else first - done - 1
            yield Piece(where, node, {n: lines[n] for n in range(first, end + 1)}, literal, gap)
        done = end


def _inside_strings(text: str, tree: ast.Module) -> set[int]:
    """Lines that begin inside a string literal, docstrings excepted."""
    lines: set[int] = set()
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "STRING" or kind.endswith("STRING_START"):  # an f-string is many tokens since Python 3.12
            starts.append(token.start[0])
        if kind == "STRING" or kind.endswith("STRING_END"):
            lines.update(range(starts.pop() + 1, token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, rules.DEFINITION) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def _import_lines(imports: Iterable[Import]) -> Iterator[str]:
    """Import statements as ruff sorts them: future, standard library, third party, this package."""
    statements: dict[tuple[str, str], list[str]] = {}  # by module and, where the name stands alone, name
    for module, name, alias in imports:
        written = f"{name} as {alias}" if alias else name
        statements.setdefault((module, written if alias or not module else ""), []).append(written)

    def order(name: str) -> tuple[Any, ...]:  # CONSTANTS, Classes, functions; a2 before a10
        kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
        return kind, [int(run) if run.isdigit() else run for run in re.split(r"(\d+)", name.lower())]

    def section(statement: tuple[str, str]) -> int:
        top = re.split(r"\W", statement[0] or statement[1])[0]
        return 0 if top == "__future__" else 1 if top in sys.stdlib_module_names else 3 if top == "handbook" else 2

    def place(statement: tuple[str, str]) -> tuple[Any, ...]:
        module, name = statement
        return section(statement), bool(module), order(module or name)[1], min(map(order, statements[statement]))

    for _, group in itertools.groupby(sorted(statements, key=place), key=section):
        yield ""
        for module, name in group:
            names = sorted(statements[module, name], key=order)
            line = f"from {module} import {', '.join(names)}" if module else f"import {name}"
            yield from [line] if len(line) <= 120 else [f"from {module} import (", *(f"    {n}," for n in names), ")"]


def _module(name: str, notebook: str, pieces: list[Piece]) -> str:
    """The source of handbook/NAME.py."""
    rules.check_docstring(pieces[0], name)
    imports: dict[Import, str] = {("__future__", "annotations", None): "annotations"}
    kept: list[Piece] = []
    parts: list[tuple[Piece, Piece]] = []  # each with its class
    for piece in pieces[1:]:
        if isinstance(piece.node, (ast.Import, ast.ImportFrom)):
            rules.add_imports(piece, name, imports)
        elif mark := rules.mark(piece):
            owner = rules.owner(piece, mark, kept, name)
            piece.node.decorator_list.remove(mark)
            piece.lines = {n: line for n, line in piece.lines.items() if not mark.lineno <= n <= (mark.end_lineno or 0)}
            rules.check_part(piece, owner)
            owner.parts[piece.node.name] = piece
            parts.append((piece, owner))
        else:
            kept.append(piece)
    rules.check_globals(kept, parts, imports)
    lines = [*pieces[0].woven(), "", f"# Woven from notebooks/zh/{notebook} by make build: edit it there."]
    lines += _import_lines(imports)
    previous = None
    for piece in kept:
        apart = any(isinstance(p.node, rules.DEFINITION) for p in (previous, piece) if p)
        lines += [""] * (2 if apart else min(2, piece.gap or not previous)) + piece.woven()
        previous = piece
    return "\n".join(lines) + "\n"


def woven(path: Path) -> dict[str, str]:
    """The modules that the notebook at `path` builds: name, without .py, to source."""
    pieces: dict[str, list[Piece]] = {}
    for index, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], start=1):
        if cell["cell_type"] == "code":
            where = f"{path.name}, cell {index} (id {cell.get('id')})"
            text = "".join(cell["source"]).replace("\r\n", "\n").rstrip()
            if name := rules.exported(where, text):
                pieces.setdefault(name, []).extend(_pieces(where, text))
    return {name: _module(name, path.name, of_module) for name, of_module in pieces.items()}


def difference(notebook: str) -> None:
    """Print how handbook/ differs from what a notebook (its name, without .ipynb), as last saved, weaves to."""
    here = Path(f"{notebook}.ipynb")  # a kernel runs in its notebook's folder
    for name, source in woven(here if here.exists() else ROOT / "notebooks" / "zh" / here).items():
        module = ROOT / "handbook" / f"{name}.py"
        diff = _diff(module.read_text(encoding="utf-8") if module.exists() else "", source, f"handbook/{name}.py")
        print("\n".join(diff) or f"handbook/{name}.py is identical to what these cells weave to.")


def _diff(old: str, new: str, name: str) -> list[str]:
    ends = f"{name} as it is", f"{name} as the cells have it"
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), *ends, lineterm=""))


def _english(chinese: Path, english: Path) -> str:
    """The English notebook with the code cells and outputs of the Chinese one."""
    theirs, ours = (json.loads(path.read_text(encoding="utf-8")) for path in (chinese, english))
    for pair in itertools.zip_longest(*([(c.get("id"), c["cell_type"]) for c in nb["cells"]] for nb in (theirs, ours))):
        if pair[0] != pair[1]:
            raise WeaveError(
                f"{chinese.name} must have the same cells in notebooks/zh and notebooks/en; where one has {pair[0]}, "
                f"the other has {pair[1]} (id and type; None: no cell)."
            )
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
        english = root / "notebooks" / "en" / notebook.name
        if english.exists():
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
    old = {path: path.read_bytes() if path.exists() else b"" for path in contents}
    changed = {path: text for path, text in contents.items() if old[path] != text.encode()}
    for path, text in changed.items():
        name = path.relative_to(root).as_posix()
        if check:
            print(f"{name} is not what its notebook weaves to; `make build` writes it.")
            print("\n".join(_diff(old[path].decode(errors="replace"), text, name)[:40]))
        else:
            draft = path.with_suffix(".draft")
            draft.write_text(text, encoding="utf-8", newline="\n")
            draft.replace(path)
            print(f"{name}: written.")
    wrong = len(changed) if check else 0
    print(f"{len(contents) - wrong} of {len(contents)} files are what the notebooks weave to.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
