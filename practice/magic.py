"""The judge in a notebook: `%load_ext practice`, then `%%judge 131` on the first line of a cell with the solution.

The cell's own source is graded; which file the notebook is stored in does not matter, and nobody asks.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.display import display

from practice.grader.words import LANGUAGES
from practice.notebook import check_source, number_of

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(f"%%judge takes the number of a problem, and --lang zh or en: {message}")


def load_ipython_extension(shell: InteractiveShell) -> None:
    parser = Arguments(prog="%%judge", add_help=False)
    parser.add_argument("number")
    parser.add_argument("--lang", choices=LANGUAGES)

    def judge(line: str, cell: str) -> None:
        asked = parser.parse_args(line.split())
        try:
            number = number_of(asked.number)
        except ValueError as error:
            raise UsageError(str(error)) from None
        checked = check_source(number, cell.encode("utf-8", "surrogatepass"), asked.lang)
        display(checked.bundle(), raw=True)
        if checked.was_made:
            define(shell, cell)

    shell.register_magic_function(judge, "cell", "judge")  # type: ignore[arg-type]


def define(shell: InteractiveShell, cell: str) -> None:
    """Run the cell in the notebook's namespace, as it would have run without the magic.

    The kernel is the learner's own and the code is what they typed into it, so no box is needed; but the judge has
    seen before that it comes to an end: a cell that hangs or ends the process is never run here.
    """
    name = shell.compile.cache(cell, shell.execution_count)  # so that a traceback can show the lines
    exec(compile(cell, name, "exec", dont_inherit=True), shell.user_ns)  # this file's future is not the cell's
