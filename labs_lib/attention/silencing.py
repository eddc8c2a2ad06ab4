"""Take heads away: for one pass, for good, or by as little as a gradient tells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from .heads import merge_heads
from .single_head import scaled_dot_product_attention


def ablate_head(
    q: Tensor, k: Tensor, v: Tensor, W_O: Tensor, head: int, mask: Tensor | None = None
) -> Tensor:
    """Return a layer's output [batch, seq_q, d_model] with one head saying nothing.

    q, k, v are [batch, n_head, seq, head_dim], W_O [n_head * head_dim, d_model]; mask is bool,
    True = may attend.
    """
    heads = scaled_dot_product_attention(q, k, v, mask)
    silenced = heads.index_fill(1, torch.tensor([head]), 0.0)
    return merge_heads(silenced) @ W_O


def head_importance(
    loss_of: Callable[[Tensor, Any], Tensor], examples: Sequence[Any], n_head: int
) -> Tensor:
    """Return each head's |d loss / d gate| at gates of one, mean over the examples: [n_head].

    loss_of(gate, example) is a scalar; gate [n_head] multiplies the heads.
    Source: Michel et al. 2019, arXiv 1905.10650, equation 2.
    """
    total = torch.zeros(n_head)
    for example in examples:
        gate = torch.ones(n_head, requires_grad=True)
        (slope,) = torch.autograd.grad(loss_of(gate, example), gate)
        total += slope.abs()
    return total / len(examples)


def prune(
    W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor, n_head: int, gone: Collection[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the four matrices without the heads in `gone`; the others keep their order.

    W_Q, W_K, W_V are [d_model, n_head * head_dim], W_O is [n_head * head_dim, d_model].
    """
    left = torch.tensor([h for h in range(n_head) if h not in gone], dtype=torch.long)
    columns = [W.unflatten(1, (n_head, -1))[:, left].flatten(1) for W in (W_Q, W_K, W_V)]
    return *columns, W_O.unflatten(0, (n_head, -1))[left].flatten(0, 1)
