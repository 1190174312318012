"""What the weaver refuses, because it would mean one thing in the notebook and another in the module.

In the notebook a part is a function outside of any class, and its name is a global from then on. In the module it
stands in the class's body, and its name is no global. For the rest ruff is asked.
"""

from __future__ import annotations

import ast
import re
import subprocess
import symtable
import sys
from pathlib import Path


class WeaveError(Exception):
    """Where something is wrong (notebook, cell and line), what it is, and what to do."""


def exported(where: str, text: str) -> str | None:
    """The module that a code cell goes into, without .py; None if it bears no mark."""
    mark = re.match(r"#\| export ([a-z]\w*)\.py\s*$", text, re.MULTILINE)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#|") and not (mark and number == 1):
            sentence = f"`{line}` is not understood. The one mark is `#| export NAME.py`, as the first line of a cell."
            raise WeaveError(f"{where}, line {number}: {sentence}")
        if line.startswith("@part_of") and not mark:
            sentence = "a part that is not exported would be in the notebook alone: export it, or try it in a subclass."
            raise WeaveError(f"{where}, line {number}: {sentence}")
    return mark and mark[1]


def parsed(where: str, text: str) -> ast.Module:
    """The syntax tree of an exported cell."""
    try:
        tree = ast.parse(text)
    except SyntaxError as e:
        sentence = f"{e.msg}. An exported cell is plain Python, without magics and shell commands."
        raise WeaveError(f"{where}, line {e.lineno}: {sentence}") from e
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]:
        if re.match(r"(from|import) (handbook(\.| import )lab|practice)\b", ast.unparse(node)):
            sentence = f"a module must not `{ast.unparse(node)}`; do it in a cell that is not exported."
            raise WeaveError(f"{where}, line {node.lineno}: {sentence}")
    return tree


def check_part(where: str, part: ast.FunctionDef, owner: str) -> None:
    """Refuse what says one thing outside of a class and another inside of it."""
    for node in ast.walk(part):
        match node:
            case ast.Call(func=ast.Name(id="super"), args=[]) | ast.Name(id="__class__"):
                sentence = f"super() without arguments works in a class body only; write super({owner}, self)."
                raise WeaveError(f"{where}, line {node.lineno}: {sentence}")
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                if name.startswith("__") and not name.endswith("__"):
                    sentence = f"Python renames {name}, but inside of a class body only: drop an underscore."
                    raise WeaveError(f"{where}, line {node.lineno}: {sentence}")


def checked(notebook: str, name: str, source: str, parts: list[tuple[str, ast.FunctionDef]]) -> str:
    """A module, laid out by ruff. Refuses parts (each with notebook and cell) named like a global in use there."""
    source = _ruff(notebook, name, source, "check", "--select=I", "--fix")
    source = _ruff(notebook, name, source, "format")
    tables = [symtable.symtable(source, name, "exec")]
    for table in tables:
        tables += table.get_children()
    names = {symbol.get_name() for table in tables for symbol in table.get_symbols() if symbol.is_global()}
    for where, part in parts:
        if part.name in names:
            sentence = f"in the notebook the part {part.name} takes the place of a global that is in use: rename one."
            raise WeaveError(f"{where}, line {part.lineno}: {sentence}")
    _ruff(notebook, name, source, "check", "--select=F7,F811,F82")  # syntax; names bound twice; names bound nowhere
    return source


def _ruff(notebook: str, name: str, source: str, *arguments: str) -> str:
    """What ruff makes of a module of handbook/, with the configuration of this repository."""
    command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", f"--stdin-filename=handbook/{name}.py", "-"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, input=source, capture_output=True, encoding="utf-8", cwd=root, check=False)
    if done.returncode:
        raise WeaveError(f"{notebook}: ruff refuses the {name}.py that it weaves to.\n\n{done.stderr or done.stdout}")
    return done.stdout
