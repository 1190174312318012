# verdict: RTE
"""sys.exit with the status of success, before there is a class."""

import sys

sys.exit(0)


class PrefixCache:
    pass
