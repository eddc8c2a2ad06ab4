"""Lab 11: the cases of the exercises that are written in torch."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor

from .inputs import qkv, uniform
from .kit import Case
from .lab10_cases import last_above, steep_qkv

WIDE = torch.float64


def forward_cases(rng: np.random.Generator) -> list[Case]:
    """q, k, v and the two sides of a tile."""

    def case(name, seq_q, seq_k, block_q, block_k, head_dim=4, v_dim=None, grad=False, **more):
        inputs = qkv(rng, seq_q=seq_q, seq_k=seq_k, head_dim=head_dim, v_dim=v_dim, **more)
        return Case(name, (*inputs, block_q, block_k), grad=grad)

    def steep(name, of_query, of_key, head_dim=4, dtype=torch.float32):
        return Case(name, (*steep_qkv(rng, of_query, of_key, head_dim, dtype), 16, 16))

    def flat(name, level, seq_q, seq_k, dtype=torch.float32):
        return steep(name, torch.full((seq_q,), level), torch.zeros(seq_k), dtype=dtype)

    small = {"std": 1.0, "batch": 1}
    rise = torch.linspace(-10, 10, 48)
    return [
        case("three heads, seven tokens", 7, 7, 3, 2),
        case("tiles as wide as v", 8, 16, 4, 4, v_dim=4, dtype=WIDE),
        case("seventeen queries, thirty-three keys", 17, 33, 16, 16, 8, 5, **small),
        case("more queries than keys", 31, 9, 8, 4, **small),
        case("one query", 1, 31, 16, 8, dtype=WIDE),
        case("one key", 5, 1, 2, 4, **small),
        case("one tile holds all", 6, 5, 16, 16, **small),
        case("no keys", 3, 0, 2, 2, **small),
        case("head_dim 72", 5, 20, 4, 8, 72, dtype=WIDE, **small),
        steep("scores that rise along the keys", torch.zeros(17), rise),
        steep("scores that fall along the keys", torch.zeros(3), -rise),
        steep("scores from 90 to 120", torch.full((3,), 105.0), 1.5 * rise, 16),
        steep("rows around 150 and around -150", torch.tensor([150.0, -150] * 10), torch.zeros(33)),
        flat("scores around -200", -200.0, 3, 33),
        flat("scores around -60000", -6e4, 3, 33, WIDE),
        flat("seventeen scores around -8", -8.0, 2, 17),
        Case("scores beyond float16", (*_large_half(rng), 4, 8)),
        case("bfloat16", 9, 20, 4, 8, 8, dtype=torch.bfloat16, **small),
        case("gradients", 5, 7, 2, 3, dtype=WIDE, grad=True, **small),
    ]


def causal_cases(rng: np.random.Generator) -> list[Case]:
    """q, k, v and the two sides of a tile; the mask is the function's own business."""

    small_qkv = partial(qkv, rng, std=1.0, batch=1)

    def case(name, seq_q, seq_k, block_q, block_k, grad=False, **more):
        inputs = small_qkv(seq_q=seq_q, seq_k=seq_k, **more)
        return Case(name, (*inputs, block_q, block_k), grad=grad)

    level = steep_qkv(rng, torch.full((20,), -9.0), torch.zeros(20), 4, torch.float32)
    above = steep_qkv(rng, torch.zeros(12), last_above(12), 4, torch.float32)
    return [
        case("three heads, seven tokens", 7, 7, 3, 2, batch=2, std=2.0),
        case("tiles that are no divisors", 33, 33, 8, 5, dtype=WIDE),
        case("sixteen queries, forty-eight keys", 16, 48, 8, 16),
        case("forty-eight queries, sixteen keys", 48, 16, 10, 8, dtype=WIDE),
        case("one query", 1, 31, 4, 8),
        case("two queries, five keys", 2, 5, 2, 2, dtype=WIDE),
        case("one tile holds all", 9, 9, 16, 16),
        case("wide tiles", 20, 20, 4, 16),
        case("high tiles", 20, 20, 16, 4),
        Case("scores around -9", (*level, 8, 8)),
        Case("the last key 150 above the others", (*above, 4, 5)),
        case("gradients", 6, 8, 2, 3, dtype=WIDE, grad=True),
    ]


