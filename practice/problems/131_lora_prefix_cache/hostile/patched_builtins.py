# verdict: WA
"""Wrong answers, and builtins and modules changed so that everything seems equal, an int and in order."""

import builtins
import json
import marshal
import os
import sys

builtins.type = lambda *_: int
builtins.isinstance = lambda *_: True
builtins.len = lambda *_: 0
builtins.repr = builtins.str = lambda *_: "0"
builtins.getattr = lambda *_: lambda *_, **__: 0
builtins.map = builtins.max = builtins.min = lambda *_: []
builtins.BaseException = KeyError
json.loads = json.dumps = marshal.loads = marshal.dumps = lambda *_: (0, "value", 0)
os._exit = sys.exit = sys.excepthook = lambda *_: 0


class PrefixCache:
    def __init__(self, num_blocks, block_size):
        pass

    def allocate(self, tokens, lora_id=None):
        return [], 0

    def free(self, block_table):
        pass
