"""Answers to flash_forward: no mask, tiles over queries and keys."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from labs_lib.attention.flash import flash_attention
from labs_lib.attention.online_softmax import attention_one_pass, finish, merge_softmax_states
from labs_lib.exercises.lab11_torch import MAKES_ROWS

from ..kit import Answer, Right, Wrong
from .parts import INF, changed, stand_in, widened
from .parts import finish as divided


def flash_forward(q, k, v, block_q=16, block_k=16):
    """The reference under the exercise's name and signature."""
    return flash_attention(q, k, v, block_q=block_q, block_k=block_k, return_lse=True)


def _one(m, m_new):
    return torch.ones_like(m)


def _scaled(m, m_new):
    return (m - stand_in(m_new)).exp()


def _padded(k, v):
    short = -k.shape[2] % 16
    return F.pad(k, (0, 0, 0, short)), F.pad(v, (0, 0, 0, short))


def _turned(k, v):
    return k, v.mT if v.shape[2] == v.shape[3] else v


def _tile_maximum(m, scores):
    return torch.maximum(m, scores.amax((-2, -1), keepdim=True)[..., 0].expand(m.shape))


def _whole(q, k, v, block_q=16, block_k=16):
    q_, k_, v_ = (widened(t) for t in (q, k, v))
    scores = q_ @ k_.mT / math.sqrt(q.shape[-1])
    return (scores.softmax(-1) @ v_).to(q.dtype), scores.logsumexp(-1)


def _strips(q, k, v, block_q=16, block_k=16):
    parts = [_whole(tile, k, v) for tile in q.split(block_q, 2)]
    return tuple(torch.cat(part, 2) for part in zip(*parts, strict=True))


def _all_queries(q, k, v, block_q=16, block_k=16):
    return attention_one_pass(q, k, v, None, block_k)


def _keys_outside(q, k, v, block_q=16, block_k=16):
    """The loops the other way round, as in the first version: all states wait in memory."""
    wide = widened(q[:0]).dtype
    m = torch.full((*q.shape[:3], 1), -INF, dtype=wide)
    l, o = torch.zeros_like(m), torch.zeros(*q.shape[:3], v.shape[3], dtype=wide)
    for k_tile, v_tile in zip(k.split(block_k, 2), v.split(block_k, 2), strict=True):
        moved = []
        for q_tile, *old in zip(*(t.split(block_q, 2) for t in (q, m, l, o)), strict=True):
            scores = widened(q_tile) @ widened(k_tile).mT * q.shape[3] ** -0.5
            top = old[0]
            if k_tile.shape[2]:
                top = torch.maximum(top, scores.amax(-1, keepdim=True))
            p, factor = (scores - stand_in(top)).exp(), (old[0] - stand_in(top)).exp()
            o_new = old[2] * factor + p @ widened(v_tile)
            moved.append((top, old[1] * factor + p.sum(-1, keepdim=True), o_new))
        m, l, o = (torch.cat(part, 2) for part in zip(*moved, strict=True))
    out = torch.where(l > 0, o / torch.where(l > 0, l, 1.0), 0.0)
    return out.to(q.dtype), (m + l.log())[..., 0]


def _split_keys(q, k, v, block_q=16, block_k=16):
    """Halves of the keys apart, merged by their log-sum-exp."""
    half = k.shape[2] // 2
    states = []
    for own in (slice(0, half), slice(half, None)):
        out, lse = flash_forward(q, k[:, :, own], v[:, :, own], block_q, block_k)
        states.append((lse, (lse > -INF).to(lse.dtype), widened(out)))
    out, lse = finish(merge_softmax_states(*states))
    return out.to(q.dtype), lse


def _head_by_head(q, k, v, block_q=16, block_k=16):
    heads = [
        flash_forward(*(t[:, h : h + 1] for t in (q, k, v)), block_k, block_q)
        for h in range(q.shape[1])
    ]
    return [torch.cat(part, 1) for part in zip(*heads, strict=True)]


def _out_as_wide_as_q(q, k, v, block_q=16, block_k=16):
    out = torch.zeros_like(q)
    for i in range(0, q.shape[2], block_q):
        out[:, :, i : i + block_q] = changed()(q[:, :, i : i + block_q], k, v, 16, block_k)[0]
    return out, flash_forward(q, k, v)[1]


def _o_as_wide_as_q(q, k, v, block_q=16, block_k=16):
    p = changed()(q[:, :, :block_q], k[:, :, :block_k], v[:, :, :block_k])[0]
    return torch.zeros_like(q[:, :, :block_q]) + p, q[..., 0]


