"""Multi-head attention as the paper writes it: a small matrix for each head, and a loop.

Slow and plain; the file that says what is meant.
"""

import torch
from torch import Tensor

from labs_lib.attention.single_head import scaled_dot_product_attention
from labs_lib.config import checked_n_kv_head


def per_head_qkv(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values of all heads; each head reads the whole of x.

    x is [batch, seq, d_model], W_Q [n_head, d_model, head_dim], W_K and W_V the same with
    n_kv_head matrices (n_head of them unless heads share). The results are
    [batch, n_head, seq, head_dim] and twice [batch, n_kv_head, seq, head_dim].
    Source: Vaswani et al. 2017, section 3.2.2.
    """
    q = torch.stack([x @ W for W in W_Q], dim=1)
    k = torch.stack([x @ W for W in W_K], dim=1)
    v = torch.stack([x @ W for W in W_V], dim=1)
    return q, k, v


def per_head_attention(
    x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Return what each head answers, one head after the other: [batch, n_head, seq, d_v].

    Shapes as in per_head_qkv; mask is bool, True = may attend, and broadcasts to
    [batch, n_head, seq, seq]. Query head h uses key/value head h // (n_head // n_kv_head).
    Raises ValueError when n_kv_head does not divide n_head.
    """
    q, k, v = per_head_qkv(x, W_Q, W_K, W_V)
    n_head, n_kv_head = q.shape[1], k.shape[1]
    checked_n_kv_head(n_kv_head, n_head)
    if mask is not None:
        mask = mask.broadcast_to(*q.shape[:3], k.shape[2])  # [batch, n_head, seq, seq]
    answers = []
    for h in range(n_head):
        kv = h // (n_head // n_kv_head)
        head_mask = None if mask is None else mask[:, h]
        answers.append(scaled_dot_product_attention(q[:, h], k[:, kv], v[:, kv], head_mask))
    return torch.stack(answers, dim=1)
