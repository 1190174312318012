"""A case written as the Python calls that it makes, and read back: what a story shows, and what `--case` takes.

cache = PrefixCache(num_blocks=4, block_size=2); t1 = cache.allocate([1, 2, 3]); cache.free(t1[0])
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from practice.grader.contract import MAKE, Case, Foreign, Problem, Result, Step
from practice.grader.play import script


class CaseError(Exception):
    """Calls that are no case of this problem: which of them (from 1), and a key of `words` that says what is wrong."""

    def __init__(self, key: str, position: int, detail: str = "") -> None:
        super().__init__(f"{key} at statement {position}: {detail}")
        self.key, self.position, self.detail = key, position, detail


def calls(
    problem: Problem, parameters: Mapping[str, Any], steps: Iterable[Step], widest: int | None = None
) -> list[str]:
    """One line of Python for the first object and for each step; results that are used later have names.

    `widest` is the number of items from which on a list is cut; the lines are then for reading only.
    """
    steps = tuple(steps)
    used = {step for later in steps for step in later.uses()}
    names = {step.id: f"t{number}" for number, step in enumerate((s for s in steps if s.id in used), 1)}
    objects: dict[int | None, str] = {None: problem.variable}
    lines = [f"{problem.variable} = {problem.class_name}({_arguments((), parameters, names, widest)})"]
    for step in steps:
        arguments = _arguments(step.args, step.kwargs, names, widest)
        if step.method == MAKE:
            objects[step.id] = "other" if len(objects) == 1 else f"other{len(objects)}"
            lines.append(f"{objects[step.id]} = {problem.class_name}({arguments})")
            continue
        assigned = f"{names[step.id]} = " if step.id in names else ""
        lines.append(f"{assigned}{objects[step.on]}.{step.method}({arguments})")
    return lines


def _arguments(args: Iterable[Any], kwargs: Mapping[str, Any], names: Mapping[int, str], widest: int | None) -> str:
    def written(value: Any) -> str:
        if isinstance(value, Result):
            return names[value.step] + ("" if value.item is None else f"[{value.item}]")
        return shown(value, widest)

    return ", ".join([*map(written, args), *(f"{name}={written(value)}" for name, value in kwargs.items())])


def shown(value: Any, widest: int | None = 24) -> str:
    """A value as Python writes it; of a longer list or tuple than `widest` both ends; a `Foreign` by type and text."""
    if isinstance(value, Foreign):
        return f"<{value.type_name}: {value.text}>"
    if isinstance(value, (list, tuple)):
        items = [shown(item, widest) for item in value]
        if widest is not None and len(items) > widest:
            kept = max(1, widest // 4)
            items = [*items[:kept], f"... +{len(items) - 2 * kept} ...", *items[-kept:]]
        inside = ", ".join(items) + ("," if isinstance(value, tuple) and len(items) == 1 else "")
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return repr(value)


def read(problem: Problem, text: str) -> Case:
    """The case that a line of calls describes; a CaseError when the rules do not know such a case."""
    try:
        statements = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CaseError("case_no_python", 1, str(error)) from None
    names: dict[str, int] = {}
    objects: dict[str, int | None] = {problem.variable: None}
    parameters: Mapping[str, Any] = {}
    steps: list[Step] = []
    for position, statement in enumerate(statements, 1):
        call = getattr(statement, "value", None)
        if not isinstance(statement, (ast.Assign, ast.Expr)) or not isinstance(call, ast.Call):
            raise CaseError("case_no_call", position, ast.unparse(statement))
        args = tuple(_read(argument, names, position) for argument in call.args)
        kwargs = {keyword.arg or "**": _read(keyword.value, names, position) for keyword in call.keywords}
        if position == 1:
            parameters = _parameters(problem, call, args, kwargs)
            continue
        if ast.unparse(call.func) == problem.class_name:
            steps.append(Step(position, MAKE, kwargs=_parameters(problem, call, args, kwargs)))
            if isinstance(statement, ast.Assign):
                objects[ast.unparse(statement.targets[0])] = position
            continue
        if not isinstance(call.func, ast.Attribute) or (on := ast.unparse(call.func.value)) not in objects:
            raise CaseError("case_not_on_object", position, ast.unparse(call))
        method = call.func.attr
        if method.startswith("_") or method == "tables" or not callable(getattr(problem.rules, method, None)):
            raise CaseError("case_no_method", position, method)
        if isinstance(statement, ast.Assign):
            names[ast.unparse(statement.targets[0])] = position
        steps.append(Step(position, method, args, kwargs, objects[on]))
    case = Case("--case", parameters, tuple(steps))
    made = 0
    try:
        for made, _ in enumerate(script(case, problem.rules), 1):  # noqa: B007
            pass
    except Exception as error:
        raise CaseError("case_refused", made + 2, f"{type(error).__name__}: {error}") from None
    if not made:
        raise CaseError("case_empty", 1)
    return case


def _parameters(problem: Problem, call: ast.Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    if ast.unparse(call.func) != problem.class_name:
        raise CaseError("case_not_first", 1, ast.unparse(call))
    try:
        parameters = dict(inspect.signature(problem.rules).bind(*args, **kwargs).arguments)
        problem.rules(**parameters)
    except Exception as error:
        raise CaseError("case_refused", 1, f"{type(error).__name__}: {error}") from None
    return parameters


def _read(node: ast.expr, names: Mapping[str, int], position: int) -> Any:
    target, item = (node.value, node.slice) if isinstance(node, ast.Subscript) else (node, None)
    try:
        if isinstance(target, ast.Name) and target.id in names:
            return Result(names[target.id], None if item is None else ast.literal_eval(item))
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise CaseError("case_no_value", position, ast.unparse(node)) from None