def _one_state_for_all(q, k, v, block_q=16, block_k=16):
    """m, l and o begin before the loop over the queries, and go on from tile to tile."""
    out, lse = [], []
    m = l = o = None
    for tile in widened(q).split(block_q, 2):
        if m is None:
            m = torch.full_like(tile[..., 0], -INF)
            l, o = torch.zeros_like(m), tile.new_zeros(*tile.shape[:3], v.shape[3])
        m, l, o = (t[:, :, : tile.shape[2]] for t in (m, l, o))
        scores = tile @ widened(k).mT / math.sqrt(q.shape[3])
        top = torch.maximum(m, scores.amax(-1)) if k.shape[2] else m
        p, factor = (scores - stand_in(top)[..., None]).exp(), _scaled(m, top)
        m, l, o = top, l * factor + p.sum(-1), o * factor[..., None] + p @ widened(v)
        part, sums = divided(m, l, o)
        out.append(part.to(q.dtype))
        lse.append(sums)
    return torch.cat(out, 2), torch.cat(lse, 2)


def _scaled_by_d_v(q, k, v, block_q=16, block_k=16):
    return changed(scale=lambda d: v.shape[3] ** -0.5)(q, k, v, block_q, block_k)


def _all_in_the_dtype_of_q(q, k, v, block_q=16, block_k=16):
    out, lse = changed(wide=lambda t: t)(q, k, v, block_q, block_k)
    return out, lse.to(q.dtype)


def _scaled_first(q, k, v, block_q=16, block_k=16):
    narrow = changed(wide=lambda t: t, scale=lambda d: 1.0)
    return narrow(q / math.sqrt(q.shape[3]), k, v, block_q, block_k)


WIDTH_OF_V = (
    "A tensor for the output is as wide as q. The output is a sum of values, and these may have\n"
    "another width: d_v."
)

