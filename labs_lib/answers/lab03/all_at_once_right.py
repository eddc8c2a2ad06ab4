"""Odd but right programs for fused_multi_head."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from labs_lib.attention import fused

from ..kit import Right
from .all_at_once_parts import attend, masked, merge, program, split, with_mask


def _fused_qkv(x, W_Q, W_K, W_V, n_head, mask=None):
    wide = x @ torch.cat([W_Q, W_K, W_V], dim=1)
    q, k, v = wide.unflatten(-1, (3, n_head, -1)).permute(2, 0, 3, 1, 4)
    return merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


def _einsum(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (
        torch.einsum("bid,dhc->bihc", x, W.unflatten(1, (n_head, -1))) for W in (W_Q, W_K, W_V)
    )
    scores = torch.einsum("bihc,bjhc->bhij", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -1e9)
    return torch.einsum("bhij,bjhc->bihc", scores.softmax(-1), v).reshape(*x.shape[:2], -1)


def _heads_in_the_batch(x, W_Q, W_K, W_V, n_head, mask=None, eps=0.0):
    batch, seq, _ = x.shape
    q, k, v = (split(x @ W, n_head).reshape(batch * n_head, seq, -1) for W in (W_Q, W_K, W_V))
    scores = torch.bmm(q / math.sqrt(q.shape[-1]), k.transpose(1, 2))
    if mask is not None:
        full = mask.expand(batch, n_head, seq, seq).reshape(batch * n_head, seq, seq)
        scores = torch.where(full, scores, torch.finfo(scores.dtype).min)
    heads = torch.bmm(torch.softmax(scores, dim=2), v)
    return heads.view(batch, n_head, seq, -1).permute(0, 2, 1, 3).reshape(batch, seq, -1)


def _softmax_by_hand(q, k, v, mask, divisor):
    scores = masked((q / divisor) @ k.mT, mask)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return powers @ v / powers.sum(-1, keepdim=True)


def _chunks(x, W_Q, W_K, W_V, n_head, mask=None, **extra):
    q, k, v = (torch.stack((x @ W).chunk(n_head, dim=-1), dim=1) for W in (W_Q, W_K, W_V))
    heads = attend(q, k, v, mask, q.shape[-1] ** 0.5)
    return torch.cat(heads.unbind(1), dim=-1)


def _in_double(x, W_Q, W_K, W_V, n_head, mask=None):
    double = (t.double() for t in (x, W_Q, W_K, W_V))
    return fused.fused_multi_head(*double, n_head, mask).to(x.dtype)


def _without_products(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (split((x[..., None] * W).sum(-2), n_head) for W in (W_Q, W_K, W_V))
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) / q.shape[-1] ** 0.5
    weights = masked(scores, mask).softmax(-1)
    return merge((weights[..., None] * v[..., None, :, :]).sum(-2))


class _Layer:
    def forward(self, x, W_Q, W_K, W_V, n_head, mask=None):
        return fused.fused_multi_head(x, W_Q, W_K, W_V, n_head, mask)


RIGHT = (
    Right("parts", program()),
    Right("fused_qkv_and_torchs_attention", _fused_qkv),
    Right("einsum_and_a_finite_fill", _einsum),
    Right("heads_in_the_batch", _heads_in_the_batch),
    Right("softmax_by_hand", program(attend=_softmax_by_hand)),
    Right("chunks", _chunks),
    Right("float64_inside", _in_double),
    Right("without_products", _without_products),
    Right("a_method", _Layer().forward),
    Right(
        "in_place_mask",
        with_mask(lambda s, mask: s if mask is None else s.masked_fill_(~mask, -1e9)),
    ),
)
