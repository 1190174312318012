"""Exercises and their judge. In a notebook: `%load_ext practice`, then `%%judge 131` on top of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from practice.notebook import Checked


def check(number: int, solution: type | str | None = None, **options: Any) -> Checked:
    """Grade practice/solutions/NUMBER.py, or a class or source; see `practice.notebook.check` for the options."""
    from practice.notebook import check as check_now

    return check_now(number, solution, **options)


def load_ipython_extension(shell: Any) -> None:
    from practice.magic import load_ipython_extension as load

    load(shell)
