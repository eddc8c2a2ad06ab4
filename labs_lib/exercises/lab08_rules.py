"""Lab 08: its structural rules, measured by what torch runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .inputs import qkv, rule_generator, uniform
from .measure import flops, largest_allocation


def repeats_no_key(program: Callable[..., Any]) -> bool:
    """Whether no tensor larger than K itself is made when eight query heads share two."""
    rng = rule_generator(8)
    q, _, _ = qkv(rng, n_head=8, seq_q=1, seq_k=256, head_dim=16)
    _, k, v = qkv(rng, n_head=2, seq_q=1, seq_k=256, head_dim=16)
    return largest_allocation(program, q, k, v) <= k.numel()


def unpacks_no_latent(program: Callable[..., Any]) -> bool:
    """Whether one query's attention takes fewer operations than unpacking the keys alone would."""
    rng = rule_generator(8)
    n_head, own, rank, rotary, seq = 4, 16, 24, 4, 256
    q, q_rotary = uniform(rng, 1, n_head, 1, own), uniform(rng, 1, n_head, 1, rotary)
    latent, rotary_key = uniform(rng, 1, seq, rank), uniform(rng, 1, seq, rotary)
    W = [uniform(rng, rank, n_head * own, std=0.2) for _ in range(2)]
    return flops(program, q, q_rotary, latent, rotary_key, *W) < 2 * seq * rank * n_head * own
