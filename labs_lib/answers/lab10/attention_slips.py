"""attention_one_pass: slips that stop a program or that go with a first try."""

from __future__ import annotations

import math
from functools import reduce

import torch

from labs_lib.attention.online_softmax import merge_softmax_states

from ..kit import Wrong
from .attention_parts import changed, hide
from .parts import INF, finish, stand_in
from .slips import NO_TENSOR, ONE_TRUTH
from .state_slips import NEVER_MOVED

MASK_AXIS = (
    "The part of the mask doesn't fit the scores of a block. A mask has a column for each key,\n"
    "along its last axis, and whatever stands in front. Cut out the columns of the block."
)
QUERY_AXIS = (
    "There is one number for each query [..., seq_q], and it meets a tensor with one axis more.\n"
    "torch lines shapes up from the right; give it an axis of length 1 at the end."
)

TOP_WITH_AXIS = (
    "amax with keepdim=True gives [..., seq_q, 1], and m is [..., seq_q]. torch lines shapes up\n"
    "from the right: both have this axis of length 1, or neither has."
)
LAST_TWO_AXES = (
    "k has axes in front of the keys: .T turns all of them round, and .t() takes only a matrix.\n"
    "It is the last two axes that change places: .mT"
)


def _terms_of_a_block(p_of):
    """attention_one_pass whose exponentials are `p_of(scores, m_new)`."""

    def program(q, k, v, mask=None, block=16):
        m = q.new_full(q.shape[:-1], -INF)
        l, o = q.new_zeros(q.shape[:-1]), q.new_zeros(*q.shape[:-1], v.shape[-1])
        for start in range(0, k.shape[-2], block):
            scores = q @ k[..., start : start + block, :].mT / math.sqrt(q.shape[-1])
            if mask is not None:
                scores = hide(scores, mask[..., start : start + block])
            m_new = torch.maximum(m, scores.amax(-1))
            p, f = p_of(scores, m_new), (m - stand_in(m_new)).exp()
            l, o = l * f + p.sum(-1), o * f[..., None] + p @ v[..., start : start + block, :]
            m = m_new
        return finish(m, l, o)

    return program


def _merged_states(q, k, v, mask=None, block=16):
    """A state of each block, made without care for -inf, and the blocks' states merged."""
    states = []
    for start in range(0, k.shape[-2], block):
        scores = q @ k[..., start : start + block, :].mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = hide(scores, mask[..., start : start + block])
        m = scores.amax(-1)
        p = (scores - m[..., None]).exp()
        states.append((m, p.sum(-1), p @ v[..., start : start + block, :]))
    return finish(*reduce(merge_softmax_states, states))


def _top_with_axis(q, k, v, mask=None, block=16):
    return torch.maximum(q[..., 0], _first_block(q, k, block).amax(-1, keepdim=True))


def _top_with_axis_in_front(q, k, v, mask=None, block=16):
    return torch.maximum(_first_block(q, k, block).amax(-1, keepdim=True), q[..., 0])


def _loop_over_the_queries(q, k, v, mask=None, block=16):
    starts = range(0, min(q.shape[-2], k.shape[-2]), block)
    return changed(starts=lambda n_key, block: starts)(q, k, v, mask, block)


