"""The whole layer of lab 05: a reference, its parts, and right programs."""

from __future__ import annotations

import functools
import math

import torch
from torch import nn
from torch.nn import functional as F

from labs_lib.attention import multi_head
from labs_lib.config import AttentionConfig

from ..kit import Right


class MultiHeadAttention(multi_head.MultiHeadAttention):
    """The course's layer, made from three sizes."""

    def __init__(self, d_model, n_head, n_kv_head=None):
        super().__init__(AttentionConfig(d_model, n_head, n_kv_head))


class Parts(nn.Module):
    """The right layer in parts, so that a variant replaces one of them."""

    def __init__(self, d_model, n_head, n_kv_head=None):
        super().__init__()
        n_kv_head = n_head if n_kv_head is None else n_kv_head
        self.check(d_model, n_head, n_kv_head)
        self.n_head, self.n_kv_head = n_head, n_kv_head
        self.group = n_head // max(n_kv_head, 1)
        self.head_dim = d_model // n_head
        self.make(d_model, n_kv_head * self.head_dim)

    def check(self, d_model, n_head, n_kv_head):
        if d_model % n_head or n_kv_head < 1 or n_head % n_kv_head:
            raise ValueError(f"{d_model}, {n_head}, {n_kv_head}")

    def make(self, d_model, kv_width):
        for name, out in zip(
            ("W_Q", "W_K", "W_V", "W_O"), (d_model, kv_width, kv_width, d_model), strict=True
        ):
            setattr(self, name, nn.Parameter(torch.randn(d_model, out) * d_model**-0.5))

    def forward(self, x, context=None, mask=None):
        q, k, v = self.project(x, x if context is None else context)
        q, k, v = self.split(q, self.n_head), *(self.split(t, self.n_kv_head) for t in (k, v))
        return self.mix(self.merge(self.attend(q, self.share(k), self.share(v), mask)))

    def project(self, x, context):
        return x @ self.W_Q, context @ self.W_K, context @ self.W_V

    def split(self, x, n_head):
        return x.unflatten(-1, (n_head, -1)).transpose(1, 2)

    def share(self, x):
        return x.repeat_interleave(self.group, dim=1)

    def attend(self, q, k, v, mask):
        return self.weigh(self.hide(q @ k.mT / self.divisor(q), mask), mask) @ v

    def divisor(self, q):
        return math.sqrt(self.head_dim)

    def hide(self, scores, mask):
        return scores if mask is None else scores.masked_fill(~mask, -math.inf)

    def weigh(self, scores, mask):
        return scores.softmax(dim=-1)

    def merge(self, heads):
        return heads.transpose(1, 2).flatten(2)

    def mix(self, concat):
        return concat @ self.W_O


def variant(**parts):
    """The right layer with some of its parts replaced."""
    return type("Variant", (Parts,), parts)


class _Linears(nn.Module):
    """Four nn.Linear, and torch's own attention with shared heads."""

    def __init__(self, d_model: int, n_head: int, n_kv_head: int | None = None, **more):
        super().__init__()
        if n_kv_head is None:
            n_kv_head = n_head
        if d_model % n_head != 0:
            raise ValueError("n_head does not divide d_model")
        if n_kv_head not in range(1, n_head + 1) or n_head % n_kv_head:
            raise ValueError("n_kv_head does not divide n_head")
        self.sizes = n_head, n_kv_head, d_model // n_head
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, n_kv_head * self.sizes[2], bias=False)
        self.W_V = nn.Linear(d_model, n_kv_head * self.sizes[2], bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, context=None, mask=None):
        n_head, n_kv_head, head_dim = self.sizes
        context = x if context is None else context
        q = self.W_Q(x).view(*x.shape[:2], n_head, head_dim).transpose(1, 2)
        k = self.W_K(context).view(*context.shape[:2], n_kv_head, head_dim).transpose(1, 2)
        v = self.W_V(context).view(*context.shape[:2], n_kv_head, head_dim).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return self.W_O(out.transpose(1, 2).reshape(x.shape))


