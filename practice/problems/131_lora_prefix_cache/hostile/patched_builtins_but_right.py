# verdict: AC
"""Right answers, with builtins broken that the judge's host in the child might have needed."""

import builtins
import marshal
import os

from reference import PrefixCache  # noqa: F401


def broken(*_, **__):
    raise RuntimeError("broken")


for name in ("type", "isinstance", "map", "max", "min", "getattr", "vars", "compile", "exec", "print"):
    setattr(builtins, name, broken)
marshal.loads = os.read = os.write = broken