def gqa_cases(rng: np.random.Generator) -> list[Case]:
    """q with n_head heads, k and v with fewer; then sizes that must be refused."""

    def case(name, n_head, n_kv_head, seq_q=7, seq_k=9, dtype=torch.float32, grad=False):
        q = uniform(rng, 2, n_head, seq_q, 4, dtype=dtype)
        k, v = (uniform(rng, 2, n_kv_head, seq_k, 4, dtype=dtype) for _ in range(2))
        return Case(name, (q, k, v, 3, 4), grad=grad)

    return [
        case("six heads share three", 6, 3),
        case("six heads share two", 6, 2, dtype=WIDE),
        case("four heads share one", 4, 1, 5, 17),
        case("four heads, four of their own", 4, 4, 6, 6, WIDE),
        case("eight heads share two", 8, 2, 1, 33),
        case("as many tokens as heads in a group", 6, 2, 3, 3),
        case("refuse: three heads can't share two", 3, 2),
        case("refuse: four heads can't share eight", 4, 8),
        case("gradients", 4, 2, 3, 5, WIDE, grad=True),
    ]


def backward_cases(rng: np.random.Generator) -> list[Case]:
    """q, k, v, what the forward pass gave, the gradient that comes back, and the tile."""

    small_qkv = partial(qkv, rng, std=1.0, batch=1)

    def case(name, seq_q, seq_k, block_q, block_k, head_dim=4, v_dim=None, **more):
        q, k, v = small_qkv(seq_q=seq_q, seq_k=seq_k, head_dim=head_dim, v_dim=v_dim, **more)
        return Case(name, (*_after_forward(rng, q, k, v), block_q, block_k))

    steep = steep_qkv(rng, torch.full((9,), -200.0), torch.linspace(-2, 2, 33), 4, WIDE)
    high = steep_qkv(rng, torch.full((5,), 300.0), torch.linspace(-2, 2, 17), 4, WIDE)
    return [
        case("three heads, seven tokens", 7, 7, 3, 2, batch=2, std=2.0),
        case("seventeen queries, thirty-three keys", 17, 33, 8, 16, 8, 5, dtype=WIDE),
        case("more queries than keys", 31, 9, 8, 4),
        case("tiles as wide as a head", 8, 8, 4, 4, dtype=WIDE),
        case("one query", 1, 20, 4, 8, 16, dtype=WIDE),
        case("one tile holds all", 6, 5, 16, 16),
        Case("scores around -200", (*_after_forward(rng, *steep), 4, 8)),
        Case("scores around 300", (*_after_forward(rng, *high), 4, 8)),
    ]


def io_cases(rng: np.random.Generator) -> list[Case]:
    """n_q, n_k, head_dim, block_q and bytes an element, some of them drawn."""

    def drawn(name, itemsize):
        n_q, n_k = (int(n) for n in rng.integers(300, 5000, 2))
        d, block = int(rng.integers(2, 16)) * 8, int(rng.integers(3, 100))
        return Case(name, (n_q, n_k, d, block, itemsize))

    return [
        Case("1,024 tokens, tiles of 64", (1024, 1024, 64, 64, 2)),
        Case("256 tokens in float32, tiles of 32", (256, 256, 64, 32, 4)),
        Case("a tile that is no divisor", (1000, 1000, 72, 64, 2)),
        Case("a tile larger than the text", (10, 5000, 128, 64, 2)),
        Case("one query, as in decoding", (1, 8192, 128, 64, 2)),
        drawn("drawn sizes", 2),
        drawn("drawn sizes in float32", 4),
        drawn("drawn sizes in float64", 8),
    ]


def _large_half(rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """q and k whose products leave float16 before they are scaled."""
    q, k = (torch.full((1, 1, n, 128), 30.0, dtype=torch.float16) for n in (5, 24))
    return q, k, uniform(rng, 1, 1, 24, 8, mean=1.0, std=0.3, dtype=torch.float16)


def _after_forward(rng: np.random.Generator, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    out = scores.softmax(dim=-1) @ v
    d_out = uniform(rng, *out.shape, std=1.0, dtype=q.dtype)
    return q, k, v, out, scores.logsumexp(dim=-1), d_out
