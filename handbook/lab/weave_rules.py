"""What the weaver refuses, because it would mean one thing in the notebook and another in the module.

In the notebook a part is a function outside of any class: it is attached after its class was created, and its name is
a global from then on. In the module it stands in the class's body: it is there when the class is created, and its name
is no global. Imports and parts move up in the module; all other statements keep their order. Each rule below is one
way in which this shows. `handbook.lab.weave` asks; what breaks a rule raises WeaveError.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import symtable
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handbook.lab.weave import Import, Piece

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITION = (*FUNCTION, ast.ClassDef)
BUILTINS = {name for name in dir(builtins) if not name.startswith("_")}
# Python looks for these while it creates a class.
AT_CREATION = {"__class_getitem__", "__eq__", "__init_subclass__", "__new__", "__post_init__"}


class WeaveError(Exception):
    """Notebook, cell and line, what is wrong there, and what to do."""


def exported(where: str, text: str) -> str | None:
    """The module that a code cell goes into, without .py; None if it bears no mark."""
    name = None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#|"):
            mark = re.fullmatch(r"#\| export ([a-z][a-z0-9_]*)\.py\s*", line)
            if not mark or keyword.iskeyword(mark[1]) or number > 1:
                raise WeaveError(
                    f"{where}, line {number}: `{line}` is not understood. The one mark is `#| export NAME.py`, as the "
                    f"first line of a cell; NAME is a plain module name: lower-case letters, digits, underscores."
                )
            name = mark[1]
        elif line.startswith("@part_of") and name is None:
            raise WeaveError(
                f"{where}, line {number}: a part in a cell that is not exported would be in the notebook alone. Begin "
                f"the cell with `#| export NAME.py`, or try things out on a subclass."
            )
    return name


def check_docstring(piece: Piece, module: str) -> None:
    if ast.get_docstring(ast.Module([piece.node], [])) is None:
        raise piece.error(piece.node, f"the first cell of {module}.py must begin with the docstring of the module.")


def add_imports(piece: Piece, module: str, imports: dict[Import, str]) -> None:
    """Add what the piece imports to `imports`, with the name that it binds."""
    node = piece.node
    source = getattr(node, "module", "")  # None: `from . import x`
    for name, alias in ((a.name, a.asname) for a in node.names):
        if (source, name, alias) == ("handbook.lab.weave", "part_of", None):
            continue
        path = f"{source}.{name}" if source else name
        if getattr(node, "level", 0) or re.match(rf"(handbook\.lab|handbook\.{module}|practice)\b", path):
            raise piece.error(node, f"{module}.py must not import {path}; do it in a cell that is not exported.")
        if any("#" in line for line in piece.lines.values()):
            raise piece.error(node, "imports are collected at the top of the module: a comment on one has no place.")
        binds = alias or (name if source else name.split(".")[0])
        same = [key for key, bound in imports.items() if bound == binds and key != (source, name, alias)]
        if any(key[0] or key[2] or source or alias for key in same):
            raise piece.error(node, f"two imports of {module}.py bind {binds}; in a module one of them would win.")
        imports[source, name, alias] = binds


def mark(piece: Piece) -> ast.Call | None:
    """The decorator `part_of(ClassName)` of a part; None if the piece is none."""
    decorators = getattr(piece.node, "decorator_list", [])
    if not any(re.match(r"part_of\b", ast.unparse(d)) for d in decorators):
        return None
    if not isinstance(piece.node, FUNCTION):
        raise piece.error(piece.node, f"part_of stands above the class {piece.node.name}; only functions are parts.")
    if not re.fullmatch(r"part_of\(\w+\)", ast.unparse(decorators[0])):
        raise piece.error(piece.node, "the mark is @part_of(ClassName), the first of the decorators.")
    return decorators[0]


def owner(piece: Piece, mark: Any, kept: list[Piece], module: str) -> Piece:
    """The class that the part is of."""
    for candidate in kept:
        if isinstance(candidate.node, ast.ClassDef) and candidate.node.name == mark.args[0].id:
            return candidate
    raise piece.error(mark, f"no earlier cell that goes into {module}.py defines the class {mark.args[0].id}.")


def check_part(part: Piece, owner: Piece) -> None:
    """Refuse what says one thing outside of a class and another inside of it."""
    name, cls = part.node.name, owner.node.name
    for node in ast.walk(part.node):
        if isinstance(node, (ast.Call, ast.Name)) and ast.unparse(node) in ("super()", "__class__"):
            raise part.error(
                node,
                f"super() without arguments works inside of a class body alone, where in the notebook this is not: "
                f"write super({cls}, self), or move {name} to the cell of {cls}.",
            )
        for word in () if isinstance(node, ast.Constant) else _words(node):
            if word.startswith("__") and not word.endswith("__"):
                raise part.error(node, f"Python renames {word}, but inside of a class body only: drop an underscore.")
    if name in AT_CREATION or (name.startswith("__") and owner.node.decorator_list):
        raise part.error(part.node, f"Python looks for {name} when it creates {cls}: move it to the cell of {cls}.")
    methods = [node.name for node in owner.node.body if isinstance(node, FUNCTION)]
    if name in _members(owner) and methods.count(name) != 1:
        raise part.error(part.node, f"{name} in {cls} is not one plain method: change it in the cell of {cls}.")
    body = owner.node.body[0]
    if owner.lines[body.lineno][: body.col_offset].strip():
        raise owner.error(body, f"{cls} has parts: begin its body on a new line.")


def check_globals(kept: list[Piece], parts: list[tuple[Piece, Piece]], imports: dict[Import, str]) -> None:
    """Refuse globals that the module lacks, or that it would bind or read at another moment than the notebook."""
    bound = dict.fromkeys(imports.values(), -1)
    for place, piece in enumerate(kept):
        for name in _globals(piece)[0]:
            if bound.setdefault(name, place) != place:
                raise piece.error(piece.node, f"{name} is bound before in this module: give every global one place.")
    attached = {part.node.name for part, _ in parts}
    for piece in [*kept, *(part for part, _ in parts)]:
        for name, node in _globals(piece)[1].items():
            if name in attached:
                raise piece.error(node, f"this global {name} is in the notebook the part of that name: rename one.")
            if name == "part_of":
                raise piece.error(node, "part_of marks functions at the top level of a cell, as @part_of(ClassName).")
            if name not in bound and name not in BUILTINS:
                raise piece.error(node, f"no cell that goes into this module binds {name}: export it, or pass it in.")
    for part, owner in parts:
        cls = owner.node.name
        if part.node.name in bound:
            raise part.error(part.node, f"in the notebook the part {part.node.name} replaces a global: rename one.")
        for node in _read_at_once(part.node):
            if node.id in _members(owner) or bound.get(node.id, -1) >= kept.index(owner):
                raise part.error(node, f"{node.id} is read when {cls} is created, in the module before it is bound.")
        for node in _read_at_once(owner.node):
            if node.id == part.node.name:
                raise owner.error(node, f"{cls} reads {node.id} when it is created, in the notebook before the part.")


def _members(cls: Piece) -> set[str]:
    """The names that a class's body binds."""
    top = symtable.symtable("\n".join(cls.lines.values()), cls.where, "exec")
    body = next(table for table in top.get_children() if table.get_name() == cls.node.name)
    return {s.get_name() for s in body.get_symbols() if s.is_assigned()}


def _globals(piece: Piece) -> tuple[set[str], dict[str, ast.Name]]:
    """The globals that the piece binds, and those that it names, at once or when its functions are called."""
    top = symtable.symtable("\n".join(piece.lines.values()), piece.where, "exec")
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    names: set[str] = set()
    tables = [top]
    for table in tables:
        names |= {s.get_name() for s in table.get_symbols() if table is top or s.is_global()}
        tables += table.get_children()
    at = {node.id: node for node in ast.walk(piece.node or ast.Module([], [])) if isinstance(node, ast.Name)}
    return bound, {name: at[name] for name in sorted(names & at.keys())}


def _read_at_once(node: ast.AST) -> Iterator[ast.Name]:
    """The names read when a statement runs: no annotations, and of functions the decorators and defaults alone."""
    if isinstance(node, ast.Name):
        yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns") and not (name == "body" and isinstance(node, FUNCTION)):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _read_at_once(child)


def _words(node: ast.AST) -> Iterator[str]:
    for _, value in ast.iter_fields(node):
        yield from (v for v in (value if isinstance(value, list) else [value]) if isinstance(v, str))
