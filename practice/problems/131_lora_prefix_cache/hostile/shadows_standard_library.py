# verdict: AC
"""Right answers; every module that is loaded, the standard library's too, is replaced by an empty one of that name."""

import sys

from reference import PrefixCache  # noqa: F401

empty = type(sys)
for name in [*sys.modules, "json", "traceback", "linecache", "random", "resource"]:
    sys.modules[name] = empty(name)
sys.path[:] = ["."]
sys.meta_path.clear()
