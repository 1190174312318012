# verdict: RTE
"""os._exit with the status of success, before there is a class."""

import os

os._exit(0)


class PrefixCache:
    pass
