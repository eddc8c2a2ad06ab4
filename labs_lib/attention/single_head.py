"""One attention head: scores, mask, weights, output.

Everything works on the last two dimensions, so the same functions serve one head
([seq, head_dim]) and many ([batch, n_head, seq, head_dim]).
"""

import math

import torch
from torch import Tensor


def attention_scores(q: Tensor, k: Tensor) -> Tensor:
    """Return how well each query matches each key: q kᵀ / √head_dim.

    q is [..., seq_q, head_dim], k [..., seq_k, head_dim]; the result is [..., seq_q, seq_k].
    Raises ValueError when q and k differ in head_dim.
    Source: Vaswani et al. 2017, equation 1.
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q has head_dim {q.shape[-1]} and k has {k.shape[-1]}; a query can only be compared "
            "with keys of its own width"
        )
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def causal_mask(
    seq_q: int, seq_k: int | None = None, device: torch.device | str | None = None
) -> Tensor:
    """Return the mask of a reader that never looks ahead: bool [seq_q, seq_k], True = may attend.

    The last query is the newest token, so query i sees key j when j <= i + seq_k - seq_q. With
    fewer queries than keys (decoding with a cache) the first queries still see the old keys; with
    more queries than keys the first rows see nothing. `seq_k` defaults to seq_q.
    """
    seq_k = seq_q if seq_k is None else seq_k
    return torch.ones(seq_q, seq_k, dtype=torch.bool, device=device).tril(seq_k - seq_q)


def attention_weights(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the softmax of each row of scores over the keys that it may attend to.

    scores is [..., seq_q, seq_k]; mask is bool, True = may attend, and broadcasts against scores. A
    row that may attend to nothing is all zeros, and so is its gradient.
    Raises TypeError for a mask that is not bool.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    if mask.dtype != torch.bool:
        raise TypeError(f"mask is {mask.dtype}; it is torch.bool, where True means: may attend")
    empty = ~mask.any(dim=-1, keepdim=True)  # [..., seq_q, 1]
    scores = scores.masked_fill(~mask, -math.inf)
    # Zeros stand in for an empty row, or its softmax would be NaN on the way, forward and back.
    return scores.masked_fill(empty, 0.0).softmax(dim=-1).masked_fill(empty, 0.0)


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Return for each query the mean of the values, weighted by how well their keys match.

    q is [..., seq_q, head_dim], k [..., seq_k, head_dim], v [..., seq_k, d_v], mask bool and
    broadcastable to [..., seq_q, seq_k]; the result is [..., seq_q, d_v].
    Source: Vaswani et al. 2017, equation 1.
    """
    return attention_weights(attention_scores(q, k), mask) @ v
