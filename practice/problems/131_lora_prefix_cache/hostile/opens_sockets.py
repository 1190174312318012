# verdict: AC
"""Right answers; tries to reach a network, and the machine that it runs on."""

import socket

from reference import PrefixCache  # noqa: F401

for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(family, kind)
        except OSError:
            continue
        print("SUCCEEDED")
