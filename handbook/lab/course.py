"""Run the course: execute every chapter from a clean kernel, and hold what came out against what is committed.

`python -m handbook.lab.course [CHAPTER ...]` writes executed notebooks to build/notebooks/ and an HTML edition to
build/html/. With `--update` it runs on the embedded model with one thread and writes the outputs back into notebooks/zh
(from where `make build` takes them to notebooks/en): this is how outputs are committed.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from ipykernel.kernelspec import get_kernel_dict
from jinja2 import DictLoader
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbconvert import HTMLExporter
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
# What makes a run repeatable: with another model or more threads, other texts may come out.
REPRODUCIBLE = {"HANDBOOK_MODEL": "embedded", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# What no text may say: where an object, this repository or this environment lies.
LOCAL = "|".join([r"\bat 0x[0-9a-fA-F]+", *(re.escape(str(folder)) for folder in (sys.prefix, ROOT))])
# nbconvert's own page, less two scripts that it would load from the network and no chapter needs. One remains: MathJax;
# without a network, formulas stay in their source form and all else is there.
PAGE = """{% extends "lab/index.html.j2" %}
{% block html_head_js_requirejs %}{% endblock %}
{% block html_head_js_mermaidjs %}{% endblock %}"""


class ChapterError(Exception):
    """A chapter that did not run to its end: in which cell, and why."""


class ThisInterpreter(AsyncKernelManager):
    """Starts the interpreter that runs this, whatever kernel the user has registered as python3."""

    @property
    def kernel_spec(self) -> KernelSpec:
        return KernelSpec(**get_kernel_dict())


def execute(
    notebook: NotebookNode, folder: Path, environment: dict[str, str] | None = None, timeout: int = 600
) -> None:
    """Run the notebook from a clean kernel in `folder`, and put its outputs into it, without what is not stable.

    `environment` is added to the environment variables; `timeout` is in seconds and for one cell. A cell that fails,
    takes longer or ends the kernel is a ChapterError.
    """
    started: list[int] = []
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        kernel_manager_class=ThisInterpreter,
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        extra_arguments=[
            "--log-level=ERROR"
        ],  # the kernel's warnings about itself would stand between the progress lines
        on_cell_execute=lambda cell, cell_index: started.append(cell_index),
    )
    variables = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}  # it would hide the plots
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        with TemporaryDirectory() as solutions:  # a run must not replace the solutions that a learner has written
            client.execute(env=variables | {"PRACTICE_SOLUTIONS": solutions} | (environment or {}))
            _say(notebook, solutions, "practice/solutions")
    except (CellExecutionError, CellTimeoutError, RuntimeError) as error:  # RuntimeError: the kernel died
        where = f"cell {started[-1] + 1} (id {notebook.cells[started[-1]].id})" if started else "before the first cell"
        why = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else str(error).split("\n")[0]
        raise ChapterError(f"{where}: {why}") from error
    finally:
        normalise(notebook)


def _say(notebook: NotebookNode, path: str, instead: str) -> None:
    """Put another path into what the outputs show as HTML."""
    for data in [output.data for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]:
        if "text/html" in data:
            data["text/html"] = data["text/html"].replace(path, instead)


def normalise(notebook: NotebookNode) -> None:
    """Leave nothing in the notebook that two equal runs write differently."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata["language_info"] = {"name": "python"}
    count = itertools.count(1)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        cell.execution_count = next(count) if cell.source.strip() else None
        outputs: list[NotebookNode] = []
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
            if output.output_type == "stream" and outputs and outputs[-1].get("name") == output.name:
                outputs[-1].text += output.text  # how a text falls into pieces depends on the moment
            else:
                outputs.append(output)
        cell.outputs = outputs


def compare(committed: NotebookNode, executed: NotebookNode) -> list[str]:
    """What came out differently, a sentence for each difference; empty if the committed outputs are true.

    Texts (streams, text/plain) are equal but in cells tagged `volatile`; pictures, HTML and all else are there in the
    same order. An object's address or a path of this machine in a text is the author's error, in every cell.
    """
    if [c.get("id") for c in committed.cells] != [c.get("id") for c in executed.cells]:
        return ["The two notebooks do not have the same cells: execute the committed one again."]
    return [
        f"Cell {number} (id {old.id}): {difference}"
        for number, (old, new) in enumerate(zip(committed.cells, executed.cells, strict=True), start=1)
        if old.cell_type == "code"
        for difference in _cell_differences(old, new)
    ]


