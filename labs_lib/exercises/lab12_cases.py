"""Lab 12: cases of one layer, assembled from five steps, and of its weights in a file."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ..models.layer import sdpa
from .inputs import uniform, weight
from .kit import Case
from .lab08_cases import turn


def attention_by_nearness(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """An attention that isn't the usual one: weights are 1 / (1 + |score|), normed to sum to 1."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = 1 / (1 + scores.abs())
    if mask is not None:
        weights = weights * mask
    return weights / weights.sum(dim=-1, keepdim=True) @ v


def assemble_cases(rng: np.random.Generator) -> list[Case]:
    """x [batch, seq, d_model] cut into steps, a layer's weights, and how heads share them."""

    def case(
        name, split, heads, *, d_model=12, head_dim=4, dtype=torch.float32, grad=False, attend=sdpa
    ):
        (n_head, n_kv_head), batch = heads, 2
        x = uniform(rng, batch, sum(split), d_model, std=1.0, dtype=dtype)
        wide, narrow = n_head * head_dim, n_kv_head * head_dim
        sizes = {"W_Q": wide, "W_K": narrow, "W_V": narrow}
        W = {
            key: uniform(rng, d_model, size, std=1.5 * d_model**-0.5, dtype=dtype)
            for key, size in sizes.items()
        }
        W["W_O"] = weight(rng, wide, d_model, dtype)
        return Case(name, (x, W, n_head, n_kv_head, turn, attend), {"split": split}, grad)

    return [
        case("six heads share three, one by one at last", [4, 1, 1, 1], (6, 3)),
        case("six heads share two, one by one from the start", [1] * 5, (6, 2)),
        case("eight heads share four, three after four", [4, 3], (8, 4), head_dim=2),
        case("every head has keys of its own", [3, 2], (3, 3), dtype=torch.float64),
        case("one key/value head for all", [2, 1, 2], (5, 1), dtype=torch.float64),
        case("heads as wide as the model", [3, 1], (6, 2), d_model=24),
        case("another attention", [4, 2], (6, 3), attend=attention_by_nearness),
        case("two ways to go on from one text", [3, 1, 2], (4, 2)),
        case("gradients", [3, 1], (4, 2), head_dim=2, dtype=torch.float64, grad=True),
    ]


def file_cases(rng: np.random.Generator) -> list[Case]:
    """The tensors of a small model's file, a layer's number, n_head and n_kv_head."""

    def case(name, layer, heads, head_dim, d_model, dtype=torch.float32):
        n_head, n_kv_head = heads
        wide, narrow = n_head * head_dim, n_kv_head * head_dim
        tensors = {"token_embd.weight": uniform(rng, 5, d_model, dtype=dtype)}
        for number in range(3):
            sizes = {
                "attn_norm": (d_model,),
                "attn_k": (narrow, d_model),
                "attn_output": (d_model, wide),
                "attn_q": (wide, d_model),
                "attn_v": (narrow, d_model),
                "ffn_up": (2 * d_model, d_model),
            }
            for kind, size in sizes.items():
                tensors[f"blk.{number}.{kind}.weight"] = uniform(rng, *size, dtype=dtype)
        return Case(name, (tensors, layer, n_head, n_kv_head))

    return [
        case("nine heads share three", 1, (9, 3), 4, 20),
        case("six heads share two, all matrices square but two", 0, (6, 2), 8, 48),
        case("every head has keys of its own", 2, (4, 4), 6, 24),
        case("one key/value head for all", 1, (3, 1), 8, 10, torch.float64),
        case("float16", 2, (4, 2), 10, 12, torch.float16),
    ]
