"""Lab 03: the cases of its exercises, and how a loop over heads is counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .inputs import causal_pairs, own_masks, rule_generator, uniform
from .kit import Case
from .measure import PRODUCTS, operators


def per_head_cases(rng: np.random.Generator) -> list[Case]:
    """x [batch, seq, d_in] with three stacks of small matrices [n_head, d_in, head_dim].

    The first has four heads: with three, one result for each head looks like one for each letter.
    """

    def case(name, batch, seq, d_in, n_head, head_dim, dtype=torch.float32, grad=False):
        x = uniform(rng, batch, seq, d_in, dtype=dtype)
        W = [_per_head(rng, n_head, d_in, head_dim, dtype) for _ in range(3)]
        return Case(name, (x, *W), grad=grad)

    return [
        case("four heads, seven tokens", 2, 7, 20, 4, 5),
        case("four heads of five that read six numbers", 2, 5, 6, 4, 5),
        case("three sequences of three tokens, three heads", 3, 3, 9, 3, 3),
        case("two heads in float64", 1, 4, 8, 2, 4, torch.float64),
        case("gradients", 2, 3, 6, 3, 2, torch.float64, grad=True),
    ]


def stack_cases(rng: np.random.Generator) -> list[Case]:
    """W [n_head, d_in, head_dim]."""

    def case(name, n_head, d_in, head_dim, dtype=torch.float32, grad=False):
        return Case(name, (uniform(rng, n_head, d_in, head_dim, dtype=dtype),), grad=grad)

    return [
        case("three heads of four that read twelve numbers", 3, 12, 4),
        case("four heads of five that read six numbers", 4, 6, 5),
        case("three heads of three that read three numbers", 3, 3, 3),
        case("twelve heads of two in float64", 12, 24, 2, torch.float64),
        case("gradients", 3, 6, 2, torch.float64, grad=True),
    ]


def fused_cases(rng: np.random.Generator) -> list[Case]:
    """x [2, seq, d_in], three wide matrices [d_in, n_head * head_dim], n_head, perhaps a mask."""

    def case(name, seq, d_in, n_head, head_dim, mask=(), dtype=torch.float32, grad=False):
        x = uniform(rng, 2, seq, d_in, dtype=dtype)
        W = [_per_head(rng, 1, d_in, n_head * head_dim, dtype)[0] for _ in range(3)]
        return Case(name, (x, *W, n_head, *mask), grad=grad)

    return [
        case("three heads, seven tokens", 7, 12, 3, 4),
        case("a causal mask", 7, 12, 3, 4, mask=(causal_pairs(7, 7),)),
        case("four heads of three that read ten numbers", 5, 10, 4, 3),
        case("a mask for each sequence", 6, 8, 2, 4, (own_masks(rng, 6),), torch.float64),
        case("one head", 4, 6, 1, 6),
        case("gradients", 4, 6, 3, 2, (causal_pairs(4, 4),), torch.float64, grad=True),
    ]


def unstack_cases(rng: np.random.Generator) -> list[Case]:
    """W_QKV [d_in, 3 * n_head * head_dim], n_head, and in some cases the layout.

    The first two have four heads: with three, a third of the columns is as wide as a head's share.
    """

    def case(name, d_in, n_head, head_dim, layout=(), dtype=torch.float32, grad=False):
        W = uniform(rng, d_in, 3 * n_head * head_dim, dtype=dtype)
        return Case(name, (W, n_head, *layout), grad=grad)

    return [
        case("stacked, four heads of five", 10, 4, 5),
        case("interleaved, four heads of five", 10, 4, 5, (True,)),
        case("stacked by name, two heads of five", 6, 2, 5, (False,), torch.float64),
        case("interleaved, four heads of two", 6, 4, 2, (True,), torch.float64),
        case("interleaved, three heads of three", 3, 3, 3, (True,)),
        case("gradients", 4, 3, 2, (), torch.float64, grad=True),
    ]


def has_no_loop_over_heads(program: Callable[..., Any]) -> bool:
    """Whether the program runs as many products, softmaxes and sums for six heads as for two."""
    return _counted_work(program, 2) == _counted_work(program, 6)


def _counted_work(program: Callable[..., Any], n_head: int) -> int:
    rng = rule_generator(n_head)
    x, *W = (uniform(rng, *shape) for shape in ((2, 5, 12), (12, 12), (12, 12), (12, 12)))
    counted = operators(program, x, *(w / 12**0.5 for w in W), n_head)
    plain = (*PRODUCTS, "mul", "div", "sum", "exp")
    return sum(
        count
        for name, count in counted.items()
        if name.rstrip("_") in plain or "softmax" in name or "attention" in name
    )


def _per_head(
    rng: np.random.Generator, n_head: int, d_in: int, head_dim: int, dtype: torch.dtype
) -> Tensor:
    return uniform(rng, n_head, d_in, head_dim, std=d_in**-0.5, dtype=dtype)