def _cell_differences(old: NotebookNode, new: NotebookNode) -> Iterator[str]:
    (old_kinds, old_texts), (new_kinds, new_texts) = _shown(old), _shown(new)
    if old_kinds != new_kinds:
        yield f"shows {old_kinds or 'nothing'} as committed and {new_kinds or 'nothing'} as executed."
    for name in sorted(old_texts.keys() | new_texts.keys()):
        text, now = old_texts.get(name, ""), new_texts.get(name, "")
        if text != now and "volatile" not in old.metadata.get("tags", []):
            yield f"{name} is\n{text}\nas committed and\n{now}\nas executed."
        for here in re.findall(LOCAL, now):
            yield f"{name} says {here!r}, which another run or machine does not: print something else."


def _shown(cell: NotebookNode) -> tuple[list[str], dict[str, str]]:
    """The kinds of a cell's outputs, streams aside, in order; and its texts, by stream or place."""
    kinds: list[str] = []
    texts: dict[str, str] = {}
    for output in cell.outputs:
        if output.output_type == "stream":
            texts[output.name] = texts.get(output.name, "") + output.text
        elif output.output_type == "error":
            kinds.append(f"the error {output.ename}")
        else:
            kinds.append("+".join(sorted(kind for kind, content in output.data.items() if content)))
            if "text/plain" in output.data:
                texts[f"the text of output {len(kinds)}"] = output.data["text/plain"]
    return kinds, texts


def chapters(names: list[str], root: Path = ROOT) -> list[Path]:
    """The notebooks of both languages whose names begin with one of `names`; all of them if there are none."""
    found = sorted((root / "notebooks").glob("*/*.ipynb"), key=lambda path: (path.parent.name != "zh", path.name))
    for name in names:
        if not any(path.stem.startswith(name) for path in found):
            raise SystemExit(
                f"No chapter begins with {name!r}; there are {', '.join(sorted({p.stem for p in found}))}."
            )
    return [path for path in found if not names or path.stem.startswith(tuple(names))]


def run(path: Path, root: Path = ROOT, update: bool = False) -> str | None:
    """Execute a chapter, write its editions, print its line. Returns what went wrong, if something did."""
    name = f"{path.parent.name}/{path.stem}"
    before, start = path.read_bytes(), time.perf_counter()
    notebook = nbformat.reads(before.decode(), as_version=4)
    problem = None
    try:
        execute(notebook, path.parent, REPRODUCIBLE if update else None)
    except ChapterError as error:
        problem = f"{name}: {error}"
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    print(f"{name}: {cells} code cells, {time.perf_counter() - start:.1f} s{', FAILED' if problem else ''}", flush=True)
    page: Any = HTMLExporter(template_file="page.html.j2", extra_loaders=[DictLoader({"page.html.j2": PAGE})])
    page.language_code = {"zh": "zh-CN"}.get(path.parent.name, "en")
    html, _ = page.from_notebook_node(notebook, resources={"metadata": {"name": path.stem}})
    for folder, ending, text in ("notebooks", "ipynb", nbformat.writes(notebook) + "\n"), ("html", "html", html):
        target = root / "build" / folder / path.parent.name / f"{path.stem}.{ending}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")
    if update and not problem and path.parent.name == "zh":
        if path.read_bytes() != before:
            return f"{name}: the notebook was saved while it ran, and keeps its outputs; run it again."
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")
    return problem


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="python -m handbook.lab.course", description="Execute the course.")
    parser.add_argument("chapter", nargs="*", help="beginning of a name, such as 03; all chapters if none is given")
    parser.add_argument("--update", action="store_true", help="write the outputs into notebooks/zh")
    options = parser.parse_args(arguments)
    problems = [problem for path in chapters(options.chapter, root) if (problem := run(path, root, options.update))]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
