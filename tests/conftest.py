"""What all tests share: torch on one thread, and hypothesis drawing the same examples on every machine."""

from __future__ import annotations

import torch
from hypothesis import settings

torch.set_num_threads(1)  # beside a busy neighbour two threads are several times slower than one

settings.register_profile("handbook", derandomize=True, deadline=None)
settings.load_profile("handbook")
