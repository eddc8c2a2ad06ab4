"""Lab 10: its structural rules, measured by how much memory a program takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .inputs import qkv, rule_generator, uniform
from .lab10_cases import stream_of
from .measure import peak_memory


def forgets_blocks(program: Callable[..., Any]) -> bool:
    """Whether a program that reads 24 blocks never holds half as many numbers as they have."""
    blocks = uniform(rule_generator(5), 24, 4, 32)
    return peak_memory(lambda: program(stream_of(blocks))) < blocks.nbytes / 2


def never_a_row(program: Callable[..., Any]) -> bool:
    """Whether two queries meet 512 keys without half of their scores existing at one time.

    Tensors as large as k or v don't count: scaled or widened copies of them are no scores.
    """
    rng = rule_generator(5)
    q, k, v = qkv(rng, batch=1, n_head=1, seq_q=2, seq_k=512, head_dim=4)
    scores = q.element_size() * 2 * 512
    peak = peak_memory(program, q, k, v, None, 16, counted=lambda made: made.numel() != k.numel())
    return peak < scores / 2
