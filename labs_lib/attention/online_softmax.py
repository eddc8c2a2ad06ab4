"""Softmax of rows that arrive in pieces: in three passes over the scores, in two, in one.

A state (m, l, o) holds all that is needed of the scores seen so far: their maximum, the sum of
exp(score - m), and the sum of exp(score - m) times value. States merge in any order.
Source: Milakov & Gimelshein 2018, arXiv 1805.02867; Dao et al. 2022, arXiv 2205.14135.

A row without a score above -inf has m = -inf and l = 0; its softmax is zeros, its lse -inf.
"""

import math
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

NARROW = (torch.float16, torch.bfloat16)


class SoftmaxState(NamedTuple):
    """What is kept of the scores seen so far: m [...], l [...] and o [..., d_v]."""

    m: Tensor
    l: Tensor
    o: Tensor


def safe_softmax(scores: Tensor) -> Tensor:
    """Return the softmax over the last axis in three passes: maximum, sum, quotient.

    scores is [..., n]; the result too, in its dtype. Only differences to the row's maximum are
    exponentiated, so nothing overflows; a row of -inf gives zeros.
    """
    wide = widened(scores)
    m = _row_max(wide)
    shifted = exp_below(wide, m[..., None])
    l = shifted.sum(dim=-1, keepdim=True)
    return (shifted / l.masked_fill(l == 0, 1.0)).to(scores.dtype)


def log_sum_exp(scores: Tensor) -> Tensor:
    """Return log(sum(exp(scores))) over the last axis: [..., n] -> [...]; -inf for a row of -inf.

    exp(score - log_sum_exp) is the softmax: one number per row in the place of two, m and l.
    """
    m = _row_max(scores)
    return m + exp_below(scores, m[..., None]).sum(dim=-1).log()


def rescale(m_old: Tensor, m_new: Tensor, l: Tensor, o: Tensor) -> tuple[Tensor, Tensor]:
    """Return l [...] and o [..., d_v], collected under m_old [...], as they are under m_new.

    Both are multiplied by exp(m_old - m_new); what was collected under -inf is nothing.
    """
    factor = exp_below(m_old, m_new)
    return l * factor, o * factor[..., None]


def online_softmax(blocks: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Return each row's maximum m and sum l of exp(score - m) in one pass over its blocks.

    blocks yields scores [..., n_b], each block once, at least one; m and l are [...].
    Raises ValueError when no block comes.
    Source: Milakov & Gimelshein 2018, algorithm 3.
    """
    blocks = iter(blocks)
    first = next(blocks, None)
    if first is None:
        raise ValueError("no block came; give at least one, [..., n_b]")
    m = torch.full_like(first[..., 0], -math.inf)
    l = torch.zeros_like(m)
    for block in chain([first], blocks):
        m_new = torch.maximum(m, block.amax(dim=-1))
        l = l * exp_below(m, m_new) + exp_below(block, m_new[..., None]).sum(dim=-1)
        m = m_new
    return m, l


def two_pass_softmax(scores: Tensor, block: int) -> Tensor:
    """Return the softmax over the last axis in two passes: one for m and l, one for the weights.

    scores is [..., n], n at least 1, taken `block` at a time; the result is [..., n].
    """
    m, l = online_softmax(scores.split(block, dim=-1))
    return exp_below(scores, m[..., None]) / l.masked_fill(l == 0, 1.0)[..., None]


def block_state(scores: Tensor, v: Tensor) -> SoftmaxState:
    """Return the state of one block: scores [..., n_b], its values [..., n_b, d_v]."""
    m = _row_max(scores)
    p = exp_below(scores, m[..., None])
    return SoftmaxState(m, p.sum(dim=-1), (p[..., None, :] @ v)[..., 0, :])


def merge_softmax_states(a: SoftmaxState, b: SoftmaxState) -> SoftmaxState:
    """Return the state of all scores of a and b; associative and commutative over the reals.

    Any three tensors (m [...], l [...], o [..., d_v]) will do for a state.
    """
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)
    l_a, o_a = rescale(m_a, m, l_a, o_a)
    l_b, o_b = rescale(m_b, m, l_b, o_b)
    return SoftmaxState(m, l_a + l_b, o_a + o_b)


def finish(state: SoftmaxState) -> tuple[Tensor, Tensor]:
    """Return what a state stands for: the weighted mean o / l [..., d_v], and lse = m + log l."""
    m, l, o = state
    nothing = l == 0
    out = o / l.masked_fill(nothing, 1.0)[..., None]
    return out, (m + l.masked_fill(nothing, 1.0).log()).masked_fill(nothing, -math.inf)


def attention_one_pass(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, block: int = 64
) -> tuple[Tensor, Tensor]:
    """Return attention's output [..., seq_q, d_v] and lse [..., seq_q], reading the keys once.

    q is [..., seq_q, head_dim], k [..., seq_k, head_dim], v [..., seq_k, d_v]; mask is bool, True =
    may attend, and broadcasts to [..., seq_q, seq_k]. At most seq_q * block scores exist at a time.
    Narrow inputs are computed in float32: out has the dtype of q, lse that of the computation.
    Raises ValueError for a block without a key.
    """
    if block < 1:
        raise ValueError(f"block={block}: a block has at least one key; 64 is a good size")
    empty = q.shape[:-1]
    wide = widened(q)
    state = SoftmaxState(
        wide.new_full(empty, -math.inf), wide.new_zeros(empty), wide.new_zeros(*empty, v.shape[-1])
    )
    states = _states_of_blocks(wide / math.sqrt(q.shape[-1]), k, v, mask, block)
    out, lse = finish(reduce(merge_softmax_states, states, state))
    return out.to(q.dtype), lse


def exp_below(x: Tensor, m: Tensor) -> Tensor:
    """Return exp(x - m) for x <= m, and 0 where m is -inf: there the difference would be NaN.

    x is [..., n] or [...], and m broadcasts to it.
    """
    # A stand-in for m is used in the exponent only. Kept as m, it would drown later scores.
    return (x - m.masked_fill(m == -math.inf, 0.0)).exp()


def widened(x: Tensor) -> Tensor:
    """Return x, of any shape, as float32 where its dtype is too narrow to add up many numbers."""
    return x.float() if x.dtype in NARROW else x


def _row_max(scores: Tensor) -> Tensor:
    if scores.shape[-1] == 0:
        return scores.new_full(scores.shape[:-1], -math.inf)
    return scores.amax(dim=-1)


def _states_of_blocks(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, block: int
) -> Iterator[SoftmaxState]:
    if mask is not None:
        mask = mask.broadcast_to(*q.shape[:-1], k.shape[-2])  # a view: no n x n tensor
    for start in range(0, k.shape[-2], block):
        k_block, v_block = (widened(t[..., start : start + block, :]) for t in (k, v))
        scores = q @ k_block.mT  # [..., seq_q, block]
        if mask is not None:
            scores = scores.masked_fill(~mask[..., start : start + block], -math.inf)
        m = _row_max(scores).detach()  # a shift: what it is changes no result
        p = exp_below(scores, m[..., None])
        yield SoftmaxState(m, p.sum(dim=-1), p @ v_block)
