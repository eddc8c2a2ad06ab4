"""Lab 11: its structural rules, measured by what a program allocates and multiplies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .inputs import qkv, rule_generator, uniform
from .measure import flops, largest_allocation

SEQ_Q, SEQ_K, BLOCK = 64, 192, 8


def one_tile_at_a_time(program: Callable[..., Any]) -> bool:
    """Whether no tensor as large as one row of scores is made, beside some of q's or k's size."""
    q, k, v = _inputs()
    return _largest(program, q, k, v, BLOCK, BLOCK) < SEQ_K


def gradient_by_tiles(program: Callable[..., Any]) -> bool:
    """The same for the backward pass."""
    q, k, v = _inputs()
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    out, lse = scores.softmax(dim=-1) @ v, scores.logsumexp(dim=-1)
    return _largest(program, q, k, v, out, lse, out.clone(), BLOCK, BLOCK) < SEQ_K


def hidden_tiles_skipped(program: Callable[..., Any]) -> bool:
    """Whether no more is multiplied than tiles that hold a visible pair ask for."""
    q = uniform(rule_generator(5), 1, 1, 64, 4)
    visible = 8 * 9 // 2
    return flops(program, q, q, q, 8, 8) <= visible * 2 * (2 * 8 * 8 * 4)


def shared_heads_not_copied(program: Callable[..., Any]) -> bool:
    """Whether sixteen query heads read two key/value heads without eight copies of each."""
    rng = rule_generator(5)
    q = uniform(rng, 1, 16, 4, 2)
    k, v = (uniform(rng, 1, 2, 512, 2) for _ in range(2))
    return largest_allocation(program, q, k, v, 4, 8) < 4 * k.numel()


def _inputs() -> tuple[Tensor, Tensor, Tensor]:
    rng = rule_generator(5)
    return qkv(rng, batch=1, n_head=1, seq_q=SEQ_Q, seq_k=SEQ_K, head_dim=2)


def _largest(program: Callable[..., Any], q: Tensor, k: Tensor, *more: Any) -> int:
    allowed = (q.numel(), k.numel())  # the output, the gradients, widened copies

    def counted(made: torch.Tensor) -> bool:
        return made.numel() not in allowed

    return largest_allocation(program, q, k, *more, counted=counted)
