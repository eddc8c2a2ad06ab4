"""Answers to flash_backward: gradients from recomputed weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from labs_lib.attention.flash import flash_backward
from labs_lib.exercises.lab11_torch import MAKES_ROWS

from ..kit import Answer, Right, Wrong


@dataclass(frozen=True)
class Backward:
    """The right program. A changed part takes the place of one line of it."""

    weights: Callable[..., Any] = lambda s, lse: (s - lse[..., None]).exp()
    scale_s: Callable[..., Any] = lambda root: 1 / root
    scale_q: Callable[..., Any] = lambda root: 1 / root
    scale_k: Callable[..., Any] = lambda root: 1 / root
    d: Callable[..., Any] = lambda out, d_out, lse: (out * d_out).sum(-1, keepdim=True)
    d_scores: Callable[..., Any] = lambda p, dp, d: p * (dp - d)
    d_values: Callable[..., Any] = lambda p, d_out, ds, dp: p.mT @ d_out
    add: Callable[..., Any] = lambda old, new: old + new
    add_q: Callable[..., Any] | None = None
    give: Callable[..., Any] = lambda dq, dk, dv: (dq, dk, dv)
    end: Callable[..., Any] = lambda seq, block: seq  # of the loop over keys

    def __call__(self, q, k, v, out, lse, d_out, block_q=16, block_k=16):
        """Run it."""
        root = math.sqrt(q.shape[-1])
        dq, dk, dv = (torch.zeros_like(t) for t in (q, k, v))
        add_q = self.add_q or self.add
        for i in range(0, q.shape[2], block_q):
            a = slice(i, i + block_q)
            d = self.d(out[:, :, a], d_out[:, :, a], lse[:, :, a])
            for j in range(0, self.end(k.shape[2], block_k), block_k):
                b = slice(j, j + block_k)
                s = q[:, :, a] @ k[:, :, b].mT * self.scale_s(root)
                p = self.weights(s, lse[:, :, a])
                dp = d_out[:, :, a] @ v[:, :, b].mT
                ds = self.d_scores(p, dp, d)
                dv[:, :, b] = self.add(dv[:, :, b], self.d_values(p, d_out[:, :, a], ds, dp))
                dk[:, :, b] = self.add(dk[:, :, b], ds.mT @ q[:, :, a] * self.scale_k(root))
                dq[:, :, a] = add_q(dq[:, :, a], ds @ k[:, :, b] * self.scale_q(root))
        return self.give(dq, dk, dv)


def _changed(**parts: Any) -> Backward:
    return replace(Backward(), **parts)


def _whole(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    return _changed()(q, k, v, out, lse, d_out, q.shape[2], k.shape[2])


def _strips(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    return _changed()(q, k, v, out, lse, d_out, block_q, k.shape[2])


def _row_sum_of_the_tile(p, dp, d):
    return p * (dp - (p * dp).sum(-1, keepdim=True))


def _softmax_of_the_tile(s, lse):
    return s.softmax(-1)


def _keys_outside(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    """The loops the other way round, with einsum and float64."""
    q, k, v, out, d_out = (t.double() for t in (q, k, v, out, d_out))
    scale = q.shape[-1] ** -0.5
    d = torch.einsum("bhid,bhid->bhi", out, d_out)
    dq, keys, values = torch.zeros_like(q), [], []
    for k_tile, v_tile in zip(k.split(block_k, 2), v.split(block_k, 2), strict=True):
        dk, dv = torch.zeros_like(k_tile), torch.zeros_like(v_tile)
        for i in range(0, q.shape[2], block_q):
            a = slice(i, i + block_q)
            s = torch.einsum("bhid,bhjd->bhij", q[:, :, a], k_tile) * scale
            p = (s - lse[:, :, a, None]).exp()
            ds = p * (torch.einsum("bhid,bhjd->bhij", d_out[:, :, a], v_tile) - d[:, :, a, None])
            dv += p.mT @ d_out[:, :, a]
            dk += torch.einsum("bhij,bhid->bhjd", ds, q[:, :, a]) * scale
            dq[:, :, a] += torch.einsum("bhij,bhjd->bhid", ds, k_tile) * scale
        keys.append(dk)
        values.append(dv)
    return [t.to(lse.dtype) for t in (dq, torch.cat(keys, 2), torch.cat(values, 2))]


def _two_passes_over_the_keys(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    """D from P * dP, in a pass of its own over the keys."""
    sums = []
    for i in range(0, q.shape[2], block_q):
        a, total = slice(i, i + block_q), 0.0
        for j in range(0, k.shape[2], block_k):
            b = slice(j, j + block_k)
            s = q[:, :, a] @ k[:, :, b].mT / math.sqrt(q.shape[-1])
            p = (s - lse[:, :, a, None]).exp()
            total = total + (p * (d_out[:, :, a] @ v[:, :, b].mT)).sum(-1, keepdim=True)
        sums.append(total)
    waiting = iter(sums)
    return _changed(d=lambda out, d_out, lse: next(waiting))(
        q, k, v, out, lse, d_out, block_q, block_k
    )


def _d_without_axis(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    d = (d_out[:, :, :block_q] * out[:, :, :block_q]).sum(-1)
    return d_out[:, :, :block_q] @ v[:, :, :block_k].mT - d


def _not_turned(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    scores = q[:, :, :block_q] @ k[:, :, :block_k].mT
    return scores @ d_out[:, :, :block_q]


def _product_with_all_queries(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    weights = q[:, :, :block_q] @ k[:, :, :block_k].mT
    return weights.mT @ d_out


def _product_of_all_queries(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    weights = q @ k[:, :, :block_k].mT
    return weights.mT @ d_out[:, :, :block_q]


def _tile_beside_all_queries(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    return q[:, :, :block_q] @ k[:, :, :block_k].mT - lse[..., None]


def _all_queries_beside_a_tile(q, k, v, out, lse, d_out, block_q=16, block_k=16):
    return q @ k[:, :, :block_k].mT - lse[:, :, :block_q, None]


ALL_QUERIES = (
    "A tile of queries meets all queries. q, out, lse, D and d_out have a row or a number for\n"
    "every query, and d_q a row: inside the loop take those of the tile."
)

FLASH_BACKWARD = Answer(
    reference=flash_backward,
    wrong=(
        Wrong(
            "softmax_taken_for_independent",
            _changed(d_scores=lambda p, dp, d: p * dp),
            "dS is P * dP: as if each weight depended on its own score alone. A larger score\n"
            "takes weight from all others of its row; that is what D is for. d_v is right.",
        ),
        Wrong(
            "d_of_the_tile",
            _changed(d_scores=_row_sum_of_the_tile),
            "D sums P * dP over the keys of one tile. It belongs to the whole row; out * d_out,\n"
            "summed over d_v, has it without looking at other tiles.",
        ),
        Wrong(
            "number_of_a_query_without_axis",
            _d_without_axis,
            "D and lse have one number for each query, [..., seq_q], and a tile is [..., seq_q,\n"
            "seq_k]. torch lines shapes up from the right: the one that meets a tile needs an\n"
            "axis of length 1 at the end.",
        ),
        Wrong(
            "not_turned",
            _not_turned,
            "A tile [queries, keys] meets [queries, d]. d_k and d_v have a row for each key and\n"
            "are sums over queries, so the tile has to be turned first.",
        ),
        Wrong(
            "d_from_undivided_output",
            _changed(d=lambda out, d_out, lse: (
                out * lse.exp()[..., None] * d_out).sum(-1, keepdim=True)),
            "D is made with the output before the division by l. It is the finished output that\n"
            "meets d_out.",
        ),
        Wrong(
            "d_from_the_output_alone",
            _changed(d=lambda out, d_out, lse: out.sum(-1, keepdim=True)),
            "D is a sum of the output alone; d_out has to be in it.",
        ),
        Wrong(
            "d_from_the_gradient_alone",
            _changed(d=lambda out, d_out, lse: d_out.sum(-1, keepdim=True)),
            "D is a sum of d_out alone; the output has to be in it.",
        ),
        Wrong(
            "d_added",
            _changed(d_scores=lambda p, dp, d: p * (dp + d)),
            "D is added where it has to be subtracted.",
        ),
        Wrong(
            "d_outside_the_weights",
            _changed(d_scores=lambda p, dp, d: p * dp - d),
            "D is subtracted after the multiplication by P. The weight multiplies both: P * (dP -\n"
            "D).",
        ),
        Wrong(
            "as_for_a_single_sigmoid",
            _changed(d_scores=lambda p, dp, d: p * (1 - p) * dp),
            "dS has p * (1 - p), as for a single sigmoid. The other weights of the row fall, too.",
        ),
        Wrong(
            "scale_missing_in_d_q",
            _changed(scale_q=lambda root: 1.0),
            "d_q lacks the scale: it is too large by the root of head_dim.",
        ),
        Wrong(
            "scale_missing_in_d_k",
            _changed(scale_k=lambda root: 1.0),
            "d_k lacks the scale: it is too large by the root of head_dim.",
        ),
        Wrong(
            "scale_missing_in_both",
            _changed(scale_q=lambda root: 1.0, scale_k=lambda root: 1.0),
            "d_q and d_k lack the scale: both are too large by the root of head_dim.",
        ),
        Wrong(
            "scale_twice",
            _changed(scale_q=lambda root: 1 / root**2, scale_k=lambda root: 1 / root**2),
            "d_q and d_k are scaled twice. If q was scaled before the product, the scale is in it\n"
            "already.",
        ),
        Wrong(
            "scores_not_scaled",
            _changed(scale_s=lambda root: 1.0),
            "The weights are made from scores without the scale, so they aren't those of the\n"
            "forward pass.",
        ),
        Wrong(
            "softmax_of_the_tile",
            _changed(weights=_softmax_of_the_tile),
            "Each tile got a softmax of its own. The weights of the whole row are exp(S - lse).",
        ),
        Wrong(
            "weights_not_divided",
            _changed(weights=lambda s, lse: (s - s.amax(-1, keepdim=True)).exp()),
            "The weights are exp(S - maximum of the tile), not divided by any sum. exp(S - lse)\n"
            "has both in it.",
        ),
        Wrong(
            "lse_forgotten",
            _changed(weights=lambda s, lse: s.exp()),
            "The weights are exp(S): lse was not subtracted.",
        ),
        Wrong(
            "lse_as_a_sum",
            _changed(weights=lambda s, lse: s.exp() / lse[..., None]),
            "lse was taken for the sum, and not for its logarithm: the weights are exp(S - lse).",
        ),
        Wrong(
            "d_v_from_d_scores",
            _changed(d_values=lambda p, d_out, ds, dp: ds.mT @ d_out),
            "d_v is made with dS. The values were averaged with the weights P, so the gradient\n"
            "comes back through P.",
        ),
        Wrong(
            "d_v_from_d_weights",
            _changed(d_values=lambda p, d_out, ds, dp: dp.mT @ d_out),
            "d_v is made with dP. The values were averaged with the weights P.",
        ),
        Wrong(
            "overwritten",
            _changed(add=lambda old, new: new),
            "Each tile overwrites what the tiles before it gave. All three gradients are sums\n"
            "over tiles.",
        ),
        Wrong(
            "d_q_overwritten",
            _changed(add_q=lambda old, new: new),
            "d_q holds what the last tile of keys gave. It is a sum over all of them.",
        ),
        Wrong(
            "d_k_and_d_v_overwritten",
            _changed(add=lambda old, new: new, add_q=lambda old, new: old + new),
            "d_k and d_v hold what the last tile of queries gave. They are sums over all of them.",
        ),
        Wrong(
            "sign",
            _changed(d_scores=lambda p, dp, d: p * (d - dp)),
            "d_q and d_k have the wrong sign: D is subtracted from dP, not dP from D.",
        ),
        Wrong(
            "order_of_the_results",
            _changed(give=lambda dq, dk, dv: (dq, dv, dk)),
            "d_v stands before d_k. Wanted is the order of the inputs: q, k, v.",
        ),
        Wrong(
            "d_k_before_d_q",
            _changed(give=lambda dq, dk, dv: (dk, dq, dv)),
            "d_k stands before d_q. Wanted is the order of the inputs: q, k, v.",
        ),
        Wrong(
            "results_from_the_last_on",
            _changed(give=lambda dq, dk, dv: (dv, dk, dq)),
            "The gradients stand the wrong way round: d_v first. Wanted is the order of the\n"
            "inputs: q, k, v.",
        ),
        Wrong(
            "short_tile_of_keys_dropped",
            _changed(end=lambda seq, block: seq // block * block),
            "Keys behind the last full tile are never read. The last tile may be short.",
        ),
        Wrong("tile_beside_all_queries", _tile_beside_all_queries, ALL_QUERIES),
        Wrong("all_queries_beside_a_tile", _all_queries_beside_a_tile, ALL_QUERIES),
        Wrong("product_with_all_queries", _product_with_all_queries, ALL_QUERIES),
        Wrong("product_of_all_queries", _product_of_all_queries, ALL_QUERIES),
        Wrong("whole_matrix", _whole, MAKES_ROWS),
        Wrong("whole_rows_of_a_tile", _strips, MAKES_ROWS),
    ),
    right=(
        Right("plain_loops", _changed()),
        Right("keys_outside_in_float64", _keys_outside),
        Right("d_from_a_pass_of_its_own", _two_passes_over_the_keys),
        Right("low_tiles", lambda q, k, v, out, lse, d_out, block_q=16, block_k=16: _changed()(
            q, k, v, out, lse, d_out, 2, 16)),
    ),
)  # fmt: skip
