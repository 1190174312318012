"""Which protections are active on this machine: each is tried by a child, none is taken for granted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What became of one attempt."""

    protection: str  # "reads of other files"
    active: bool
    detail: str  # what the attempt met


def doctor() -> list[Finding]:
    raise NotImplementedError
