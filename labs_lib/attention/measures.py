"""Numbers that describe a head, read from its attention weights."""

from __future__ import annotations

import torch
from torch import Tensor


def attention_entropy(weights: Tensor) -> Tensor:
    """Return how widely each row of weights [..., seq_q, seq_k] is spread, in nats: [..., seq_q].

    0 where one key has everything, log(seq_k) where all have the same.
    """
    return torch.special.entr(weights).sum(dim=-1)


def previous_token_score(weights: Tensor, real: Tensor | None = None) -> Tensor:
    """Return each head's mean weight on the token before, over all queries that have one: [n_head].

    weights is [batch, n_head, seq, seq]; real is bool [batch, seq], False where a text is padded
    at its end. All queries of all texts count the same.
    """
    before = weights.diagonal(-1, dim1=-2, dim2=-1)  # [batch, n_head, seq - 1]
    if real is None:
        return before.mean(dim=(0, 2))
    counts = real[:, None, 1:].to(weights)
    return (before * counts).sum(dim=(0, 2)) / counts.sum()


def sink_score(weights: Tensor) -> Tensor:
    """Return each head's mean weight on key 0, over all queries but the first: [n_head].

    weights is [batch, n_head, seq, seq], causal; query 0 sees nothing else, so it doesn't count.
    Source: Gu et al. 2025, arXiv 2410.10781, section 3.
    """
    return weights[:, :, 1:, 0].mean(dim=(0, 2))
