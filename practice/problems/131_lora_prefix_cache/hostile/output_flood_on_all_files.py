# verdict: OLE
"""Writes to the output's files without an end, past Python's own streams, when the module is loaded."""

import os

while True:
    os.write(1, b"1" * 1000)
    os.write(2, b"2" * 1000)
