"""Requests for the tests of bounded caches: drawn prefixes, and the recorded traces where they are."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from hypothesis import strategies as st

Requests = list[list[int]]


@st.composite
def requests(draw: st.DrawFn, max_requests: int = 12, max_blocks: int = 5) -> Requests:
    """Random walks down a tree of few branches: an id tells the whole way to it."""
    ids: dict[tuple[int, ...], int] = {}
    walks = draw(st.lists(st.lists(st.integers(0, 1), max_size=max_blocks).map(tuple), max_size=max_requests))
    return [[ids.setdefault(walk[:end], len(ids)) for end in range(1, len(walk) + 1)] for walk in walks]


def recorded(name: str) -> Path:
    """A recorded trace in the folder HANDBOOK_TRACES. Without the variable: a skip, and a warning in the summary."""
    folder = os.environ.get("HANDBOOK_TRACES")
    if not folder:
        warnings.warn(f"NOT TESTED: set HANDBOOK_TRACES to the folder that holds {name}.", stacklevel=2)
        pytest.skip(f"HANDBOOK_TRACES names no folder with {name}")
    path = Path(folder) / name
    assert path.exists(), f"HANDBOOK_TRACES is {folder}, where {name} is missing"
    return path
