"""The whole layer: heads side by side, merged by W_O into the width of the model."""

import math

import torch
from torch import Tensor, nn

from labs_lib.attention.fused import fused_multi_head, unstack_projection
from labs_lib.attention.heads import merge_heads, split_heads
from labs_lib.attention.single_head import attention_scores, attention_weights
from labs_lib.attention.single_head import scaled_dot_product_attention as sdpa
from labs_lib.config import AttentionConfig


def concat_heads(heads: Tensor) -> Tensor:
    """Return the heads of each token side by side; numbers move, none is computed.

    heads is [batch, n_head, seq, head_dim]; the result is [batch, seq, n_head * head_dim].
    """
    return merge_heads(heads)


def apply_w_o(concat: Tensor, W_O: Tensor) -> Tensor:
    """Return each token's heads mixed into the width of the model: concat @ W_O.

    concat is [batch, seq, n_head * head_dim], W_O [n_head * head_dim, d_model]; the result is
    [batch, seq, d_model]. Source: Vaswani et al. 2017, section 3.2.2.
    """
    return concat @ W_O


def per_head_contributions(heads: Tensor, W_O: Tensor) -> Tensor:
    """Return what each head alone adds to the output: head h times row block h of W_O.

    heads is [batch, n_head, seq, head_dim], W_O [n_head * head_dim, d_model]; the result is
    [batch, n_head, seq, d_model], and its sum over n_head is the layer's output.
    """
    n_head, head_dim = heads.shape[1], heads.shape[3]
    W_O = W_O.unflatten(0, (n_head, head_dim))  # [n_head, head_dim, d_model]
    return heads @ W_O


def without_w_o(
    x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, n_head: int, mask: Tensor | None = None
) -> Tensor:
    """Return the output of a layer that leaves W_O out: the heads side by side and nothing else.

    Shapes as in fused_multi_head; each head writes into its own head_dim numbers of the result,
    [batch, seq, d_model]. Raises ValueError unless the heads together are as wide as x: only W_O
    could fit another width to the residual stream.
    """
    if W_V.shape[1] != x.shape[-1]:
        raise ValueError(
            f"the heads are {W_V.shape[1]} wide and x is {x.shape[-1]}; without W_O the two must "
            "be equal to be added"
        )
    return fused_multi_head(x, W_Q, W_K, W_V, n_head, mask)


def fold_w_o(W_V: Tensor, W_O: Tensor, n_head: int) -> Tensor:
    """Return W_V and W_O merged into one value matrix per head, of rank head_dim at most.

    W_V is [d_in, n_head * head_dim], W_O [n_head * head_dim, d_model]; the result is
    [n_head, d_in, d_model]. Source: Elhage et al. 2021, the OV circuit.
    """
    return unstack_projection(W_V, n_head) @ W_O.unflatten(0, (n_head, -1))


def folded_multi_head(
    x: Tensor, W_Q: Tensor, W_K: Tensor, W_VO: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Return the layer's output from folded value matrices: a sum over heads, no concatenation.

    x is [batch, seq, d_in], W_Q and W_K [d_in, n_head * head_dim], W_VO as fold_w_o returns it;
    the result is [batch, seq, d_model].
    """
    n_head = W_VO.shape[0]
    q, k = split_heads(x @ W_Q, n_head), split_heads(x @ W_K, n_head)
    weights = attention_weights(attention_scores(q, k), mask)  # [batch, n_head, seq, seq]
    values = x.unsqueeze(1) @ W_VO  # [batch, n_head, seq, d_model]
    return (weights @ values).sum(dim=1)


class MultiHeadAttention(nn.Module):
    """Multi-head, grouped-query or multi-query attention, as the configuration says.

    `attend(q, k, v, mask)` may be replaced by another implementation of the same contract.
    """

    def __init__(self, config: AttentionConfig, attend=sdpa):
        super().__init__()
        self.config, self.attend = config, attend
        c = config
        self.W_Q, self.b_Q = _projection(c.d_in, c.width, c.bias)
        self.W_K, self.b_K = _projection(c.d_in, c.kv_width, c.bias)
        self.W_V, self.b_V = _projection(c.d_in, c.kv_width, c.bias)
        self.W_O, self.b_O = _projection(c.width, c.d_model, c.bias)

    def forward(
        self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Return [batch, seq_q, d_model] for x [batch, seq_q, d_in].

        Keys and values come from context [batch, seq_k, d_in], by default x itself; mask is bool,
        True = may attend, and broadcasts to [batch, n_head, seq_q, seq_k].
        """
        return self.output(self.heads(x, context, mask))

    def heads(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Return the heads' answers before W_O: [batch, n_head, seq_q, head_dim]."""
        q, k, v = self.project(x, x if context is None else context)
        if self.config.group_size > 1:  # head h uses head h // group_size of k and v
            # This copies them: shared heads save parameters here, and no memory.
            k, v = (t.repeat_interleave(self.config.group_size, dim=1) for t in (k, v))
        return self.attend(q, k, v, mask)

    def project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return q [batch, n_head, seq_q, head_dim] of x [batch, seq_q, d_in], and of context k, v.

        context is [batch, seq_k, d_in], k and v are [batch, n_kv_head, seq_k, head_dim].
        """
        q = split_heads(_plus(x @ self.W_Q, self.b_Q), self.config.n_head)
        k = split_heads(_plus(context @ self.W_K, self.b_K), self.config.n_kv_head)
        v = split_heads(_plus(context @ self.W_V, self.b_V), self.config.n_kv_head)
        return q, k, v

    def output(self, heads: Tensor) -> Tensor:
        """Return the output [batch, seq_q, d_model] of heads [batch, n_head, seq_q, head_dim]."""
        return _plus(apply_w_o(concat_heads(heads), self.W_O), self.b_O)


def _projection(d_in: int, d_out: int, bias: bool) -> tuple[nn.Parameter, nn.Parameter | None]:
    bound = 1 / math.sqrt(d_in)
    weight = nn.Parameter(torch.empty(d_in, d_out).uniform_(-bound, bound))
    return weight, nn.Parameter(torch.zeros(d_out)) if bias else None


def _plus(x: Tensor, bias: Tensor | None) -> Tensor:
    return x if bias is None else x + bias
