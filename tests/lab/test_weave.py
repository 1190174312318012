"""handbook.lab.weave: the module says what the notebook says, and what cannot is refused."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from handbook.lab import weave
from handbook.lab.weave import WeaveError

REPOSITORY = Path(__file__).parents[2]
MARK = "#| export pool.py\n"
DOCSTRING = '#| export pool.py\n"""A pool."""'
CLASS = '''\
#| export pool.py
class Pool:
    """Blocks."""

    size = 4

    def take(self) -> int:
        return 1'''


def write_notebook(folder: Path, *cells: str, name: str = "03_pool", prose: str = "Text.") -> Path:
    """A notebook of code cells with ids code0, code1, ..., a markdown cell before them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.ipynb"
    raw: list[dict] = [{"cell_type": "markdown", "id": "prose", "metadata": {}, "source": [prose]}]
    for i, text in enumerate(cells):
        code = {"cell_type": "code", "id": f"code{i}", "source": text.splitlines(keepends=True)}
        raw.append({**code, "metadata": {}, "execution_count": i + 1, "outputs": []})
    path.write_text(json.dumps({"cells": raw, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    return path


def weave_cells(tmp_path: Path, *cells: str) -> str:
    """The one module that the cells weave to."""
    (source,) = weave.woven(write_notebook(tmp_path, *cells)).values()
    return source


def run_cells(*cells: str) -> dict:
    """The namespace of a notebook after its cells ran."""
    namespace: dict = {"part_of": weave.part_of, "__name__": "__main__"}
    for cell in cells:
        exec(cell, namespace)
    return namespace


def run_module(source: str) -> dict:
    namespace: dict = {"__name__": "handbook.pool"}
    exec(compile(source, "pool.py", "exec", dont_inherit=True), namespace)
    return namespace


def run_ruff(source: str, *arguments: str) -> subprocess.CompletedProcess:
    """Ruff with the repository's configuration on a module of handbook/."""
    command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", "--stdin-filename", "handbook/pool.py", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, cwd=REPOSITORY, check=False)


def part(body: str, mark: str = "@part_of(Pool)") -> str:
    return f"{MARK}{mark}\n{body}"


GIVE = part("def give(self) -> int:\n    return 1")


SAMPLE = (
    '''\
#| export pool.py
"""A pool of blocks.

The idea in a line.
"""

import math
from dataclasses import dataclass
from handbook.paged import BlockPool

# How many blocks there are when nobody says.
NUM_BLOCKS = 8''',
    'print("not exported")',
    '''\
#| export pool.py
from collections import OrderedDict
from dataclasses import field


# What is kept of a block.
@dataclass
class Block:
    """One block."""

    tokens: list[int] = field(default_factory=list)


class Pool(BlockPool):
    """Blocks in an order."""

    def __init__(self, num_blocks: int = NUM_BLOCKS) -> None:
        super().__init__(num_blocks)
        self.queue: OrderedDict[int, Block] = OrderedDict((i, Block()) for i in range(num_blocks))

    # The first try looks at one block.
    def lookup(self, tokens: list[int]) -> int:
        return 1

    def last(self) -> str:
        return "last"''',
    '''\
#| export pool.py
# Free means that nobody holds it.
@part_of(Pool)
@property
def num_free(self) -> int:
    """How many are free.

    It counts:
        the queue.
    """
    return len(self.queue)


@part_of(Pool)
@staticmethod
def banner(name: str) -> str:
    # A comment inside.
    text = f"""{name}
  is a pool
"""
    lines = [
        text,
        """
# no comment
    """,
    ]
    return "".join(lines)''',
    '''\
#| export pool.py
def describe(pool: Pool) -> str:
    """A function beside the class."""
    return f"{pool.num_free} of {math.inf}"


# The second try looks at all.
@part_of(Pool)
def lookup(self, tokens: list[int]) -> int:
    return len(tokens)


LIMIT = 3''',
    '''\
#| export pool.py
@part_of(Pool)
@property
def num_free(self) -> int:
    """Free ones, counted twice."""
    return 2 * len(self.queue)''',
)

WOVEN = '''\
"""A pool of blocks.

The idea in a line.
"""

# Woven from notebooks/zh/03_pool.ipynb by make build: edit it there.

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

from handbook.paged import BlockPool

# How many blocks there are when nobody says.
NUM_BLOCKS = 8


# What is kept of a block.
@dataclass
class Block:
    """One block."""

    tokens: list[int] = field(default_factory=list)


class Pool(BlockPool):
    """Blocks in an order."""

    def __init__(self, num_blocks: int = NUM_BLOCKS) -> None:
        super().__init__(num_blocks)
        self.queue: OrderedDict[int, Block] = OrderedDict((i, Block()) for i in range(num_blocks))

    # The second try looks at all.
    def lookup(self, tokens: list[int]) -> int:
        return len(tokens)

    def last(self) -> str:
        return "last"

    @property
    def num_free(self) -> int:
        """Free ones, counted twice."""
        return 2 * len(self.queue)

    @staticmethod
    def banner(name: str) -> str:
        # A comment inside.
        text = f"""{name}
  is a pool
"""
        lines = [
            text,
            """
# no comment
    """,
        ]
        return "".join(lines)


def describe(pool: Pool) -> str:
    """A function beside the class."""
    return f"{pool.num_free} of {math.inf}"


LIMIT = 3
'''


def test_a_chapter_weaves_to_a_module_that_looks_written_by_hand(tmp_path):
    assert weave_cells(tmp_path, *SAMPLE) == WOVEN


def test_the_module_passes_ruff_and_its_formatter(tmp_path):
    source = weave_cells(tmp_path, *SAMPLE)
    for arguments in (["check"], ["format", "--check"]):
        done = run_ruff(source, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_docstring_of_a_part_is_indented_with_it_and_says_the_same(tmp_path):
    body = 'def give(self) -> str:\n    """First.\n\n    Then:\n        deeper.\n    """\n    return """\n    kept\n"""'
    cells = DOCSTRING, CLASS, part(body)
    source = weave_cells(tmp_path, *cells)
    assert '        """First.\n\n        Then:\n            deeper.\n        """\n' in source
    in_notebook, in_module = run_cells(*cells)["Pool"], run_module(source)["Pool"]
    assert inspect.getdoc(in_notebook.give) == inspect.getdoc(in_module.give)
    assert in_notebook().give() == in_module().give() == "\n    kept\n"


@pytest.mark.parametrize(
    ("mark", "use"),
    [
        ("", lambda pool: pool.answer()),
        ("@property\n", lambda pool: pool.answer),
        ("@functools.cached_property\n", lambda pool: pool.answer),
        ("@staticmethod\n", lambda pool: pool.answer(pool)),
        ("@classmethod\n", lambda pool: pool.answer()),
        ("@functools.lru_cache\n", lambda pool: pool.answer()),
    ],
)
def test_a_part_answers_alike_in_notebook_and_module(tmp_path, mark, use):
    cells = (
        DOCSTRING,
        MARK + "import functools",
        CLASS,
        part(f"{mark}def answer(self) -> int:\n    return self.size * 10 + 1", "@part_of(Pool)"),
    )
    assert use(run_cells(*cells)["Pool"]()) == use(run_module(weave_cells(tmp_path, *cells))["Pool"]()) == 41


def test_a_part_reaches_instances_that_exist_and_its_function_stays_usable_in_the_notebook():
    class Pool:
        pass

    pool = Pool()

    @weave.part_of(Pool)
    def size(self: Pool) -> int:
        return 7

    assert pool.size() == size(pool) == 7  # type: ignore[attr-defined]


def test_a_part_of_an_earlier_name_replaces_it_at_that_ones_place(tmp_path):
    take = part("# Better.\ndef take(self) -> int:\n    return 2", "# Best.\n@part_of(Pool)")
    cells = DOCSTRING, CLASS + "\n\n    # Old.\n    def give(self) -> int:\n        return 3", take
    source = weave_cells(tmp_path, *cells)
    assert source.endswith(
        "    size = 4\n\n    # Best.\n    # Better.\n    def take(self) -> int:\n        return 2\n\n"
        "    # Old.\n    def give(self) -> int:\n        return 3\n"
    )
    assert run_cells(*cells)["Pool"]().take() == run_module(source)["Pool"]().take() == 2


def test_a_part_replaces_a_property_with_its_setter(tmp_path):
    accessors = "\n\n    @property\n    def x(self): ...\n\n    @x.setter\n    def x(self, to): ..."
    cells = DOCSTRING, CLASS + accessors, part("def x(self) -> int:\n    return 7")
    assert weave_cells(tmp_path, *cells[:2]).endswith(f"{accessors}\n")
    assert weave_cells(tmp_path, *cells).endswith("        return 1\n\n    def x(self) -> int:\n        return 7\n")


def test_a_first_method_is_replaced_and_the_head_of_its_class_stays(tmp_path):
    source = weave_cells(tmp_path, DOCSTRING, MARK + "class Pool(dict):\n    @property\n    def give(self): ...", GIVE)
    assert source.endswith("class Pool(dict):\n    def give(self) -> int:\n        return 1\n")


def test_pieces_of_a_string_on_lines_of_their_own_are_laid_out_and_say_the_same(tmp_path):
    pieces = '"one\\n"\n        # Here.\n        f"  {self.size}"\n        """\n two"""'
    body = f"def give(self) -> str:\n    return (\n        {pieces}\n    )"
    cells = DOCSTRING, CLASS, part(body)
    source = weave_cells(tmp_path, *cells)
    assert '        return (\n            "one\\n"\n            # Here.\n' in source
    assert run_cells(*cells)["Pool"]().give() == run_module(source)["Pool"]().give() == "one\n  4\n two"


def test_parts_stand_in_order_of_appearance_and_each_name_once(tmp_path):
    bodies = [f"def {name}(self) -> int:\n    return {i}" for i, name in enumerate(["b", "a", "b", "c", "take"])]
    source = weave_cells(tmp_path, DOCSTRING, CLASS, *map(part, bodies))
    (cls,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    methods = [(f.name, ast.unparse(f.body[0])) for f in cls.body if isinstance(f, ast.FunctionDef)]
    assert methods == [("take", "return 4"), ("b", "return 2"), ("a", "return 1"), ("c", "return 3")]


def test_statements_keep_their_distance_in_a_cell_and_cells_are_a_line_apart(tmp_path):
    cells = DOCSTRING, MARK + "import os\n\nA = 1\nB = 2\n\n# Of C.\nC = 3\n\n\n\nD = 4\n# The end.", MARK + "E = 5"
    source = weave_cells(tmp_path, *cells)
    assert source.endswith("import os\n\nA = 1\nB = 2\n\n# Of C.\nC = 3\n\n\nD = 4\n# The end.\n\nE = 5\n")


def test_one_notebook_may_build_several_modules(tmp_path):
    other = '#| export queue.py\n"""A queue."""\n\nX = 1'
    sources = weave.woven(write_notebook(tmp_path, DOCSTRING, other, CLASS))
    assert list(sources) == ["pool", "queue"]
    assert sources["queue"].endswith("X = 1\n")


def test_an_exported_class_may_call_super_and_use_private_names_in_its_own_cell(tmp_path):
    body = "\n\n    def __init__(self) -> None:\n        super().__init__()\n        self.__blocks = 1"
    source = weave_cells(tmp_path, DOCSTRING, CLASS + body, part("def give(self) -> int:\n    return 1"))
    assert "self.__blocks" in source


ACCEPTED = {
    "annotations and bodies of parts may name what comes later": [
        CLASS,
        part("def give(self, n: LATER) -> Pool:\n    return later(n)"),
        MARK + "def later(n): ...",
        MARK + "LATER = int",
    ],
    "a part's default may be an earlier global, which the class's body reads, too": [
        MARK + "LIMIT = 1",
        CLASS + "\n    limit = LIMIT",
        part("def give(self, n=LIMIT): ..."),
    ],
    "a part may call super with arguments": [CLASS, part("def give(self):\n    return super(Pool, self).__repr__()")],
    "special methods may be parts": [CLASS, part("def __len__(self) -> int:\n    return 1")],
    "a class with a decorator may have parts": [
        MARK + "from dataclasses import dataclass",
        MARK + "@dataclass\nclass Pool:\n    x: int",
        GIVE,
    ],
    "a method may have a local name that is a part's": [
        CLASS + "\n\n    def f(self):\n        give = 1\n        return give",
        GIVE,
    ],
    "import a.b binds a": [MARK + "import os.path", MARK + "SEP = os.sep"],
    "import a.b and import a agree": [MARK + "import os.path\nimport os", MARK + "import os.path"],
    "an import may stand in a block": [
        MARK + "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from decimal import Decimal",
        MARK + "def f(x: Decimal): ...",
    ],
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(tmp_path, case):
    compile(weave_cells(tmp_path, DOCSTRING, *ACCEPTED[case]), "pool.py", "exec")


REFUSED = {
    "super() without arguments in a part": (
        [DOCSTRING, CLASS, part("def give(self) -> int:\n    # first\n    return super().give()")],
        ("code2", 5, "write super(Pool, self)"),
    ),
    "__class__ in a part": (
        [DOCSTRING, CLASS, part("def give(self) -> type:\n    return __class__")],
        ("code2", 4, "write super(Pool, self)"),
    ),
    "a private attribute in a part": (
        [DOCSTRING, CLASS, part("def give(self) -> int:\n    return self.__blocks")],
        ("code2", 4, "renames __blocks"),
    ),
    "a private variable in a part": (
        [DOCSTRING, CLASS, part("def give(self) -> int:\n    __n = 1\n    return 2")],
        ("code2", 4, "renames __n"),
    ),
    "a private argument of a part": (
        [DOCSTRING, CLASS, part("def give(self, __n: int) -> int:\n    return 2")],
        ("code2", 3, "renames __n"),
    ),
    "a part with a private name": (
        [DOCSTRING, CLASS, part("def __give(self) -> int:\n    return 1")],
        ("code2", 3, "renames __give"),
    ),
    "a part named like a function of the module": (
        [DOCSTRING, CLASS, MARK + "def give() -> int:\n    return 1", GIVE],
        ("code3", 3, "the place of a global"),
    ),
    "a part named like an import": (
        [DOCSTRING, MARK + "import math", CLASS, part("def math(self) -> int:\n    return 2")],
        ("code3", 3, "the place of a global"),
    ),
    "a part named like a builtin in use": (
        [
            DOCSTRING,
            CLASS,
            MARK + "def key(x: object) -> int:\n    return hash(x)",
            part("def hash(self) -> int:\n    return 2"),
        ],
        ("code3", 3, "the place of a global"),
    ),
    "a part that calls itself without self": (
        [DOCSTRING, CLASS, part("def give(self) -> int:\n    return give(self)")],
        ("code2", 3, "the place of a global"),
    ),
    "a part of a class from elsewhere": (
        [DOCSTRING, MARK + "from decimal import Decimal", GIVE.replace("Pool", "Decimal")],
        ("code2", 2, "defines the class Decimal"),
    ),
    "a part before its class": (
        [DOCSTRING, GIVE, CLASS],
        ("code1", 2, "defines the class Pool"),
    ),
    "a part of a class of another module": (
        [DOCSTRING, CLASS, '#| export queue.py\n"""Doc."""\n\n@part_of(Pool)\ndef give(self) -> int:\n    return 1'],
        ("code2", 4, "queue.py defines the class Pool"),
    ),
    "a part in a cell that is not exported": (
        [DOCSTRING, CLASS, "# A try.\n@part_of(Pool)\ndef give(self) -> int:\n    return 1"],
        ("code2", 2, "not exported"),
    ),
    "an import from handbook.lab": (
        [DOCSTRING, MARK + "from handbook.lab.weave import part_of"],
        ("code1", 2, "must not `from handbook.lab.weave import part_of`"),
    ),
    "an import of handbook.lab by its package": (
        [DOCSTRING, MARK + "def f():\n    from handbook import lab"],
        ("code1", 3, "must not `from handbook import lab`"),
    ),
    "an import from practice": (
        [DOCSTRING, MARK + "import practice.judge"],
        ("code1", 2, "must not `import practice.judge`"),
    ),
    "an unknown mark": ([DOCSTRING, "#| hide\nX = 1"], ("code1", 1, "`#| hide` is not understood")),
    "a second mark in a cell": ([DOCSTRING, MARK + "#| hide\nX = 1"], ("code1", 2, "`#| hide` is not understood")),
    "a mark that is not on the first line": (
        [DOCSTRING, "# A class.\n#| export pool.py\nX = 1"],
        ("code1", 2, "as the first line of a cell"),
    ),
    "a module's name with a folder": (["#| export lab/pool.py\nX = 1"], ("code0", 1, "not understood")),
    "a module's name without .py": (["#| export pool\nX = 1"], ("code0", 1, "not understood")),
    "a module named like the package itself": (["#| export __init__.py\nX = 1"], ("code0", 1, "not understood")),
    "a syntax error": ([DOCSTRING, MARK + "X = 1\ny = = 2"], ("code1", 3, "invalid syntax")),
    "an IPython magic": ([DOCSTRING, MARK + "%time x = 1"], ("code1", 2, "without magics")),
    "a module without a docstring": ([CLASS], ("code0", 1, "pool.py must begin with its docstring")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_notebook_cell_and_line(tmp_path, case):
    cells, (cell, line, words) = REFUSED[case]
    index = int(cell.removeprefix("code")) + 2  # counted from 1, the first cell is prose
    with pytest.raises(WeaveError) as refused:
        weave.woven(write_notebook(tmp_path, *cells))
    assert str(refused.value).startswith(f"03_pool.ipynb, cell {index} (id {cell}), line {line}: ")
    assert words in str(refused.value)


REFUSED_BY_RUFF = {
    "a name that only a cell without the mark binds": (
        ["limit = 3", CLASS, part("def give(self) -> int:\n    return limit")],
        "Undefined name `limit`",
    ),
    "a default of a part bound after the class": (
        [CLASS, MARK + "LIMIT = 1", part("def give(self, n=LIMIT): ...")],
        "Undefined name `LIMIT`",
    ),
    "a class as a part": ([CLASS, part("class Give:\n    pass")], "Undefined name `part_of`"),
    "part_of below another decorator": (
        [CLASS, part("@part_of(Pool)\ndef give(self) -> int:\n    return 1", "@staticmethod")],
        "Undefined name `part_of`",
    ),
    "part_of without a class": ([CLASS, part("def give(self): ...", "@part_of")], "Undefined name `part_of`"),
    "a part inside of a function": (
        [CLASS, MARK + "def f() -> None:\n    @part_of(Pool)\n    def give(self): ..."],
        "Undefined name `part_of`",
    ),
    "a function defined twice": ([MARK + "def f(): ...", MARK + "def f(): ..."], "Redefinition of unused `f`"),
    "two imports of one name": ([MARK + "import os", MARK + "from six import os"], "Redefinition of unused `os`"),
    "parts of a class whose body stands on its first line": ([MARK + "class Pool: ...", GIVE], "invalid-syntax"),
    "await outside of a function": ([MARK + "X = 1\nawait X"], "outside of a function"),
}


@pytest.mark.parametrize("case", REFUSED_BY_RUFF)
def test_what_ruff_finds_wrong_with_the_module_is_refused_with_its_words(tmp_path, case):
    cells, words = REFUSED_BY_RUFF[case]
    with pytest.raises(WeaveError) as refused:
        weave_cells(tmp_path, DOCSTRING, *cells)
    assert str(refused.value).startswith("03_pool.ipynb: ruff refuses the pool.py that it weaves to.")
    assert words in str(refused.value)
    assert "handbook/pool.py:" in str(refused.value)  # the line


@pytest.fixture
def root(tmp_path):
    """A repository with a chapter that builds pool.py."""
    write_notebook(tmp_path / "notebooks" / "zh", DOCSTRING, CLASS, GIVE)
    (tmp_path / "handbook").mkdir()
    return tmp_path


def test_build_writes_the_module_in_utf8_with_line_feeds(root, capsys):
    zh = root / "notebooks" / "zh"
    write_notebook(zh, DOCSTRING, '#| export pool.py\nNAME = "块"')
    assert weave.main([], root) == 0
    assert (root / "handbook" / "pool.py").read_bytes() == weave.woven(zh / "03_pool.ipynb")["pool"].encode()
    assert [path.name for path in (root / "handbook").iterdir()] == ["pool.py"]
    said = "handbook/pool.py: written.\n1 of 1 files are what the notebooks weave to.\n"
    assert capsys.readouterr().out == said


def test_check_passes_on_what_build_wrote(root, capsys):
    weave.main([], root)
    assert weave.main(["--check"], root) == 0
    assert capsys.readouterr().out.endswith("1 of 1 files are what the notebooks weave to.\n")


def test_check_fails_on_one_differing_byte_shows_it_and_writes_nothing(root, capsys):
    weave.main([], root)
    module = root / "handbook" / "pool.py"
    edited = module.read_bytes().replace(b"return 1", b"return 9", 1)
    module.write_bytes(edited)
    assert weave.main(["--check"], root) == 1
    out = capsys.readouterr().out
    assert out.endswith("0 of 1 files are what the notebooks weave to.\n")
    assert "handbook/pool.py is not what its notebook weaves to" in out
    assert "-        return 9\n+        return 1\n" in out
    assert module.read_bytes() == edited


def test_check_fails_on_line_ends_of_windows(root):
    weave.main([], root)
    module = root / "handbook" / "pool.py"
    module.write_bytes(module.read_bytes().replace(b"\n", b"\r\n"))
    assert weave.main(["--check"], root) == 1


def test_an_error_in_any_notebook_leaves_every_module_as_it_was(root, capsys):
    write_notebook(root / "notebooks" / "zh", '#| export queue.py\n"""Doc."""\nx = =', name="04_queue")
    assert weave.main([], root) == 1
    assert "04_queue.ipynb, cell 2 (id code0), line 3" in capsys.readouterr().err
    assert not list((root / "handbook").iterdir())


def test_two_notebooks_must_not_weave_one_module(root):
    write_notebook(root / "notebooks" / "zh", DOCSTRING, name="04_queue")
    with pytest.raises(WeaveError, match=r"04_queue.ipynb exports pool.py, and so does an earlier notebook"):
        weave.files(root)


def test_build_gives_the_english_notebook_code_and_outputs_and_leaves_its_prose(root):
    english = write_notebook(root / "notebooks" / "en", "old", "cells", "here", prose="English.")
    chinese = root / "notebooks" / "zh" / "03_pool.ipynb"
    notebook = json.loads(chinese.read_text(encoding="utf-8"))
    notebook["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["块\n"]}]
    chinese.write_text(json.dumps(notebook), encoding="utf-8")
    assert weave.main([], root) == 0
    theirs, ours = (json.loads(path.read_text(encoding="utf-8"))["cells"] for path in (chinese, english))
    assert ours[1:] == theirs[1:]
    assert ours[0]["source"] == ["English."]
    assert english.read_text(encoding="utf-8") == nbformat.writes(nbformat.read(english, as_version=4)) + "\n"
    assert weave.main(["--check"], root) == 0


def test_check_fails_when_the_english_code_is_not_the_chinese_one(root):
    write_notebook(root / "notebooks" / "en", "old", "cells", "here")
    assert weave.main(["--check"], root) == 1


@pytest.mark.parametrize("cells", [("a", "b"), ("a", "b", "c", "d")])
def test_a_cell_without_a_partner_in_the_other_language_is_an_error_and_nothing_is_written(root, cells, capsys):
    english = write_notebook(root / "notebooks" / "en", *cells)
    before = english.read_bytes()
    assert weave.main([], root) == 1
    assert f"('code{min(len(cells), 3)}', 'code')" in capsys.readouterr().err
    assert english.read_bytes() == before
    assert not list((root / "handbook").iterdir())


def test_a_chapter_in_one_language_is_no_error(root):
    write_notebook(root / "notebooks" / "en", "x = 1", name="99_only_english")
    assert weave.main([], root) == 0


def test_difference_compares_the_saved_notebook_beside_it_with_the_package(root, monkeypatch, capsys):
    weave.main([], root)
    monkeypatch.setattr(weave, "ROOT", root)
    monkeypatch.chdir(root)
    capsys.readouterr()
    weave.difference("03_pool")
    assert capsys.readouterr().out == "handbook/pool.py is identical to what these cells weave to.\n"
    write_notebook(Path(), DOCSTRING, CLASS, part("def give(self) -> int:\n    return 5"))
    weave.difference("03_pool")
    out = capsys.readouterr().out
    assert "-        return 1\n+        return 5\n" in out
    assert str(root) not in out


def test_difference_finds_the_chinese_notebook_from_any_folder(root, monkeypatch, capsys):
    monkeypatch.setattr(weave, "ROOT", root)
    monkeypatch.chdir(root)
    weave.difference("03_pool")
    assert "+class Pool:\n" in capsys.readouterr().out
