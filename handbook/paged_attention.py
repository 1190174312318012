"""Attention of decodes that reads K and V where they lie, without a copy: block tables are a sparse matrix.

The idea: take the product of all queries, a row for each sequence and head, with all K in memory, a column for each
K/V head and slot. Block tables say which few of its entries count. torch can compute those alone
(`torch.sparse.sampled_addmm`), and it can add up rows of V by number and weight (`F.embedding_bag`): together that is
attention over blocks, for sequences of any length at once. A production kernel does the same in one pass.

Source: paged attention, vLLM (arXiv 2309.06180).
"""

# Woven from notebooks/zh/02_paged_engine.ipynb by make build: edit it there.

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

with warnings.catch_warnings():  # torch says once that sparse tensors are in beta: here, so that no step does
    warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
    torch.sparse_csr_tensor([0, 0], [], torch.zeros(0), (1, 1), check_invariants=False)


class DecodeAttention:
    """One new token each of several sequences, over K and V of one layer, `[KV, blocks, block_size, D]` in float32."""

    def __init__(
        self, tables: Sequence[Tensor], lengths: Sequence[int], kv_shape: Sequence[int], num_heads: int
    ) -> None:
        """Sequence i fills the first lengths[i] slots of tables[i]. ValueError: a block or slot that is not there."""
        kv_heads, num_blocks, block_size, _ = kv_shape
        for block in torch.stack(torch.cat(tuple(tables)).aminmax()).tolist():
            if not 0 <= block < num_blocks:  # torch would read what lies outside
                raise ValueError(f"there is no block {block}: this memory has blocks 0 to {num_blocks - 1}.")
        kv_head = torch.arange(num_heads)[:, None] * kv_heads // num_heads  # [H, 1]
        columns = []  # of each sequence [H * S], head by head
        for table, length in zip(tables, lengths, strict=True):
            if not 0 < length <= len(table) * block_size:
                raise ValueError(f"a context of {length} tokens is not in {len(table)} blocks of {block_size}.")
            slots = (table[:, None] * block_size + torch.arange(block_size)).flatten()[:length].sort().values
            columns.append((kv_head * num_blocks * block_size + slots).flatten())
        self._sizes = [len(each) for each in columns]
        row_starts = torch.tensor([0] + [length for length in lengths for _ in range(num_heads)]).cumsum(0)
        zeros = torch.zeros(sum(self._sizes), dtype=torch.float32)
        shape = (len(lengths) * num_heads, kv_heads * num_blocks * block_size)
        self._scores = torch.sparse_csr_tensor(row_starts, torch.cat(columns), zeros, shape, check_invariants=False)

    def __call__(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """softmax(q K^T / sqrt(D)) V of each sequence, for q `[sequences, H, D]` and of its shape."""
        num_heads, head_dim = q.shape[1:]
        k, v, scores = keys.flatten(0, 2), values.flatten(0, 2), self._scores  # k, v [KV * slots, D]
        torch.sparse.sampled_addmm(scores, q.flatten(0, 1), k.T, beta=0.0, alpha=head_dim**-0.5, out=scores)
        of_sequences = scores.values().split(self._sizes)  # in a sequence all heads have rows of one length
        weights = torch.cat([each.view(num_heads, -1).softmax(-1).flatten() for each in of_sequences])
        columns, row_starts = scores.col_indices(), scores.crow_indices()
        sums = F.embedding_bag(columns, v, row_starts, mode="sum", per_sample_weights=weights, include_last_offset=True)
        return sums.view(q.shape)  # from [sequences * H, D]
