"""What each rung teaches is what a trace of it counts: bytes, sectors, bank passes, barriers."""

from __future__ import annotations

import re
from functools import cache

import pytest

from labs_lib.cuda import ladder, rung, trials
from labs_lib.cuda.errors import LaunchError
from labs_lib.cuda.ladder import RUNGS
from labs_lib.withheld import Withheld

SCORES = {"n_q": 64, "n_k": 128, "head_dim": 64}
PLANE = {"rows": 64, "cols": 96}
HEADS = {"batch": 1, "n_head": 2, "n_q": 24, "n_k": 96, "head_dim": 64, "causal": 0}


@cache
def traced(name, sizes):
    """A trace at sizes that are multiples of every tile."""
    rung, sizes = ladder.rung(name), dict(sizes)
    made = trials.trial(rung, sizes)
    return rung.compile().trace[rung.geometry(sizes)](*made.arguments)


def trace(name, sizes):
    return traced(name, tuple(sizes.items()))


def rate(found, where, what, unit="sectors_per_request"):
    """Sectors, or bank passes, for a request: over all lines that did this."""
    lines = [line for line in found.lines if (line.where, line.what) == (where, what)]
    assert lines
    return max(getattr(line, unit) for line in lines)


def test_bytes_fall_by_the_tiles_width():
    naive, tiled = trace("scores_naive", SCORES), trace("scores_tiled", SCORES)
    wide = trace("scores_register_tiles", SCORES)
    assert naive.read == 16 * tiled.read == 64 * wide.read == 2 * 4 * 64 * 128 * 64
    assert naive.written == tiled.written == wide.written == 4 * 64 * 128


def test_published_counts_of_naive_and_tiled_scores_hold():
    """fp32, n = 256, head_dim = 64, from the formulas, which other tests hold to the traces."""
    sizes = {"n_q": 256, "n_k": 256, "head_dim": 64}
    naive, tiled = (ladder.rung(n).traffic(sizes) for n in ("scores_naive", "scores_tiled"))
    assert sum(read for read, _ in naive.values()) == 33_554_432
    assert sum(read for read, _ in tiled.values()) == 2_097_152
    assert naive["s"] == tiled["s"] == (0, 262_144)


def test_neighbouring_lanes_read_the_same_bytes_in_fewer_sectors():
    naive, coalesced = trace("scores_naive", SCORES), trace("scores_coalesced", SCORES)
    assert naive.read == coalesced.read
    assert rate(naive, "k", "read") == 16  # a warp is 16 keys of two queries
    assert rate(coalesced, "k_t", "read") == 4
    assert rate(coalesced, "q", "read") == 1


def test_register_tiles_read_shared_memory_a_quarter_as_often():
    tiled, wide = trace("scores_tiled", SCORES), trace("scores_register_tiles", SCORES)
    assert tiled.shared.read == 2 * 4 * 64 * 128 * 64 == 4 * wide.shared.read


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("scores_tiled", SCORES),
        ("scores_register_tiles", SCORES),
        ("softmax_rows", PLANE),
        ("transpose_without_conflicts", PLANE),
        ("attention_per_head_blocks", HEADS),
        ("flash_forward", HEADS | {"n_kv_head": 1}),
        ("flash_backward_q", HEADS | {"n_kv_head": 1}),
        ("flash_backward_kv", HEADS | {"n_kv_head": 1}),
    ],
)
def test_shared_memory_is_free_of_bank_conflicts(name, sizes):
    found = trace(name, sizes)
    assert {line.conflict for line in found.lines if line.where == "shared"} == {1.0}


@pytest.mark.parametrize(
    ("name", "sectors", "passes"),
    [
        ("transpose_naive", 32, None),
        ("transpose_tiled", 4, 32),
        ("transpose_without_conflicts", 4, 1),
    ],
)
def test_a_transposition_pays_in_sectors_then_in_banks_then_not_at_all(name, sectors, passes):
    found = trace(name, PLANE)
    assert rate(found, "a", "read") == 4
    assert rate(found, "b", "write") == sectors
    if passes is None:
        assert found.shared.read == found.shared.written == 0
    else:
        assert rate(found, "shared", "read", "conflict") == passes
        assert rate(found, "shared", "write", "conflict") == 1