WRONG = (
    Wrong(
        "o_not_rescaled",
        changed(factor_o=_one),
        "o is never rescaled, only l is. When a later tile of keys brings a larger maximum, what\n"
        "o has collected weighs too much.",
    ),
    Wrong(
        "l_not_rescaled",
        changed(factor_l=_one, factor_o=_scaled),
        "l is never rescaled, only o is. Both are sums of exp(score - m).",
    ),
    Wrong(
        "nothing_rescaled",
        changed(factor_l=_one),
        "Nothing is rescaled between tiles of keys: the factor is 1, or m was overwritten before\n"
        "the factor was made.",
    ),
    Wrong(
        "factor_upside_down",
        changed(factor_l=lambda m, n: (n - m.masked_fill(m == -INF, INF)).exp()),
        "The factor is exp(m_new - m), larger than 1. It has to be the other way round.",
    ),
    Wrong(
        "one_state_for_all_queries",
        _one_state_for_all,
        "The first tile of queries is right, and the next ones go on from its m, l and o. Each\n"
        "tile of queries begins anew.",
    ),
    Wrong("out_as_wide_as_q", _out_as_wide_as_q, WIDTH_OF_V),
    Wrong("o_as_wide_as_q", _o_as_wide_as_q, WIDTH_OF_V),
    Wrong(
        "lse_in_16_bits",
        lambda q, k, v, block_q=16, block_k=16: (
            flash_forward(q, k, v, block_q, block_k)[0],
            flash_forward(q, k, v, block_q, block_k)[1].to(q.dtype),
        ),
        "lse has the dtype of q. For inputs of 16 bits it stays float32: the gradient makes every\n"
        "weight again from it.",
    ),
    Wrong(
        "divided_in_each_tile",
        changed(after=lambda l, o: (l, o / l[..., None])),
        "o is divided by l after each tile of keys. Divide once, when the tile of queries is done.",
    ),
    Wrong(
        "divided_in_each_tile_only",
        changed(after=lambda l, o: (l, o / l[..., None]), finish=lambda m, l, o: (o, m + l.log())),
        "o is divided by l in each tile of keys, and the next tile adds undivided terms to it.\n"
        "Divide once, when the tile of queries is done.",
    ),
    Wrong(
        "never_divided",
        changed(finish=lambda m, l, o: (o, m + l.log())),
        "o comes out as it was summed. The division by l is missing.",
    ),
    Wrong(
        "maximum_begins_with_zero",
        changed(start=0.0, below=lambda m: m),
        "m begins with 0. Where all scores are around -200, every exp becomes 0.",
    ),
    Wrong(
        "finite_sentinel",
        changed(start=-5e4, below=lambda m: m),
        "m begins with -50000, which is meant as minus infinity. Scores of -60000 lie below it.",
    ),
    Wrong(
        "one_maximum_for_a_tile",
        changed(top=_tile_maximum),
        "All queries of a tile share one maximum. A query whose scores lie 300 below it gets only\n"
        "zeros.",
    ),
    Wrong(
        "no_maximum",
        changed(start=0.0, top=lambda m, s: m),
        "Nothing is subtracted: exp(89) is beyond float32.",
    ),
    Wrong(
        "no_scale",
        changed(scale=lambda d: 1.0),
        "The scores are not divided by the root of head_dim.",
    ),
    Wrong(
        "scale_by_head_dim",
        changed(scale=lambda d: 1 / d),
        "The scores are divided by head_dim, and not by its root.",
    ),
    Wrong(
        "scale_of_a_padded_head",
        changed(scale=lambda d: 1 / math.sqrt(-(-d // 16) * 16)),
        "The scale is that of a head_dim rounded up to a multiple of 16. Zeros may pad a tile,\n"
        "but the scale belongs to the true head_dim.",
    ),
    Wrong(
        "scale_of_a_value",
        _scaled_by_d_v,
        "The scores are divided by the root of d_v, the width of v. It is the width of q and k\n"
        "that counts.",
    ),
    Wrong(
        "half_of_each_tile",
        changed(total=lambda p: p[..., : (p.shape[-1] + 1) // 2].sum(-1)),
        "l sums only the first half of each tile.",
    ),
    Wrong(
        "padded_keys_count",
        changed(block=_padded),
        "A short last tile was filled up with keys of zeros, and they count: their score is 0.",
    ),
    Wrong(
        "short_tile_of_keys_dropped",
        changed(columns=lambda n, block: range(0, n // block * block, block)),
        "Keys behind the last full tile are never read. The last tile may be short.",
    ),
    Wrong(
        "short_tile_of_queries_dropped",
        changed(rows=lambda n, block: range(0, n // block * block, block)),
        "Queries behind the last full tile got nothing. The last tile may be short.",
    ),
    Wrong(
        "first_tile_of_keys_only",
        changed(columns=lambda n, block: range(0, min(n, block), block)),
        "Only the first tile of keys is read.",
    ),
    Wrong(
        "values_turned",
        changed(block=_turned),
        "Where a tile has as many keys as a value has numbers, the tile of v is read the wrong\n"
        "way round. Its rows are keys.",
    ),
    Wrong(
        "sixteen_bits_throughout",
        changed(wide=lambda t: t),
        "Everything is computed in the dtype of the inputs. In float16 a product of 115,200 is\n"
        "inf, and inf - inf is NaN; in bfloat16 sums lose their digits. Take float32 inside.",
    ),
    Wrong(
        "sixteen_bits_throughout_and_in_lse",
        _all_in_the_dtype_of_q,
        "Everything is computed in the dtype of the inputs, lse too. In float16 a product of\n"
        "115,200 is inf, and inf - inf is NaN; in bfloat16 sums lose their digits. Take float32\n"
        "inside; lse stays float32.",
    ),
    Wrong(
        "scaled_first_in_16_bits",
        _scaled_first,
        "Everything is computed in the dtype of the inputs, and 16 bits are too coarse for sums.\n"
        "Take float32 inside.",
    ),
    Wrong(
        "float32_throughout",
        changed(wide=lambda t: t.float()),
        "What comes in float64 is narrowed to float32 on the way and loses half of its digits.\n"
        "Only 16 bits have to be widened.",
    ),
    Wrong(
        "nan_without_keys",
        changed(finish=lambda m, l, o: (o / l[..., None], m + l.log())),
        "Without any key this is 0/0. Take care of l = 0 before the division.",
    ),
    Wrong(
        "lse_without_logarithm",
        changed(finish=lambda m, l, o: (divided(m, l, o)[0], m + l)),
        "The second result is m + l. The logarithm of l belongs to m.",
    ),
    Wrong(
        "lse_without_the_maximum",
        changed(finish=lambda m, l, o: (divided(m, l, o)[0], l.log())),
        "The second result is log(l). The m that was subtracted has to come back.",
    ),
    Wrong("whole_matrix", _whole, MAKES_ROWS),
    Wrong("whole_rows_of_a_tile", _strips, MAKES_ROWS),
    Wrong("all_queries_at_once", _all_queries, MAKES_ROWS),
)  # fmt: skip

FLASH_FORWARD = Answer(
    reference=flash_forward,
    wrong=WRONG,
    right=(
        Right("plain_loops", changed()),
        Right("keys_outside", _keys_outside),
        Right("keys_split_and_merged", _split_keys),
        Right("head_by_head_other_tiles", _head_by_head),
        Right("smaller_tiles", lambda q, k, v, block_q=16, block_k=16: changed()(q, k, v, 8, 3)),
        Right("float64_inside", changed(wide=lambda t: t.double())),
    ),
)
