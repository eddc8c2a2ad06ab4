"""Lab 08: the cases of its exercises on latent attention."""

from __future__ import annotations

import numpy as np
import torch

from .inputs import causal_pairs, uniform
from .kit import Case
from .lab08_cases import turn


def compress_cases(rng: np.random.Generator) -> list[Case]:
    """A text x [batch, seq, d_model], cut into steps, and what packs and unpacks its latents."""

    def case(
        name, split, *, n_head=3, rank=7, rotary=4, own=5, v_dim=6, dtype=torch.float32, grad=False
    ):
        d_model = 10
        x = uniform(rng, 2, sum(split), d_model, std=1.0, dtype=dtype)
        sizes = (d_model, rank), (d_model, rotary), (rank, n_head * own), (rank, n_head * v_dim)
        W = [uniform(rng, *size, std=1.5 * size[0] ** -0.5, dtype=dtype) for size in sizes]
        return Case(name, (x, *W, n_head, turn), {"split": split}, grad)

    return [
        case("four tokens, then one by one", [4, 1, 1, 1]),
        case("one by one from the start", [1] * 4, n_head=2),
        case("three tokens, then four at once", [3, 4], dtype=torch.float64),
        case("all at once", [5], n_head=4, rotary=2),
        case("parts of equal width", [2, 2], rank=6, rotary=6, own=6, v_dim=6),
        case("two ways to go on from one text", [3, 1, 2]),
        case("gradients", [2, 1], own=2, v_dim=3, dtype=torch.float64, grad=True),
    ]


def absorb_cases(rng: np.random.Generator) -> list[Case]:
    """Queries in two parts, latents and rotary keys, what unpacks latents, perhaps a mask."""

    def case(
        name, seq, *, n_head=3, rank=7, rotary=4, own=5, v_dim=6, mask=(), dtype=torch.float32,
        grad=False,
    ):  # fmt: skip
        seq_q, seq_k = seq
        shapes = (2, n_head, seq_q, own), (2, n_head, seq_q, rotary)
        kept = (2, seq_k, rank), (2, seq_k, rotary)
        packed = (rank, n_head * own), (rank, n_head * v_dim)
        parts = [uniform(rng, *shape, std=1.5, dtype=dtype) for shape in (*shapes, *kept)]
        W = [uniform(rng, *shape, std=rank**-0.5, dtype=dtype) for shape in packed]
        return Case(name, (*parts, *W, *mask), grad=grad)

    own_mask = torch.from_numpy(rng.random((2, 3, 4, 5)) < 0.5)
    own_mask[..., 0] = True
    return [
        case("seven tokens", (7, 7)),
        case("one new token", (1, 8), n_head=4),
        case("four new tokens, causal", (4, 9), mask=(causal_pairs(4, 9),)),
        case("latents wider than heads", (5, 6), rank=20, dtype=torch.float64),
        case("parts of equal width", (4, 4), rank=6, rotary=6, own=6, v_dim=6),
        case("a mask for each text and head", (4, 5), mask=(own_mask,)),
        case("gradients", (3, 4), own=2, v_dim=3, dtype=torch.float64, grad=True),
    ]