def test_shuffles_need_neither_shared_memory_nor_barriers():
    tree, warp = trace("softmax_rows", PLANE), trace("softmax_rows_warp", PLANE)
    assert tree.shared.read > 0 and tree.barriers > 0
    assert (warp.shared.read, warp.shared.written, warp.barriers) == (0, 0, 0)
    assert (tree.read, tree.written) == (warp.read, warp.written)


def test_attention_by_heads_writes_no_score_to_global_memory():
    """Standard attention would write n_q x n_k scores for each head; this one writes o."""
    found = trace("attention_per_head_blocks", HEADS)
    assert found.written == 4 * 2 * 24 * 64
    assert rate(found, "k", "read") == rate(found, "v", "read") == 4


def test_blocks_of_attention_by_heads_dont_grow_with_the_sequence():
    """Why FlashAttention-2 gave the sequence to the grid: 12 heads keep 12 blocks busy."""
    rung = ladder.rung("attention_per_head_blocks")
    for n in (16, 4096):
        assert rung.geometry(HEADS | {"n_head": 12, "n_q": n}).grid == (12, 1)


@pytest.mark.parametrize("rung", RUNGS, ids=lambda r: r.name)
def test_a_rung_says_what_it_teaches_and_its_file_says_its_geometry(rung):
    assert rung.teaches.endswith(".") and len(rung.teaches) <= 100
    assert set(rung.formulas) == {p.name for p in rung.compile().signature.parameters if p.pointer}
    head = rung.source.split("__global__")[0]
    threads = rung.block[0] if len(rung.block) == 1 else rung.block
    assert re.search(rf"[Bb]lock (of )?{re.escape(str(threads))}|{threads} threads", head), head
    assert max(map(len, rung.source.splitlines())) <= 100


def test_flash_reads_what_flash_attention_2_reads():
    """Without a mask: q once, k and v once for every tile of queries; o and lse written once."""
    rung = ladder.rung("flash_forward")
    n, d, rows = 1024, 64, 32
    sizes = {"batch": 1, "n_head": 1, "n_kv_head": 1, "n_q": n, "n_k": n, "head_dim": d}
    moved = rung.traffic(sizes | {"causal": 0})
    assert sum(read for read, _ in moved.values()) == 4 * (n * d + 2 * (n // rows) * n * d)
    assert sum(written for _, written in moved.values()) == 4 * (n * d + n)
    causal = rung.traffic(sizes | {"causal": 1})
    assert causal["k"][0] == 4 * d * rows * sum(range(1, n // rows + 1))  # half the square


def test_sizes_that_a_kernel_cant_take_are_refused_by_name():
    rung = ladder.rung("flash_forward")
    sizes = trials.SIZES["flash"][1]
    with pytest.raises(LaunchError, match=r"n_head % n_kv_head == 0; given: .*n_kv_head=2"):
        rung.geometry(sizes | {"n_head": 3, "n_kv_head": 2})
    with pytest.raises(LaunchError, match=r"head_dim <= 128; given: .*head_dim=136"):
        rung.geometry(sizes | {"head_dim": 136})


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(KeyError, match=r"scores_fast.*scores_naive, .*softmax_rows"):
        ladder.source("scores_fast")


def test_a_copy_that_keeps_a_kernel_back_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(rung, "FOLDER", tmp_path)
    with pytest.raises(Withheld, match=r"scores_tiled\.cu is yours to write"):
        ladder.compile("scores_tiled")
    assert ladder.rung("scores_tiled").traffic(SCORES)["s"] == (0, 4 * 64 * 128)


def test_every_kernel_file_is_in_the_ladder():
    files = {path.name for path in ladder.FOLDER.glob("*.cu")}
    assert files == {rung.file or f"{rung.name}.cu" for rung in RUNGS}
