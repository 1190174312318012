"""Attention over blocks where they lie, against torch's attention over the same K and V in one piece."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from handbook.mini_llm import Qwen3Config, Transformer
from handbook.paged import PagedBatch, PagedKVCache, Span
from handbook.paged_attention import DecodeAttention


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def scattered_tables(lengths: list[int], block_size: int, seed: int) -> list[Tensor]:
    """Blocks in random order, one more than each sequence fills."""
    num_blocks = [length // block_size + 1 for length in lengths]
    return list(torch.randperm(sum(num_blocks), generator=torch.Generator().manual_seed(seed)).split(num_blocks))


def in_one_piece(q: Tensor, keys: Tensor, values: Tensor, table: Tensor, length: int) -> Tensor:
    """Attention of q `[H, D]`, by torch, over a copy of its K and V."""
    k, v = (each[:, table].flatten(1, 2)[None, :, :length] for each in (keys, values))
    return F.scaled_dot_product_attention(q[None, :, None], k, v, enable_gqa=True)[0, :, 0]


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    block_size=st.sampled_from([1, 3, 16]),
    heads=st.sampled_from([(1, 1), (4, 4), (4, 2), (6, 1)]),
    seed=st.integers(0, 99),
)
def test_sequences_of_any_length_get_the_attention_that_each_has_alone(lengths, block_size, heads, seed):
    num_heads, kv_heads = heads
    tables = scattered_tables(lengths, block_size, seed)
    kv_shape = (kv_heads, sum(map(len, tables)), block_size, 8)
    q, keys, values = random(len(lengths), num_heads, 8, seed=1), random(*kv_shape, seed=2), random(*kv_shape, seed=3)
    attended = DecodeAttention(tables, lengths, kv_shape, num_heads)(q, keys, values)
    for row, each, table, length in zip(attended, q, tables, lengths, strict=True):
        torch.testing.assert_close(row, in_one_piece(each, keys, values, table, length), atol=1e-5, rtol=1e-5)


LENGTHS, KV_SHAPE = [7, 12], (2, 8, 4, 8)
TABLES = [torch.tensor([6, 1]), torch.tensor([3, 0, 5])]
Q, KEYS, VALUES = random(2, 4, 8, seed=1), random(*KV_SHAPE, seed=2), random(*KV_SHAPE, seed=3)


def attend(keys: Tensor = KEYS, values: Tensor = VALUES, tables: list[Tensor] = TABLES) -> Tensor:
    return DecodeAttention(tables, LENGTHS, KV_SHAPE, num_heads=4)(Q, keys, values)


@pytest.mark.parametrize("name", ["keys", "values"])
@pytest.mark.parametrize("sequence", [0, 1])
def test_each_slot_counts_for_its_sequence_and_for_no_other(name, sequence):
    """The negative control: one slot is changed, and the sequence is far off, the other the same to the last bit."""
    right, whole = attend(), {"keys": KEYS, "values": VALUES}[name]
    for position in range(LENGTHS[sequence]):
        changed = whole.clone()
        changed[:, TABLES[sequence][position // 4], position % 4] += 5.0
        wrong = attend(changed, VALUES) if name == "keys" else attend(KEYS, changed)
        assert (wrong[sequence] - right[sequence]).abs().max() > 1e-2
        assert torch.equal(wrong[1 - sequence], right[1 - sequence])


def test_slots_that_no_sequence_fills_are_never_read():
    filled = torch.zeros(KV_SHAPE[1:3], dtype=torch.bool)
    for table, length in zip(TABLES, LENGTHS, strict=True):
        filled[table] |= (torch.arange(4 * len(table)) < length).view(-1, 4)
    keys, values = (torch.where(filled[..., None], each, torch.nan) for each in (KEYS, VALUES))
    assert filled.sum() == sum(LENGTHS)
    assert torch.equal(attend(keys, values), attend())


def test_the_entries_that_count_are_a_valid_sparse_matrix():
    scores = DecodeAttention(TABLES, LENGTHS, KV_SHAPE, num_heads=4)._scores
    parts = scores.crow_indices(), scores.col_indices(), scores.values()
    torch.sparse_csr_tensor(*parts, scores.shape, check_invariants=True)


def test_sequences_may_share_blocks():
    shared = [torch.tensor([3, 1]), torch.tensor([3, 0, 5])]
    attended = attend(tables=shared)
    for row, q, table, length in zip(attended, Q, shared, LENGTHS, strict=True):
        torch.testing.assert_close(row, in_one_piece(q, KEYS, VALUES, table, length), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("sequence", [0, 1])
@pytest.mark.parametrize(("table", "wrong"), [([8, 1, 2], 8), ([4, -1, 2], -1)])
def test_a_block_that_is_not_there_is_named(sequence, table, wrong):
    tables = [torch.tensor(table) if number == sequence else right for number, right in enumerate(TABLES)]
    with pytest.raises(ValueError, match=f"no block {wrong}: this memory has blocks 0 to 7"):
        attend(tables=tables)


@pytest.mark.parametrize("length", [9, 0, -1])
def test_more_tokens_than_slots_or_none_are_refused(length):
    with pytest.raises(ValueError, match=f"a context of {length} tokens is not in 2 blocks of 4"):
        DecodeAttention(TABLES, [length, 12], KV_SHAPE, num_heads=4)


@pytest.mark.parametrize("lengths", [[7], [7, 12, 1]])
def test_every_table_needs_its_length(lengths):
    with pytest.raises(ValueError, match="zip"):
        DecodeAttention(TABLES, lengths, KV_SHAPE, num_heads=4)


def test_other_default_types_change_nothing():
    right = attend()
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert torch.equal(attend(), right)
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_counts_is_worked_out_once_in_a_forward_pass(monkeypatch):
    num_calls = 0
    make = DecodeAttention.__init__

    def counting(*args):
        nonlocal num_calls
        num_calls += 1
        make(*args)

    monkeypatch.setattr(DecodeAttention, "__init__", counting)
    config = Qwen3Config(61, 24, 40, 3, 4, 2, 8)
    batch = PagedBatch(PagedKVCache(config, 8, 4), [Span([6, 1], 6, 7), Span([3, 0, 5], 11, 12)])
    with torch.inference_mode():
        Transformer.random(config, seed=0)(torch.tensor([[1, 2]]), batch.positions, batch)
    assert num_calls == 1


def test_nobody_is_told_that_sparse_tensors_are_in_beta():
    # In a process of its own, since torch says it once.
    script = """