class _Fused(Parts):
    """One matrix for q, k and v, filled by `load`."""

    def make(self, d_model, kv_width):
        W_QKV = torch.randn(d_model, d_model + 2 * kv_width) / d_model**0.5
        self.W_QKV = nn.Parameter(W_QKV)
        self.out = nn.Linear(d_model, d_model, bias=False)

    def load(self, W_Q, W_K, W_V, W_O):
        with torch.no_grad():
            self.W_QKV.copy_(torch.cat([W_Q, W_K, W_V], dim=1))
            self.out.weight.copy_(W_O.T)

    def project(self, x, context):
        kv = self.n_kv_head * self.head_dim
        widths = [self.n_head * self.head_dim, kv, kv]
        W_Q, W_K, W_V = self.W_QKV.split(widths, dim=1)
        return x @ W_Q, context @ W_K, context @ W_V

    def mix(self, concat):
        return self.out(concat)


class _Grouped(Parts):
    """Query heads as [n_kv_head, group]: shared heads by broadcasting, without a copy."""

    def forward(self, x, context=None, mask=None):
        q, k, v = self.project(x, x if context is None else context)
        q = q.unflatten(-1, (self.n_kv_head, self.group, -1))
        k, v = (t.unflatten(-1, (self.n_kv_head, -1)) for t in (k, v))
        scores = torch.einsum("bikgd,bjkd->bkgij", q * self.head_dim**-0.5, k)
        if mask is not None:
            full = mask.expand(x.shape[0], self.n_head, *mask.shape[-2:])
            scores = torch.where(full.unflatten(1, (self.n_kv_head, -1)), scores, -1e9)
        heads = torch.einsum("bkgij,bjkd->bikgd", scores.softmax(-1), v)
        return self.mix(heads.flatten(2))


class _Loop(Parts):
    """Head after head; what each adds through its rows of W_O is summed."""

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        out = torch.zeros_like(x)
        for h in range(self.n_head):
            q_own, kv_own = (
                slice(i * self.head_dim, (i + 1) * self.head_dim) for i in (h, h // self.group)
            )
            q = x @ self.W_Q[:, q_own]
            k, v = context @ self.W_K[:, kv_own], context @ self.W_V[:, kv_own]
            scores = q @ k.transpose(1, 2) / self.head_dim**0.5
            if mask is not None:
                own = mask.expand(x.shape[0], self.n_head, *scores.shape[1:])[:, h]
                scores = scores.masked_fill_(~own, -1e9)
            out += torch.softmax(scores, dim=2) @ v @ self.W_O[q_own]
        return out


class _TypedTensors(nn.Module):
    """Parameters of float64 whatever comes in, and the input's dtype back."""

    def __init__(self, d_model, n_head, n_kv_head=None):
        super().__init__()
        self.inner = Parts(d_model, n_head, n_kv_head)

    def load(self, W_Q, W_K, W_V, W_O):
        self.inner.double()
        weights = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O}
        self.inner.load_state_dict({name: w.double() for name, w in weights.items()})

    def forward(self, x, context=None, mask=None):
        context = None if context is None else context.double()
        return self.inner(x.double(), context, mask).to(x.dtype)


def _announced(make):
    @functools.wraps(make)
    def wrapper(*sizes):
        print("a layer of", *sizes)
        return make(*sizes)

    return wrapper


RIGHT = (
    Right("parts", Parts),
    Right("linears_and_torchs_attention", _Linears),
    Right("fused_qkv_with_load", _Fused),
    Right("grouped_einsum", _Grouped),
    Right("loop_over_heads", _Loop),
    Right("float64_inside", _TypedTensors),
    Right("decorated", _announced(Parts)),
    Right("a_maker", lambda d_model, n_head, n_kv_head=None: Parts(d_model, n_head, n_kv_head)),
    Right("a_finite_fill", variant(
        hide=lambda self, s, mask: s if mask is None else s.masked_fill(mask.logical_not(), -1e9))),
    Right("scaled_queries", variant(
        project=lambda self, x, c: (
            x @ (self.W_Q / self.head_dim**0.5), c @ self.W_K, c @ self.W_V),
        divisor=lambda self, q: 1.0)),
    Right("heads_by_index", variant(
        share=lambda self, t: t[:, [h // self.group for h in range(self.n_head)]])),
)  # fmt: skip