def _m_never_moved(q, k, v, mask=None, block=16):
    """Each block begins with m = -inf, so it drops what came before."""
    m = q.new_full(q.shape[:-1], -INF)
    out = changed(starts=lambda n, size: [(n - 1) // size * size])(q, k, v, mask, block)[0]
    return out, m


def _first_block(q, k, block):
    return q @ k[..., :block, :].mT / math.sqrt(q.shape[-1])


def _o_without_axis(q, k, v, mask=None, block=16):
    return q.new_zeros(*q.shape[:-1], v.shape[-1]) * q[..., 0]


def _o_as_wide_as_q(q, k, v, mask=None, block=16):
    """The first step of a pass whose o began as torch.zeros_like(q)."""
    p = (_first_block(q, k, block) - _first_block(q, k, block).amax(-1, keepdim=True)).exp()
    return q.new_zeros(q.shape) + p @ v[..., :block, :], q[..., 0]


def _cut_along_the_batch(q, k, v, mask=None, block=16):
    return q @ k[block : 2 * block].mT


def _whole_mask(cut):
    return changed(part=lambda mask, start, block: cut(mask, start, start + block), fits=False)


SLIPS = (
    Wrong("truth_of_a_tensor", lambda q, k, v, mask=None, block=16: max(
        -INF, _first_block(q, k, block).amax(-1)), ONE_TRUTH),
    Wrong("number_for_m", lambda q, k, v, mask=None, block=16: torch.maximum(
        -INF, _first_block(q, k, block).amax(-1)), NO_TENSOR),
    Wrong("number_for_m_on_the_right", lambda q, k, v, mask=None, block=16: torch.maximum(
        _first_block(q, k, block).amax(-1), -INF), NO_TENSOR),
    Wrong("top_without_axis", lambda q, k, v, mask=None, block=16: (
        _first_block(q, k, block) - q[..., 0]), QUERY_AXIS),
    Wrong("top_with_axis", _top_with_axis, TOP_WITH_AXIS),
    Wrong("top_with_axis_in_front", _top_with_axis_in_front, TOP_WITH_AXIS),
    Wrong("factor_without_axis", _o_without_axis, QUERY_AXIS),
    Wrong("factor_without_axis_from_0", lambda q, k, v, mask=None, block=16: (
        q[..., 0] + _first_block(q, k, block) @ v[..., :block, :]), QUERY_AXIS),
    Wrong("o_as_wide_as_q", _o_as_wide_as_q,
        "o is as wide as q here. It is a sum of values, and these may have another width: v's."),
    Wrong("no_keys_in_a_block", lambda q, k, v, mask=None, block=16: (
        q @ k[..., :0, :].mT).amax(-1),
        "A block has no keys at all. From where to where does the slice of the second block go?"),
    Wrong("keys_not_turned", lambda q, k, v, mask=None, block=16: q @ k[..., :block, :],
        "The block of keys isn't turned: q [..., seq_q, head_dim] times k [..., block, head_dim].\n"
        "A score is a query's product with a key, so k's last two axes change places."),
    Wrong("all_axes_turned", lambda q, k, v, mask=None, block=16: q @ k[..., :block, :].T,
        LAST_TWO_AXES),
    Wrong("turned_by_t", lambda q, k, v, mask=None, block=16: q @ k[..., :block, :].t(),
        LAST_TWO_AXES),
    Wrong("loop_over_the_queries", _loop_over_the_queries,
        "The loop over blocks ends at the number of queries. It is the keys that come in blocks,\n"
        "and there may be more of them, or fewer."),
    Wrong("nan_for_a_hidden_block_s_state", _merged_states,
        "A block in which a query sees no key gives (-inf) - (-inf), which is NaN, although other\n"
        "blocks have keys for it. Use a stand-in for m in the exponent."),
    Wrong("batch_cut_in_place_of_keys", _cut_along_the_batch,
        "The block was cut out of the first axis of k, which is the batch. The keys are the last\n"
        "axis but one, whatever stands in front."),
    Wrong("factor_upside_down_and_nan", changed(factor_l=lambda m, m_new, power: power(m_new - m)),
        "The factor is exp(m_new - m). It is larger than 1, where it has to make old terms\n"
        "smaller; and from m = -inf it is inf, and inf times 0 is NaN."),
    Wrong("whole_mask", _whole_mask(lambda mask, start, end: mask), MASK_AXIS),
    Wrong("rows_of_the_mask", _whole_mask(lambda mask, start, end: mask[start:end]), MASK_AXIS),
    Wrong("second_axis_of_the_mask", _whole_mask(lambda mask, start, end: mask[:, start:end]),
        MASK_AXIS),
    Wrong("mask_of_four_axes", _whole_mask(lambda mask, start, end: mask[:, :, :, start:end]),
        MASK_AXIS),
    Wrong("scale_by_the_number_of_keys", lambda q, k, v, mask=None, block=16: changed(
        scale=lambda head_dim: 1 / math.sqrt(k.shape[-2]))(q, k, v, mask, block),
        "The scores are divided by the root of the number of keys. It is the length of a key that\n"
        "counts: head_dim."),
    Wrong("divided_only_in_each_block", changed(
        after=lambda l, o: (l, o / l[..., None]), finish=lambda m, l, o: (o, m + l.log())),
        "o is divided by l after each block, and the next block adds to a mean as if it were a\n"
        "sum. Divide once, at the end."),
    Wrong("m_never_moved", _m_never_moved, NEVER_MOVED),
    Wrong("terms_under_the_block_s_maximum", _terms_of_a_block(
        lambda s, m: (s - stand_in(s.amax(-1))[..., None]).exp()),
        "The new terms are taken under the maximum of their own block. All terms of l and o must\n"
        "stand under the same one, the largest so far."),
    Wrong("l_in_place_of_lse", changed(finish=lambda m, l, o: (finish(m, l, o)[0], l)),
        "The second result is l. The log-sum-exp is m + log(l)."),
    Wrong("added_a_little", changed(finish=lambda m, l, o: (
        o / (l + 1e-6)[..., None], m + l.log())),
        "A small number is added to l, and the output is off by up to a millionth: it shows in\n"
        "float64. l is at least 1, except where there is nothing to divide."),
    Wrong("other_way_round", changed(finish=lambda m, l, o: finish(m, l, o)[::-1]),
        "The two results come in the wrong order: first the output, then the log-sum-exp."),
)  # fmt: skip
