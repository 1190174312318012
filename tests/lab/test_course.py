"""handbook.lab.course: chapters run from a clean kernel, and what they print is held against what is committed."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from handbook.lab import course
from handbook.lab.course import ChapterError, compare

PIXEL = "iVBORw0KGgo="
ABOUT_THE_KERNEL = """\
import os, sys
from pathlib import Path
import handbook.lab
print(sys.executable == os.environ["EXPECTED"], Path().resolve().name, os.environ["PYTHONPATH"].split(os.pathsep)[0])"""
PLOT = """\
import matplotlib.pyplot as plt
print("above")
plt.plot([1, 2])
plt.show()
print("below", flush=True)
print("more")"""


def notebook(*sources: str) -> NotebookNode:
    """Code cells with ids code0, code1, ... below a cell of prose."""
    cells = [new_code_cell(source, id=f"code{i}") for i, source in enumerate(sources)]
    return new_notebook(cells=[new_markdown_cell("# A chapter", id="prose"), *cells])


def write(path: Path, *sources: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook(*sources), path)
    return path


def text_of(cell: NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    """A notebook run where the user has registered a kernel python3 that cannot start, and plots go nowhere."""
    folder = tmp_path_factory.mktemp("course")
    spec = folder / "data" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["/no/such/python"], "display_name": "mine", "language": "python"}))
    ran = notebook(ABOUT_THE_KERNEL, "", PLOT, "1 + 1")
    ran.metadata = {"kernelspec": {"name": "mine", "display_name": "Mine"}, "widgets": {"state": {}}, "title": "T"}
    ran.cells[1].metadata = {"execution": {"iopub.execute_input": "now"}, "tags": ["volatile"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder / "data"))
        patch.setenv("MPLBACKEND", "agg")
        course.execute(ran, folder, {"EXPECTED": sys.executable})
    return ran


def test_the_kernel_is_this_interpreter_in_the_given_folder_and_imports_the_package(executed):
    said = text_of(executed.cells[1]).split()
    assert said[0] == "True"
    assert said[1].startswith("course")
    assert Path(said[2]) == Path(course.__file__).parents[2]


def test_execution_counts_run_from_one_and_an_empty_cell_has_none(executed):
    assert [cell.execution_count for cell in executed.cells[1:]] == [1, None, 2, 3]
    assert executed.cells[4].outputs[0].execution_count == 3


def test_a_run_leaves_the_learners_solutions_alone_and_shows_where_theirs_would_be(tmp_path):
    ran = notebook(
        "import os; from pathlib import Path; from IPython.display import HTML\n"
        "folder = Path(os.environ['PRACTICE_SOLUTIONS'])\n"
        "print(folder.is_dir(), not list(folder.iterdir()))\n"
        "HTML(f'kept in {folder}/earlier')"
    )
    course.execute(ran, tmp_path)
    stream, result = ran.cells[1].outputs
    assert stream.text == "True True\n"
    assert result.data["text/html"] == "kept in practice/solutions/earlier"


def test_counts_of_an_authors_session_are_replaced_in_cells_and_results():
    ran = notebook("x", "y")
    for cell in ran.cells[1:]:
        cell.execution_count = 9
        cell.outputs = [new_output("execute_result", {"text/plain": "42"}, execution_count=9)]
    course.normalise(ran)
    assert [(cell.execution_count, cell.outputs[0].execution_count) for cell in ran.cells[1:]] == [(1, 1), (2, 2)]


def test_streams_keep_their_place_beside_pictures_in_one_piece_each(executed):
    outputs = executed.cells[3].outputs
    assert [output.get("text") for output in outputs] == ["above\n", None, "below\nmore\n"]
    assert "image/png" in outputs[1].data


def test_metadata_of_kernel_timing_and_widgets_are_gone_and_the_rest_is_kept(executed):
    assert executed.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "title": "T",
    }
    assert executed.cells[1].metadata == {"tags": ["volatile"]}


def test_a_second_normalisation_changes_nothing(executed):
    again = copy.deepcopy(executed)
    course.normalise(again)
    assert again == executed


def test_a_cell_over_the_time_limit_is_named(tmp_path):
    with pytest.raises(ChapterError, match=r"^cell 3 \(id code1\): A cell timed out .* after 1 seconds"):
        course.execute(notebook("x = 1", "import time; time.sleep(60)"), tmp_path, timeout=1)


def test_a_cell_that_ends_the_kernel_is_named(tmp_path):
    with pytest.raises(ChapterError, match=r"^cell 3 \(id code1\): Kernel died"):
        course.execute(notebook("x = 1", "import os; os._exit(1)"), tmp_path)


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    """A course of two chapters, the first of which fails, run with --update: its root, exit code, output, errors."""
    root = tmp_path_factory.mktemp("root")
    write(root / "notebooks" / "zh" / "01_fails.ipynb", "print('first')", "x = 1\nundefined", "print('never')")
    works = "import os\nprint(os.environ['HANDBOOK_MODEL'], os.environ['OMP_NUM_THREADS'], '块')"
    write(root / "notebooks" / "zh" / "02_works.ipynb", works)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HANDBOOK_MODEL", "another")
        out, err = _Lines(), _Lines()
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        code = course.main(["--update"], root)
    return root, code, "".join(out), "".join(err)


class _Lines(list):
    """A text stream that keeps what is written to it."""

    write = list.append

    def flush(self) -> None:
        pass


def test_a_failing_chapter_is_named_with_cell_and_error_and_the_exit_code_is_1(updated):
    _, code, _, errors = updated
    assert code == 1
    assert errors == "zh/01_fails: cell 3 (id code1): NameError: name 'undefined' is not defined\n"


def test_each_chapter_has_a_progress_line_the_one_after_a_failure_too(updated):
    lines = updated[2].splitlines()
    assert [line.split(",")[0] for line in lines] == ["zh/01_fails: 3 code cells", "zh/02_works: 1 code cells"]
    assert ["FAILED" in line for line in lines] == [True, False]


def test_update_writes_outputs_of_the_embedded_model_on_one_thread_into_the_chinese_notebook(updated):
    root = updated[0]
    written = (root / "notebooks" / "zh" / "02_works.ipynb").read_text(encoding="utf-8")
    assert "embedded 1 块" in text_of(nbformat.reads(written, as_version=4).cells[1])
    assert "块" in written
    assert written.endswith("}\n")


def test_update_leaves_a_chapter_that_failed_as_it_was(updated):
    kept = nbformat.read(updated[0] / "notebooks" / "zh" / "01_fails.ipynb", as_version=4)
    assert [cell.outputs for cell in kept.cells[1:]] == [[], [], []]


@pytest.mark.parametrize(("language", "arguments"), [("en", ["--update"]), ("zh", [])])
def test_only_update_writes_and_only_to_the_chinese_notebook(tmp_path, monkeypatch, language, arguments):
    path = write(tmp_path / "notebooks" / language / "01_a.ipynb", "print(1)")
    before = path.read_bytes()
    monkeypatch.setattr(course, "execute", lambda ran, *_: ran.cells.clear())
    assert course.main(arguments, tmp_path) == 0
    assert path.read_bytes() == before


def test_executed_notebooks_and_pages_go_to_build_even_of_a_chapter_that_failed(updated):
    build = updated[0] / "build"
    assert sorted(path.relative_to(build).as_posix() for path in build.rglob("*.*")) == [
        "html/zh/01_fails.html",
        "html/zh/02_works.html",
        "notebooks/zh/01_fails.ipynb",
        "notebooks/zh/02_works.ipynb",
    ]
    failed = nbformat.read(build / "notebooks" / "zh" / "01_fails.ipynb", as_version=4)
    assert [[output.output_type for output in cell.outputs] for cell in failed.cells[1:]] == [["stream"], ["error"], []]


def test_a_page_shows_the_outputs_and_loads_nothing_from_the_network_but_mathjax(updated):
    page = (updated[0] / "build" / "html" / "zh" / "02_works.html").read_text(encoding="utf-8")
    assert "embedded 1 块" in page
    assert '<html lang="zh-CN">' in page
    loaded = [
        line
        for line in page.splitlines()
        if ("<script" in line and "src=" in line) or "<link" in line or "import(" in line
    ]
    assert all("mathjax" in line for line in loaded), loaded


def test_a_notebook_saved_while_it_ran_keeps_what_was_saved(tmp_path, monkeypatch):
    path = write(tmp_path / "notebooks" / "zh" / "01_a.ipynb", "print(1)")
    monkeypatch.setattr(course, "execute", lambda *_: write(path, "print(2)"))
    assert course.run(path, tmp_path, update=True) == (
        "zh/01_a: the notebook was saved while it ran, and keeps its outputs; run it again."
    )
    assert nbformat.read(path, as_version=4).cells[1].source == "print(2)"


def test_chapters_are_chosen_by_the_beginning_of_their_names_chinese_first(tmp_path):
    for name in ("en/03_hash", "zh/03_hash", "zh/04_tree"):
        write(tmp_path / "notebooks" / f"{name}.ipynb")
    chosen = [path.relative_to(tmp_path).as_posix() for path in course.chapters(["03"], tmp_path)]
    assert chosen == ["notebooks/zh/03_hash.ipynb", "notebooks/en/03_hash.ipynb"]
    assert len(course.chapters([], tmp_path)) == 3


def test_a_chapter_that_is_not_there_is_an_error_that_lists_those_there_are(tmp_path):
    write(tmp_path / "notebooks" / "zh" / "03_hash.ipynb")
    with pytest.raises(SystemExit, match="No chapter begins with '07'; there are 03_hash"):
        course.chapters(["03", "07"], tmp_path)


STDOUT = new_output("stream", name="stdout", text="4 hits\n")
PICTURE = new_output("display_data", {"image/png": PIXEL, "text/plain": "<Figure size 640x480 with 1 Axes>"})
TABLE = new_output("display_data", {"text/html": "<b>1</b>", "text/plain": "<IPython.core.display.HTML object>"})
RESULT = new_output("execute_result", {"text/plain": "42"})


def with_outputs(*outputs: NotebookNode, tags: tuple[str, ...] = ()) -> NotebookNode:
    made = notebook("x")
    made.cells[1].outputs = copy.deepcopy(list(outputs))
    made.cells[1].metadata["tags"] = list(tags)
    return made


def stream(text: str, name: str = "stdout") -> NotebookNode:
    return new_output("stream", name=name, text=text)


def test_equal_outputs_have_no_difference():
    assert compare(with_outputs(STDOUT, PICTURE, TABLE, RESULT), with_outputs(STDOUT, PICTURE, TABLE, RESULT)) == []


@pytest.mark.parametrize(
    ("committed", "executed", "sentence"),
    [
        (STDOUT, stream("5 hits\n"), "stdout is\n4 hits\n\nas committed and\n5 hits\n\nas executed."),
        (STDOUT, stream("4 hits\n", "stderr"), "stderr is\n\nas committed and\n4 hits\n"),
        (
            RESULT,
            new_output("execute_result", {"text/plain": "43"}),
            "the text of output 1 is\n42\nas committed and\n43\n",
        ),
        (
            new_output("display_data", {"text/plain": "a"}),
            new_output("display_data", {"text/plain": "b"}),
            "the text of output 1 is\na\nas committed and\nb\n",
        ),
    ],
)
def test_another_text_is_a_difference_that_names_the_cell_and_both_texts(committed, executed, sentence):
    differences = compare(with_outputs(committed), with_outputs(executed))
    assert any(d.startswith("Cell 2 (id code0): ") and sentence in d for d in differences), differences


def test_a_volatile_cell_may_print_another_text():
    assert compare(with_outputs(STDOUT, RESULT, tags=("volatile",)), with_outputs(stream("5 hits\n"), RESULT)) == []


def test_the_tag_counts_on_the_committed_cell_alone():
    assert compare(with_outputs(STDOUT), with_outputs(stream("5 hits\n"), tags=("volatile",)))


@pytest.mark.parametrize("tags", [(), ("volatile",)])
@pytest.mark.parametrize(
    ("executed", "shown"),
    [
        ((TABLE,), "shows ['text/html+text/plain'] as executed"),
        ((PICTURE, TABLE), ""),
        ((), "nothing as executed"),
        ((TABLE, new_output("display_data", {"image/png": "", "text/plain": "<Figure size 640x480 with 1 Axes>"})), ""),
        ((TABLE, new_output("error", ename="ValueError", evalue="")), "the error ValueError"),
    ],
)
def test_a_missing_empty_or_moved_picture_table_or_result_is_a_difference_in_every_cell(executed, shown, tags):
    differences = compare(with_outputs(TABLE, PICTURE, tags=tags), with_outputs(*executed, tags=tags))
    assert any(
        d.startswith("Cell 2 (id code0): shows ['text/html+text/plain', 'image/png+text/plain'] as committed")
        for d in differences
    )
    assert any(shown.removeprefix("shows ") in d for d in differences)


def test_another_picture_and_other_html_are_no_difference():
    picture = new_output("display_data", {"image/png": "iVBORw0KGgoA", "text/plain": PICTURE.data["text/plain"]})
    table = new_output("display_data", {"text/html": "<b>2</b>", "text/plain": TABLE.data["text/plain"]})
    assert compare(with_outputs(PICTURE, TABLE), with_outputs(picture, table)) == []


def test_streams_are_joined_by_name_before_they_are_compared():
    pieces = stream("4 "), stream("warning", "stderr"), PICTURE, stream("hits\n")
    whole = stream("warning", "stderr"), stream("4 hits\n"), PICTURE
    assert compare(with_outputs(*pieces), with_outputs(*whole)) == []


@pytest.mark.parametrize("tags", [(), ("volatile",)])
@pytest.mark.parametrize(
    "output", [stream("<object object at 0x7f3A10>"), new_output("execute_result", {"text/plain": "<f at 0x7f3A10>"})]
)
def test_an_objects_address_is_the_authors_error_even_when_both_texts_are_equal(output, tags):
    (difference,) = compare(with_outputs(output, tags=tags), with_outputs(output, tags=tags))
    assert "Cell 2 (id code0)" in difference
    assert "'at 0x7f3A10'" in difference


@pytest.mark.parametrize("folder", [course.ROOT, Path(sys.prefix)])
def test_a_path_of_this_machine_is_the_authors_error_even_when_both_texts_are_equal(folder):
    output = stream(f"{folder / 'some.py'}:1: UserWarning", "stderr")
    (difference,) = compare(with_outputs(output), with_outputs(output))
    assert str(folder) in difference


def test_a_number_in_hexadecimal_is_no_address():
    assert compare(with_outputs(stream("key 0x7f3a10")), with_outputs(stream("key 0x7f3a10"))) == []


def test_notebooks_of_different_cells_are_not_compared_cell_by_cell():
    assert compare(notebook("x"), notebook("x", "y")) == [
        "The two notebooks do not have the same cells: execute the committed one again."
    ]
