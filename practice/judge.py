"""The judge: grades your solutions of the course's problems. `python practice/judge.py --help` says all it can do.

It needs Python 3.10 or newer and nothing else.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    if sys.version_info < (3, 10):  # noqa: UP036 (the course needs 3.11, the judge does not need the course)
        sys.exit("The judge needs Python 3.10 or newer; this is %d.%d." % sys.version_info[:2])  # noqa: UP031
    # In place of this folder, so that no file in it can stand for a module of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

    from practice.grader.command import main
    from practice.grader.ending import as_exceptions

    as_exceptions()
    sys.exit(main(sys.argv[1:]))
