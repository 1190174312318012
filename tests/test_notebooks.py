"""The real chapters: their modules, their outputs and their code are what the course says they are."""

from __future__ import annotations

import copy
import io
import json
import re
import tokenize
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from handbook.lab import course, weave

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {f"{path.parent.name}/{path.stem}": path for path in sorted((ROOT / "notebooks").glob("*/*.ipynb"))}
CHAPTERS = {name: path for name, path in NOTEBOOKS.items() if name.startswith("zh/")}  # English ones copy their code
CHINESE = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")

each_notebook = pytest.mark.parametrize("name", NOTEBOOKS)


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOKS[name], as_version=4)


def code_cells(name: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in read(name).cells if cell.cell_type == "code"]


def test_chapter_03_is_there_in_chinese():
    assert "zh/03_hash_blocks" in CHAPTERS


def test_every_woven_file_is_byte_for_byte_what_its_notebook_weaves_to():
    files = weave.files(ROOT)
    assert ROOT / "handbook" / "prefix_cache.py" in files
    assert [path.name for path, text in files.items() if path.read_bytes() != text.encode()] == [], "run make build"


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_prints_what_is_committed(name):
    executed = read(name)
    course.execute(executed, NOTEBOOKS[name].parent, course.REPRODUCIBLE)
    differences = course.compare(read(name), executed)
    assert not differences, "\n\n".join(differences)


@each_notebook
def test_a_notebook_is_committed_as_update_writes_it(name):
    """All cells executed in order, nothing of the author's kernel or session in it."""
    written = copy.deepcopy(read(name))
    course.normalise(written)
    same = NOTEBOOKS[name].read_bytes() == f"{nbformat.writes(written)}\n".encode()
    assert same, "run python -m handbook.lab.course --update"


@each_notebook
def test_a_notebook_is_committed_without_errors(name):
    assert [cell.id for cell in code_cells(name) for output in cell.outputs if output.output_type == "error"] == []


@each_notebook
def test_a_notebook_is_smaller_than_one_megabyte(name):
    assert NOTEBOOKS[name].stat().st_size < 1_000_000


@each_notebook
def test_every_cell_has_an_id_of_its_own(name):
    cells = json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))["cells"]  # nbformat would mend ids as it reads
    ids = Counter(cell.get("id") for cell in cells)
    assert [cell_id for cell_id, count in ids.items() if count > 1 or not cell_id] == []


@each_notebook
def test_code_and_comments_are_free_of_chinese_outside_of_string_literals(name):
    for cell in code_cells(name):
        for token in tokenize.generate_tokens(io.StringIO(cell.source).readline):
            if "STRING" not in tokenize.tok_name[token.type]:
                assert not CHINESE.search(token.string), f"cell {cell.id}: {token.line}"


@each_notebook
def test_drawings_need_no_chinese_font(name):
    """What a chapter prints may quote a prompt and the model's answer; what it draws is labelled in English."""
    for cell in code_cells(name):
        for output in cell.outputs:
            drawn = [text for kind, text in output.get("data", {}).items() if kind != "text/plain"]
            assert not [text for text in drawn if CHINESE.search(str(text))], f"cell {cell.id}"
