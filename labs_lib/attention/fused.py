"""The same heads from one large matrix: column block h of W_Q is the small matrix of head h."""

from torch import Tensor

from labs_lib.attention.heads import merge_heads, split_heads
from labs_lib.attention.single_head import scaled_dot_product_attention


def stack_projections(W: Tensor) -> Tensor:
    """Return the per-head matrices side by side as one.

    W is [n_head, d_model, head_dim]; the result is [d_model, n_head * head_dim].
    """
    return W.transpose(0, 1).flatten(1)  # [d_model, n_head * head_dim]


def unstack_projection(W: Tensor, n_head: int) -> Tensor:
    """Return the per-head matrices of a fused one: the inverse of stack_projections.

    W is [d_model, n_head * head_dim]; the result is a view [n_head, d_model, head_dim].
    Raises ValueError when n_head does not divide the columns.
    """
    return split_heads(W.unsqueeze(0), n_head).squeeze(0)


def unstack_from_fused_qkv(
    W_QKV: Tensor, n_head: int, n_kv_head: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the per-head W_Q, W_K and W_V that one fused matrix holds.

    W_QKV is [d_model, (n_head + 2 * n_kv_head) * head_dim]: first all heads of q, then those of
    k, then those of v. The results are [n_head, d_model, head_dim] and twice
    [n_kv_head, d_model, head_dim]. `n_kv_head` defaults to n_head.
    Raises ValueError when the columns are not a whole number of heads.
    """
    n_kv_head = n_head if n_kv_head is None else n_kv_head
    n_blocks, columns = n_head + 2 * n_kv_head, W_QKV.shape[1]
    if n_head < 1 or n_kv_head < 1 or columns % n_blocks:
        raise ValueError(
            f"W_QKV has {columns} columns, not a multiple of n_head + 2 * n_kv_head = "
            f"{n_head} + 2 * {n_kv_head} = {n_blocks} heads"
        )
    W = unstack_projection(W_QKV, n_blocks)  # [n_head + 2 * n_kv_head, d_model, head_dim]
    W_Q, W_K, W_V = W.split([n_head, n_kv_head, n_kv_head])
    return W_Q, W_K, W_V


def fused_multi_head(
    x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, n_head: int, mask: Tensor | None = None
) -> Tensor:
    """Return the answers of all heads side by side, without a loop over heads.

    x is [batch, seq, d_model], each W is [d_model, n_head * head_dim] and is used as x @ W; mask
    is bool, True = may attend, and broadcasts to [batch, n_head, seq, seq]. The result is
    [batch, seq, n_head * head_dim]. Five matrix products whatever n_head is.
    """
    q, k, v = (split_heads(x @ W, n_head) for W in (W_Q, W_K, W_V))
    heads = scaled_dot_product_attention(q, k, v, mask)  # [batch, n_head, seq, head_dim]
    return merge_heads(heads)
