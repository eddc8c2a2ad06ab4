"""Answers to fused_multi_head: all heads without a loop."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from labs_lib.attention import fused

from ...exercises.lab03 import LOOP_REMAINS
from ..kit import Answer, Right, Wrong


def _split(x, n_head):
    return x.unflatten(-1, (n_head, -1)).transpose(1, 2)  # [batch, n_head, seq, head_dim]


def _merge(heads):
    return heads.transpose(1, 2).flatten(2)  # [batch, seq, n_head * head_dim]


def _scale(x, q, n_head):
    return math.sqrt(q.shape[-1])


def _masked(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def _attend(q, k, v, mask, divisor, *, masked=_masked, dim=-1):
    return masked(q @ k.mT / divisor, mask).softmax(dim=dim) @ v


def _program(split=_split, merge=_merge, scale=_scale, attend=_attend, weights=lambda *W: W):
    """The right program, with one of its parts replaced."""

    def program(x, W_Q, W_K, W_V, n_head, mask=None):
        q, k, v = (split(x @ W, n_head) for W in weights(W_Q, W_K, W_V))
        return merge(attend(q, k, v, mask, scale(x, q, n_head)))

    return program


def _with_mask(masked):
    return _program(attend=lambda *args: _attend(*args, masked=masked))


def _softmax_over(dim):
    return _program(attend=lambda *args: _attend(*args, dim=dim))


def _direct_split(x, n_head):
    batch, seq, width = x.shape
    return x.reshape(batch, n_head, seq, width // n_head)


def _direct_merge(heads):
    batch, n_head, seq, head_dim = heads.shape
    return heads.reshape(batch, seq, n_head * head_dim)


def _interleaved_split(x, n_head):
    return x.unflatten(-1, (-1, n_head)).movedim(-1, 1)


def _zero_after_softmax(q, k, v, mask, divisor):
    weights = (q @ k.mT / divisor).softmax(dim=-1)
    return (weights if mask is None else weights.masked_fill(~mask, 0.0)) @ v


def _always_causal(q, k, v, mask, divisor):
    seq = q.shape[-2]
    return _attend(q, k, v, torch.ones(seq, seq, dtype=torch.bool).tril(), divisor)


def _loop_over_heads(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (_split(x @ W, n_head) for W in (W_Q, W_K, W_V))
    full = torch.ones(1, 1, 1, 1, dtype=torch.bool) if mask is None else mask
    full = full.expand(x.shape[0], n_head, x.shape[1], x.shape[1])
    divisor = math.sqrt(q.shape[-1])
    answers = [_attend(q[:, h], k[:, h], v[:, h], full[:, h], divisor) for h in range(n_head)]
    return torch.cat(answers, dim=-1)


_MIXED_HEADS = (
    "The shape is right, but {} mixes tokens into heads: a reshape keeps the order of the\n"
    "numbers, and in memory the heads of one token stand together. Cut or join the width first\n"
    "and swap the axes in a step of its own."
)

WRONG = (
    Wrong("loop_over_heads", _loop_over_heads, LOOP_REMAINS),
    Wrong(
        "scale_by_d_model",
        _program(scale=lambda x, q, n_head: math.sqrt(x.shape[-1])),
        "The scores are divided by the root of d_in. A head's query and key have only head_dim\n"
        "numbers, and it is their count that makes the scores grow.",
    ),
    Wrong(
        "scale_by_the_whole_width",
        _program(scale=lambda x, q, n_head: math.sqrt(q.shape[-1] * n_head)),
        "The scores are divided by the root of n_head * head_dim, as if one head were that\n"
        "wide. A head's query and key have only head_dim numbers.",
    ),
    Wrong(
        "no_scale",
        _program(scale=lambda x, q, n_head: 1.0),
        "The scores are not divided at all. Look at lab 01: by what do they grow with head_dim?",
    ),
    Wrong(
        "scale_by_head_dim",
        _program(scale=lambda x, q, n_head: q.shape[-1]),
        "The scores are divided by head_dim. Their variance grows with head_dim; what is the\n"
        "standard deviation then?",
    ),
    Wrong(
        "one_wide_head",
        _program(split=lambda x, n_head: x.unsqueeze(1), merge=lambda heads: heads.squeeze(1)),
        "This is one head as wide as all of them together: n_head is never used. Each head\n"
        "needs a softmax of its own.",
    ),
    Wrong(
        "direct_reshape_in_the_split",
        _program(split=_direct_split),
        _MIXED_HEADS.format("reshaping straight to [batch, n_head, seq, head_dim]"),
    ),
    Wrong(
        "direct_reshape_in_the_merge",
        _program(merge=_direct_merge),
        _MIXED_HEADS.format("reshaping [batch, n_head, seq, head_dim] straight back"),
    ),
    Wrong(
        "direct_reshape_both_ways",
        _program(split=_direct_split, merge=_direct_merge),
        _MIXED_HEADS.format("a direct reshape, there and back (also view(batch * n_head, ...)),"),
    ),
    Wrong(
        "interleaved_split",
        _program(split=_interleaved_split),
        "Head h takes every n_head-th column. The columns of one head stand together: head h\n"
        "has the block of head_dim columns that begins at h * head_dim.",
    ),
    Wrong(
        "interleaved_merge",
        _program(merge=lambda heads: heads.permute(0, 2, 3, 1).flatten(2)),
        "The heads are right and interleaved in the result: number 0 of every head, then number\n"
        "1 of every head. Join n_head and head_dim in that order.",
    ),
    Wrong(
        "not_merged",
        _program(merge=lambda heads: heads),
        "The heads are right and still an axis of their own. The result has them side by side\n"
        "in one width.",
    ),
    Wrong(
        "softmax_over_queries",
        _softmax_over(-2),
        "The softmax runs over the queries: each column sums to 1. Each query's row of weights\n"
        "over the keys should.",
    ),
    Wrong(
        "softmax_over_heads",
        _softmax_over(1),
        "The softmax runs over the heads, so that they compete with one another. Each head has\n"
        "a softmax of its own, over the keys.",
    ),
    Wrong(
        "mask_ignored",
        _with_mask(lambda scores, mask: scores),
        "The mask changes nothing: masked keys still get weight. It is the sixth argument.",
    ),
    Wrong(
        "mask_inverted",
        _with_mask(lambda s, mask: s if mask is None else s.masked_fill(mask, -math.inf)),
        "The mask is read the wrong way round. True means: may attend.",
    ),
    Wrong(
        "mask_inverted_with_a_finite_fill",
        _with_mask(lambda s, mask: s if mask is None else s.masked_fill(mask, -1e9)),
        "The mask is read the wrong way round: the keys that may be attended to are the ones\n"
        "filled. True means: may attend.",
    ),
    Wrong(
        "masked_scores_are_zero",
        _with_mask(lambda s, mask: s if mask is None else s * mask),
        "Masked scores are set to 0, and exp(0) = 1: such keys still get weight. What must a\n"
        "score be so that its exponential is 0?",
    ),
    Wrong(
        "mask_added_as_a_number",
        _with_mask(lambda s, mask: s if mask is None else s + mask.to(s.dtype)),
        "The mask is added to the scores as 0 and 1. That favours the allowed keys a little and\n"
        "forbids none.",
    ),
    Wrong(
        "mask_after_softmax",
        _program(attend=_zero_after_softmax),
        "The mask comes after the softmax: the masked weights are gone, and what is left no\n"
        "longer sums to 1. Mask the scores.",
    ),
    Wrong(
        "always_causal",
        _program(attend=_always_causal),
        "A causal mask is applied whatever is given. Without a mask every query may see every\n"
        "key, and a given mask need not be causal.",
    ),
    Wrong(
        "queries_three_times",
        _program(weights=lambda q, k, v: (q, q, q)),
        "q, k and v are equal: all three are made with W_Q. Each letter has its own matrix.",
    ),
    Wrong(
        "keys_as_values",
        _program(weights=lambda q, k, v: (q, k, k)),
        "The values are the keys: W_V is never used. What a head hands on is x @ W_V.",
    ),
    Wrong(
        "keys_and_values_swapped",
        _program(weights=lambda q, k, v: (q, v, k)),
        "W_K and W_V are exchanged: the scores are made with the values, and the keys are\n"
        "handed on.",
    ),
    Wrong(
        "queries_and_keys_swapped",
        _program(weights=lambda q, k, v: (k, q, v)),
        "Queries and keys are exchanged: the table of scores is turned over. A row belongs to a\n"
        "query.",
    ),
)


def _fused_qkv(x, W_Q, W_K, W_V, n_head, mask=None):
    wide = x @ torch.cat([W_Q, W_K, W_V], dim=1)
    q, k, v = wide.unflatten(-1, (3, n_head, -1)).permute(2, 0, 3, 1, 4)
    return _merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


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
    q, k, v = (_split(x @ W, n_head).reshape(batch * n_head, seq, -1) for W in (W_Q, W_K, W_V))
    scores = torch.bmm(q / math.sqrt(q.shape[-1]), k.transpose(1, 2))
    if mask is not None:
        full = mask.expand(batch, n_head, seq, seq).reshape(batch * n_head, seq, seq)
        scores = torch.where(full, scores, torch.finfo(scores.dtype).min)
    heads = torch.bmm(torch.softmax(scores, dim=2), v)
    return heads.view(batch, n_head, seq, -1).permute(0, 2, 1, 3).reshape(batch, seq, -1)


def _softmax_by_hand(q, k, v, mask, divisor):
    scores = _masked((q / divisor) @ k.mT, mask)
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return powers @ v / powers.sum(-1, keepdim=True)


def _chunks(x, W_Q, W_K, W_V, n_head, mask=None, **extra):
    q, k, v = (torch.stack((x @ W).chunk(n_head, dim=-1), dim=1) for W in (W_Q, W_K, W_V))
    heads = _attend(q, k, v, mask, q.shape[-1] ** 0.5)
    return torch.cat(heads.unbind(1), dim=-1)


def _in_double(x, W_Q, W_K, W_V, n_head, mask=None):
    double = (t.double() for t in (x, W_Q, W_K, W_V))
    return fused.fused_multi_head(*double, n_head, mask).to(x.dtype)


def _without_products(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (_split((x[..., None] * W).sum(-2), n_head) for W in (W_Q, W_K, W_V))
    scores = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) / q.shape[-1] ** 0.5
    weights = _masked(scores, mask).softmax(-1)
    return _merge((weights[..., None] * v[..., None, :, :]).sum(-2))


class _Layer:
    def forward(self, x, W_Q, W_K, W_V, n_head, mask=None):
        return fused.fused_multi_head(x, W_Q, W_K, W_V, n_head, mask)


RIGHT = (
    Right("parts", _program()),
    Right("fused_qkv_and_torchs_attention", _fused_qkv),
    Right("einsum_and_a_finite_fill", _einsum),
    Right("heads_in_the_batch", _heads_in_the_batch),
    Right("softmax_by_hand", _program(attend=_softmax_by_hand)),
    Right("chunks", _chunks),
    Right("float64_inside", _in_double),
    Right("without_products", _without_products),
    Right("a_method", _Layer().forward),
    Right(
        "in_place_mask",
        _with_mask(lambda s, mask: s if mask is None else s.masked_fill_(~mask, -1e9)),
    ),
)

FUSED_MULTI_HEAD = Answer(reference=fused.fused_multi_head, wrong=WRONG, right=RIGHT)
