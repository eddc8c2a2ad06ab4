"""Lab 09: the inputs of its exercises, and how each kernel is launched on them.

Sizes are no multiples of a tile, there are more of one thing than of the other, at least three
tiles and two warps; outputs are NaN before a launch.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ..arithmetic.occupancy import MULTIPROCESSORS
from .inputs import uniform
from .kernels import Launch, unwritten
from .kit import Case

TILE = 16
SCORES = ("q", "k", "s", "n_q", "n_k", "head_dim", "scale")
ROWS = ("s", "p", "rows", "cols")
MATRIX = ("a", "b", "rows", "cols")
ATTENTION = ("q", "k", "v", "o", "n_head", "n_q", "n_k", "head_dim", "scale", "causal")


def score_cases(rng: np.random.Generator) -> list[Case]:
    """q [n_q, head_dim] and k [n_k, head_dim]; every score is of order one."""
    sizes = [
        (33, 17, 8, "33 queries, 17 keys"),
        (17, 65, 72, "17 queries, 65 keys, head_dim 72"),
        (97, 31, 16, "97 queries, 31 keys"),
        (1, 33, 64, "one query"),
        (31, 1, 128, "one key"),
        (64, 48, 32, "whole tiles"),
        (1, 1, 8, "a single score"),
    ]
    return [
        Case(name, (uniform(rng, n_q, d, std=1.0), uniform(rng, n_k, d, std=1.0)))
        for n_q, n_k, d, name in sizes
    ]


def launch_scores(q: Tensor, k: Tensor) -> Launch:
    """A thread for each score, in blocks of (16, 16); x counts keys and y queries."""
    (n_q, head_dim), n_k = q.shape, len(k)
    s = unwritten(n_q, n_k)
    arguments = (q, k, s, n_q, n_k, head_dim, 1 / math.sqrt(head_dim))
    return Launch((blocks(n_k), blocks(n_q)), (TILE, TILE), arguments, {"s": 2}, names=SCORES)


def row_cases(rng: np.random.Generator) -> list[Case]:
    """Scores [rows, cols] for a softmax, also large ones, very negative ones and -inf."""
    rising = torch.linspace(0.0, 300.0, 300) + uniform(rng, 2, 300, std=1.0)
    signs = torch.tensor([[150.0], [-150.0], [150.0]])
    masked = uniform(rng, 5, 40).masked_fill(later(5, 40, 36), -math.inf)
    tables = {
        "5 rows of 17": uniform(rng, 5, 17),
        "3 rows of 600": uniform(rng, 3, 600),
        "one row of 33": uniform(rng, 1, 33),
        "6 rows of one number": uniform(rng, 6, 1),
        "scores that rise to 300": rising,
        "all scores near -200": uniform(rng, 3, 65, mean=-200.0),
        "all scores near -60000": uniform(rng, 2, 31, mean=-60000.0),
        "rows of 150 and of -150": uniform(rng, 3, 97) + signs,
        "keys that come later are masked": masked,
    }
    return [Case(name, (table,)) for name, table in tables.items()]


def launch_rows(s: Tensor) -> Launch:
    """A block of 256 threads for each row."""
    rows, cols = s.shape
    return Launch((rows,), (256,), (s, unwritten(rows, cols), rows, cols), {"p": 1}, names=ROWS)


def launch_rows_by_warps(s: Tensor) -> Launch:
    """A warp for each row, four warps in a block: x is the lane, y the row in the block."""
    rows, cols = s.shape
    return Launch(
        (-(-rows // 4),), (32, 4), (s, unwritten(rows, cols), rows, cols), {"p": 1}, names=ROWS
    )


def attention_cases(rng: np.random.Generator) -> list[Case]:
    """q [batch, n_head, n_q, head_dim], k and v [batch, n_head, n_k, head_dim], and causal."""

    def case(name, batch, n_head, n_q, n_k, head_dim, causal=False, grow=0.0, means=(0.0, 0.0)):
        q = uniform(rng, batch, n_head, n_q, head_dim, std=1.0, mean=means[0])
        k = uniform(rng, batch, n_head, n_k, head_dim, std=1.0, mean=means[1])
        k = k * (1 + torch.arange(n_k)[:, None] / n_k * grow)
        v = uniform(rng, batch, n_head, n_k, head_dim, std=1.0, mean=0.5)
        return Case(name, (q, k, v, causal))

    return [
        case("two texts, three heads", 2, 3, 17, 33, 8),
        case("causal", 2, 3, 33, 33, 8, True),
        case("causal, more keys than queries", 1, 4, 17, 65, 16, True),
        case("causal, queries that see no key", 1, 2, 40, 33, 8, True),
        case("300 queries", 1, 2, 300, 5, 8),
        case("head_dim 72", 1, 2, 9, 31, 72),
        case("head_dim 128", 1, 2, 5, 33, 128),
        case("one query, 97 keys", 1, 3, 1, 97, 64),
        case("all scores near 40", 1, 2, 17, 33, 16, means=(3.2, 3.2)),
        case("all scores far below zero", 1, 2, 17, 33, 16, means=(7.0, -7.0)),
        case("scores that grow large", 1, 2, 17, 65, 16, grow=120.0),
    ]


def launch_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Launch:
    """A block of 256 threads for each pair: x is the head, y the text of the batch."""
    batch, n_head, n_q, head_dim = q.shape
    o = unwritten(*q.shape)
    numbers = (n_head, n_q, k.shape[2], head_dim, 1 / math.sqrt(head_dim), int(causal))
    arguments = (q, k, v, o, *numbers)
    return Launch((n_head, batch), (256,), arguments, {"o": 3}, names=ATTENTION)


def matrix_cases(rng: np.random.Generator) -> list[Case]:
    """Matrices [rows, cols] to transpose; the last is all whole tiles."""
    sizes = [(33, 97), (65, 17), (1, 70), (70, 1), (31, 33), (64, 96)]
    return [Case(f"{r} x {c}", (uniform(rng, r, c),)) for r, c in sizes]


def launch_transpose(a: Tensor) -> Launch:
    """Blocks of (32, 8) threads, each for a tile of 32 x 32; x counts columns of a, y rows."""
    rows, cols = a.shape
    grid = (blocks(cols, 32), blocks(rows, 32))
    return Launch(grid, (32, 8), (a, unwritten(cols, rows), rows, cols), {"b": 1}, names=MATRIX)


def occupancy_cases(rng: np.random.Generator) -> list[Case]:
    """Blocks that each limit in turn is the narrowest for, on six kinds of multiprocessor."""
    fixed = [
        ("the stub's example", 256, 64, 0, "sm_80"),
        ("small blocks", 32, 16, 0, "sm_80"),
        ("1,024 threads where 1,536 fit", 1024, 32, 0, "sm_86"),
        ("a warp that isn't full", 250, 32, 0, "sm_90"),
        ("less than a warp", 20, 32, 0, "sm_100"),
        ("all the shared memory that there is", 128, 64, 99 * 1024, "sm_89"),
        ("more than there is", 128, 64, 100 * 1024, "sm_89"),
        ("a kibibyte that nobody asked for", 64, 24, 9 * 1024, "sm_90"),
        ("nothing asked for, nothing reserved", 96, 40, 0, "sm_75"),
        ("large pieces of shared memory", 32, 16, 10880, "sm_75"),
        ("uneven bytes", 192, 60, 12345, "sm_75"),
        ("uneven bytes and a kibibyte", 32, 40, 10000, "sm_90"),
        ("registers in pieces", 128, 65, 0, "sm_80"),
        ("registers in four quarters", 64, 100, 20000, "sm_90"),
        ("registers for few warps", 32, 100, 5000, "sm_80"),
        ("a block that doesn't fit", 320, 200, 10000, "sm_86"),
        ("ten warps", 320, 40, 5000, "sm_75"),
        ("two limits at once", 64, 60, 0, "sm_86"),
    ]
    drawn = [
        (
            f"drawn, {arch}",
            int(rng.integers(1, 33)) * 32 - int(rng.integers(0, 31)),
            int(rng.integers(16, 256)),
            int(rng.integers(0, 400)) * 64,
            arch,
        )
        for arch in ("sm_75", "sm_80", "sm_89", "sm_90")
    ]
    return [
        Case(name, (threads, registers, shared, MULTIPROCESSORS[arch]))
        for name, threads, registers, shared, arch in [*fixed, *drawn]
    ]


def blocks(n: int, tile: int = TILE) -> int:
    """How many tiles cover n places."""
    return -(-n // tile)


def later(n_q: int, n_k: int, past: int) -> Tensor:
    """bool [n_q, n_k], True where key j comes after query i: j > i + past - 1."""
    return ~torch.ones(n_q, n_k, dtype=torch.bool).tril(past - 1)