import torch
from handbook.paged_attention import DecodeAttention
q, kv = torch.ones(1, 1, 1), torch.ones(1, 1, 1, 1)
DecodeAttention([torch.tensor([0])], [1], kv.shape, 1)(q, kv, kv)
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_only_float32_is_read_in_place_and_other_types_are_copied(dtype, monkeypatch):
    num_copies = 0
    gather = PagedKVCache.gather

    def counting(*args):
        nonlocal num_copies
        num_copies += 1
        return gather(*args)

    monkeypatch.setattr(PagedKVCache, "gather", counting)
    kv_cache = PagedKVCache(Qwen3Config(61, 24, 40, 1, 4, 2, 8), 8, 4, dtype)
    kv_cache.keys[0], kv_cache.values[0] = KEYS, VALUES
    spans = [Span(table.tolist(), length - 1, length) for table, length in zip(TABLES, LENGTHS, strict=True)]
    last = [(table[-1], (length - 1) % 4) for table, length in zip(TABLES, LENGTHS, strict=True)]
    k, v = (torch.stack([each[:, block, slot] for block, slot in last], dim=1) for each in (KEYS, VALUES))
    attended = PagedBatch(kv_cache, spans).attend(0, *(each[None].to(dtype) for each in (Q.transpose(0, 1), k, v)))
    expected = attend().transpose(0, 1)[None]
    assert attended.dtype == dtype
    assert (attended - expected).abs().max() < (0.05 if dtype == torch.bfloat16 else 1e-5)
    assert num_copies == (0 if dtype == torch.float32 else 2)
