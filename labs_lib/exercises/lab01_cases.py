"""Cases of lab 01: sizes that differ, three heads, distinct q, k, v, and rows without any key."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .inputs import qkv
from .kit import Case

DOUBLE = torch.float64


def score_cases(rng: np.random.Generator) -> list[Case]:
    """Queries and keys, as many of each or not, with and without leading dimensions.

    Where each axis has the same length, a product along a wrong axis runs, and so can be named.
    """

    def pair(**sizes) -> tuple[Tensor, Tensor]:
        return qkv(rng, **sizes)[:2]

    return [
        Case("four axes, each of length 3", pair(batch=3, seq_q=3, head_dim=3)),
        Case("four axes: two batches, three heads, seven tokens", pair(head_dim=4)),
        Case("double precision", pair(head_dim=5, dtype=DOUBLE)),
        Case("three queries, seven keys", pair(seq_q=3, seq_k=7, head_dim=16)),
        Case("seven queries, two keys", pair(seq_q=7, seq_k=2, head_dim=6)),
        Case("one head without batch", tuple(t[0, 0] for t in pair(seq_q=4, seq_k=6, head_dim=9))),
        Case("with gradients", pair(seq_q=5, seq_k=7, head_dim=8, dtype=DOUBLE), grad=True),
    ]


def mask_cases(rng: np.random.Generator) -> list[Case]:
    """Sizes alone: square, fewer queries than keys, more queries than keys."""
    a, b, c, d = (int(n) for n in rng.permutation(np.arange(3, 12))[:4])
    short, long = sorted((c, d))
    return [
        Case("seq_q alone: as many keys as queries", (a,)),
        Case("seq_q alone, another size", (b,)),
        Case("both sizes given, equal", (c, c)),
        Case("fewer queries than keys", (short, long)),
        Case("one query, many keys", (1, a)),
        Case("more queries than keys", (long, short)),
    ]


def attention_cases(rng: np.random.Generator) -> list[Case]:
    """Without a mask, causal, of different lengths, with holes, with rows that see nothing."""
    equal = qkv(rng, batch=3, seq_q=3, head_dim=3)
    plain = qkv(rng, head_dim=4, v_dim=5)
    square = qkv(rng, head_dim=4)
    decode = qkv(rng, seq_q=2, seq_k=7, head_dim=6)
    short = qkv(rng, seq_q=7, seq_k=4, head_dim=8, v_dim=3)
    holes = qkv(rng, head_dim=4, dtype=DOUBLE)
    empty = qkv(rng, seq_q=5, seq_k=6, head_dim=8)
    slopes = qkv(rng, batch=1, seq_q=4, seq_k=6, head_dim=5, dtype=DOUBLE)
    alone = tuple(t[0, 0] for t in qkv(rng, seq_q=3, seq_k=5, head_dim=7))
    return [
        Case("four axes, each of length 3, no mask", equal),
        Case("no mask", plain),
        Case("causal, one mask for all heads", (*square, _first_keys(7, [1, 2, 3, 4, 5, 6, 7]))),
        Case("two queries, seven keys, causal", (*decode, _first_keys(7, [6, 7]))),
        Case("seven queries, four keys, no mask", short),
        Case("a mask with holes, for each batch", (*holes, holed(rng, 2, 1, 7, 7))),
        Case("two rows that see nothing", (*empty, _closed(holed(rng, 5, 6), 1, 4))),
        Case("more queries than keys, causal", (*short, _first_keys(4, [0, 0, 0, 1, 2, 3, 4]))),
        Case("gradients", (*slopes, holed(rng, 4, 6)), grad=True),
        Case("gradients, one row sees nothing", (*slopes, _closed(holed(rng, 4, 6), 2)), grad=True),
        Case("one head without batch", (*alone, holed(rng, 3, 5))),
    ]


def std_cases(rng: np.random.Generator) -> list[Case]:
    """head_dim and the spreads of the entries of q and k; no spread is 1 and no head_dim is 1."""

    def spread() -> float:
        return round(float(rng.uniform(1.3, 4.0)), 3)

    def width() -> int:
        return int(rng.integers(3, 300))

    return [
        Case("head_dim 64, q and k of the same spread", (64, *[spread()] * 2)),
        Case("q and k of different spread", (width(), spread(), spread())),
        Case("a small spread", (width(), spread() / 10, spread())),
        Case("a wide head", (int(rng.integers(300, 1000)), spread(), spread())),
    ]


def budget_cases(rng: np.random.Generator) -> list[Case]:
    """How many keys, how many of them are wanted, and how far their scores lie above the rest."""

    def gap(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 3)

    n = int(rng.integers(9, 40))
    return [
        Case("one wanted key", (n, 1, gap(1, 3))),
        Case("two wanted keys", (n, 2, gap(1, 3))),
        Case("three wanted keys, a small gap", (n + 3, 3, gap(0.2, 0.9))),
        Case("two wanted keys, a large gap", (8, 2, gap(20, 30))),
        Case("wanted keys that score lower", (n, 4, -gap(0.5, 2))),
        Case("every key is wanted", (6, 6, gap(1, 3))),
    ]


def holed(rng: np.random.Generator, *shape: int) -> Tensor:
    """A random bool mask [..., seq_q, seq_k]; each row holds at least one True and one False."""
    mask = rng.random(shape) < 0.55
    rows = mask.reshape(-1, shape[-1])
    for row in rows:
        opened, shut = rng.permutation(shape[-1])[:2]
        row[opened], row[shut] = True, False
    return torch.from_numpy(mask)


def _closed(mask: Tensor, *rows: int) -> Tensor:
    mask = mask.clone()
    mask[list(rows)] = False
    return mask


def _first_keys(seq_k: int, counts: list[int]) -> Tensor:
    """A mask [len(counts), seq_k] whose row i sees the first counts[i] keys."""
    return torch.tensor([[True] * n + [False] * (seq_k - n) for n in counts])
