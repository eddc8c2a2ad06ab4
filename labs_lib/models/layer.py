"""The attention layer of both models: projections, an exchangeable core, and W_O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labs_lib.models.hooks import Hooks, softmax_weights
from labs_lib.models.kv_cache import KVCache

# attend(q, k, v, mask): each [batch, n_head, seq, head_dim]; mask bool, True = may attend, or None.
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return torch's attention of q, k, v [batch, n_head, seq, head_dim]; mask as in `Attend`.

    Raises ValueError where k and v differ in length: torch reads beyond the end of the shorter.
    """
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"k has {k.shape[-2]} tokens and v has {v.shape[-2]}; each has both")
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def unfilled(*size: int) -> nn.Parameter:
    """Return room for a weight of this size that a file fills and no training changes."""
    return nn.Parameter(torch.empty(*size), requires_grad=False)


@dataclass(frozen=True)
class Shape:
    """Sizes of a model; group is the number of query heads that share a key/value head."""

    n_layer: int
    d_model: int
    n_head: int
    n_kv_head: int
    head_dim: int
    d_ff: int
    vocab: int
    context: int

    @property
    def group(self) -> int:
        """How many query heads share a key/value head."""
        return self.n_head // self.n_kv_head


@dataclass
class Pass:
    """What a pass through a model carries along to every layer."""

    attend: Attend
    mask: Tensor | None = None
    turns: tuple[Tensor, Tensor] | None = None
    hooks: Hooks | None = None
    cache: KVCache | None = None


class AttentionLayer(nn.Module):
    """Attention whose heads keep their numbers when others are pruned.

    W_Q is [d_model, n_head * head_dim], used as `x @ W_Q`; `head_ids` are the numbers of the query
    heads that are left, `kv_of_head` the key/value head that each of them reads.
    """

    def __init__(self, shape: Shape, *, bias: bool):
        super().__init__()
        self.head_dim = shape.head_dim
        self.head_ids = list(range(shape.n_head))
        self.kv_of_head = [h // shape.group for h in self.head_ids]
        wide, narrow = shape.n_head * shape.head_dim, shape.n_kv_head * shape.head_dim
        self.W_Q, self.b_Q = _projection(shape.d_model, wide, bias)
        self.W_K, self.b_K = _projection(shape.d_model, narrow, bias)
        self.W_V, self.b_V = _projection(shape.d_model, narrow, bias)
        self.W_O, self.b_O = _projection(wide, shape.d_model, bias)

    def forward(self, x: Tensor, along: Pass, layer: int) -> Tensor:
        """Return [batch, seq_q, d_model] for x of that shape."""
        heads = self.heads(x, along, layer)
        if along.hooks is not None:
            heads = along.hooks.change(layer, heads, self.head_ids)
            along.hooks.see(layer, "heads", heads)
        out = heads.transpose(1, 2).flatten(2) @ self.W_O
        return out if self.b_O is None else out + self.b_O

    def heads(self, x: Tensor, along: Pass, layer: int) -> Tensor:
        """Return what each head answers before W_O: [batch, n_head, seq_q, head_dim]."""
        q = self._split(x, self.W_Q, self.b_Q)
        k, v = self._split(x, self.W_K, self.b_K), self._split(x, self.W_V, self.b_V)
        if along.turns is not None:
            q, k = turn(q, *along.turns), turn(k, *along.turns)
        if along.cache is not None:
            k, v = along.cache.append(layer, k, v)
        kept = (q, k, v)
        k, v = self._shared(k), self._shared(v)  # [batch, n_head, seq_k, head_dim]
        if along.hooks is not None:
            for kind, tensor in zip("qkv", kept, strict=True):
                along.hooks.see(layer, kind, tensor)
            along.hooks.see(layer, "weights", lambda: softmax_weights(q, k, along.mask))
        if not self.head_ids:
            return q
        answer = along.attend(q, k, v, along.mask)
        if answer.shape != q.shape:
            raise ValueError(
                f"attend returned {tuple(answer.shape)} in layer {layer}; it is to be of the shape "
                f"of q, {tuple(q.shape)}"
            )
        return answer

    def contributions(self, heads: Tensor) -> Tensor:
        """Return what each head adds to the residual stream: [batch, n_head, seq_q, d_model].

        heads is [batch, n_head, seq_q, head_dim]; the sum over heads and b_O is the layer's output.
        """
        return heads @ self.W_O.unflatten(0, (-1, self.head_dim))

    def _split(self, x: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
        wide = x @ W if b is None else x @ W + b
        return wide.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)  # [batch, n, seq, head_dim]

    def _shared(self, x: Tensor) -> Tensor:
        """Repeat each key/value head for the query heads that read it."""
        if self.kv_of_head == list(range(x.shape[1])):
            return x
        return x[:, self.kv_of_head]


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return x [..., seq, head_dim] turned by its positions; cos and sin are [seq, head_dim / 2].

    Number i of a head's first half and number i of its second half are one pair.
    Source: Su et al. 2021, arXiv 2104.09864.
    """
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _projection(d_in: int, d_out: int, bias: bool) -> tuple[nn.Parameter, nn.Parameter | None]:
    return unfilled(d_in, d_out), unfilled(d_out) if bias else None
