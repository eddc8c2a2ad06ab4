"""Query heads that share keys and values: grouped-query and multi-query attention.

Source: Shazeer 2019, arXiv 1911.02150, section 3 (one key/value head for all); Ainslie et al. 2023,
arXiv 2305.13245, section 2 (one for each group, and how an ordinary model is turned into one).
"""

import math

from torch import Tensor

from labs_lib.attention.single_head import attention_weights
from labs_lib.config import checked_n_kv_head


def grouped_query_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the answers of n_head query heads that share n_kv_head keys and values.

    q is [batch, n_head, seq_q, head_dim], k [batch, n_kv_head, seq_k, head_dim] and v
    [batch, n_kv_head, seq_k, d_v]; mask is bool, True = may attend, and broadcasts to
    [batch, n_head, seq_q, seq_k]. Query head h reads key/value head h // (n_head // n_kv_head). The
    result is [batch, n_head, seq_q, d_v]. The queries of a group are laid under one another, so
    that k and v are never repeated; a query that may attend to nothing gets zeros.
    Raises ValueError when n_kv_head does not divide n_head or the widths differ.
    """
    group = _group_size(q, k, v)
    batch, n_head, seq_q, head_dim = q.shape
    n_kv_head, seq_k = k.shape[1:3]
    rows = q.reshape(batch, n_kv_head, group * seq_q, head_dim)  # rows: head by head in a group
    scores = rows @ k.mT / math.sqrt(head_dim)  # [batch, n_kv_head, group * seq_q, seq_k]
    weights = attention_weights(scores.view(batch, n_head, seq_q, seq_k), mask)
    heads = weights.view(batch, n_kv_head, group * seq_q, seq_k) @ v
    return heads.view(batch, n_head, seq_q, v.shape[-1])


def mha_to_gqa(W_K: Tensor, W_V: Tensor, n_head: int, n_kv_head: int) -> tuple[Tensor, Tensor]:
    """Return W_K and W_V with the heads of each group replaced by their mean.

    Both are [d_model, n_head * width]; the results are [d_model, n_kv_head * width]. Neighbours
    make a group: heads 0 to n_head // n_kv_head - 1 are the first.
    Raises ValueError when the sizes do not divide.
    Source: Ainslie et al. 2023, section 2.1.
    """
    return _pooled(W_K, n_head, n_kv_head), _pooled(W_V, n_head, n_kv_head)


def _pooled(W: Tensor, n_head: int, n_kv_head: int) -> Tensor:
    checked_n_kv_head(n_kv_head, n_head)
    if W.shape[1] % n_head:
        raise ValueError(f"{W.shape[1]} columns are not {n_head} heads of equal width")
    groups = W.unflatten(1, (n_kv_head, n_head // n_kv_head, -1))
    return groups.mean(dim=2).flatten(1)  # [d_model, n_kv_head * width]


def _group_size(q: Tensor, k: Tensor, v: Tensor) -> int:
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q has head_dim {q.shape[-1]} and k has {k.shape[-1]}; they must agree")
    if k.shape[:3] != v.shape[:3]:
        raise ValueError(
            f"k is {list(k.shape)} and v is {list(v.shape)}; batch, n_kv_head and seq_k must agree"
        )
    return q.shape[1] // checked_n_kv_head(k.shape[1], q.shape[1])
