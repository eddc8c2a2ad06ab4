"""Slips that stop a program or that go with a first try; attention_slips.py has those of attention.

A slip of shape or of Python is recognised by the error that it raises, so each stands here as it
is mostly written, without care for rows of -inf.
"""

from __future__ import annotations

import torch

from ..kit import Wrong
from .attention_parts import INF, stand_in

ONE_TRUTH = (
    "A tensor of several numbers stands where Python wants one True or False: in max(a, b), in an\n"
    "`if`, in `and`. Each row decides for itself: see torch.maximum and torch.where."
)
NO_TENSOR = (
    "torch wants a tensor here, and got a number of Python. Begin with a tensor: in torch.full,\n"
    "torch.full_like or torch.tensor."
)
TWO_RESULTS = (
    "max(dim=...) gives two results, the values and where they stand. amax gives the values alone."
)
ROW_AXIS = (
    "There is one number for each row [...], and it meets all scores [..., n]. torch lines shapes\n"
    "up from the right, so the number needs an axis of length 1 at the end."
)
O_AXIS = (
    "o is [..., d] and the factor [...]. torch lines shapes up from the right, so the factor\n"
    "needs an axis of length 1 at the end."
)
OTHER_WAY_ROUND = "The two results come in the wrong order: first l, then o."


def _top_without_axis(scores):
    return (scores - scores.amax(-1)).exp()


def _sum_without_axis(scores):
    p = (scores - scores.amax(-1, keepdim=True)).exp()
    return p / p.sum(-1)


def _unguarded(top, total=lambda p: p.sum(-1, keepdim=True)):
    def program(scores):
        p = (scores - top(scores)).exp()
        return p / total(p)

    return program


SAFE_SOFTMAX = (
    Wrong("max_with_positions", lambda s: s - s.max(-1), TWO_RESULTS),
    Wrong("top_without_axis", _top_without_axis, ROW_AXIS),
    Wrong("sum_without_axis", _sum_without_axis, ROW_AXIS),
    Wrong(
        "one_sum_for_all_rows",
        _unguarded(lambda s: s.max(), total=lambda p: p.sum()),
        "All weights together add up to 1. Each row has a sum of its own, and a maximum, too.",
    ),
    Wrong(
        "one_sum_for_all_rows_below_their_maxima",
        _unguarded(lambda s: s.amax(-1, keepdim=True), total=lambda p: p.sum()),
        "All weights together add up to 1. Each row has a sum of its own.",
    ),
    Wrong(
        "one_maximum_and_nan",
        _unguarded(lambda s: s.max()),
        "One maximum serves all rows. In a row that lies 300 below it each exp is 0, and 0/0 is\n"
        "NaN. Each row needs a maximum of its own.",
    ),
    Wrong(
        "maximum_at_least_zero_and_nan",
        _unguarded(lambda s: s.amax(-1, keepdim=True).clamp(min=0.0)),
        "The maximum can't fall below 0 here, as when it begins with 0. Scores around -200 then\n"
        "all become 0, and 0/0 is NaN. A maximum over nothing is -inf.",
    ),
)

LOG_SUM_EXP = (
    Wrong("max_with_positions", lambda s: s - s.max(-1), TWO_RESULTS),
    Wrong("top_without_axis", _top_without_axis, ROW_AXIS),
    Wrong(
        "axes_that_differ",
        lambda s: s.amax(-1, keepdim=True) + (s - s.amax(-1, keepdim=True)).exp().sum(-1).log(),
        "m has kept the axis of the row, and the sum hasn't. Both are one number a row: [...].",
    ),
    Wrong(
        "logarithm_subtracted",
        lambda s: stand_in(s.amax(-1)) - (s - stand_in(s.amax(-1))[..., None]).exp().sum(-1).log(),
        "log(l) is subtracted from m. The logarithm of a product is a sum.",
    ),
)


def _factor(m_old, m_new):
    return (m_old - stand_in(m_new)).exp()


def _by_if(m_old, m_new, l, o):
    return (l, o) if m_old == -INF else (l * _factor(m_old, m_new), o)


def _quotient_of_powers(m_old, m_new, l, o):
    factor = torch.where(m_old == -INF, 0.0, m_old.exp() / m_new.exp())
    return l * factor, o * factor[..., None]


def _difference_as_factor(m_old, m_new, l, o):
    factor = torch.where(m_old == -INF, 0.0, m_old - m_new)
    return l * factor, o * factor[..., None]


def _other_way_round(m_old, m_new, l, o):
    factor = _factor(m_old, m_new)
    return o * factor[..., None], l * factor


RESCALE = (
    Wrong("truth_of_a_tensor", _by_if, ONE_TRUTH),
    Wrong("factor_without_axis", lambda a, b, l, o: (l, o * _factor(a, b)), O_AXIS),
    Wrong(
        "quotient_of_powers",
        _quotient_of_powers,
        "exp(m_old) / exp(m_new) is the right factor on paper. For maxima of -60000 both powers\n"
        "are 0, and for 1000 both are inf. Their difference can be had before any exp.",
    ),
    Wrong(
        "difference_as_factor",
        _difference_as_factor,
        "The factor is m_old - m_new, a difference of scores. The terms are exponentials: what\n"
        "becomes of a difference in an exponent?",
    ),
    Wrong("other_way_round", _other_way_round, OTHER_WAY_ROUND),
)


def _stream(start, step, finish=lambda m, l: (m, l)):
    """m and l from `start(block)`, moved by `step(m, l, block)`."""

    def program(blocks):
        m = None
        for block in blocks:
            if m is None:
                m, l = start(block)
            m, l = step(m, l, block)
        return finish(m, l)

    return program


def _nothing(block):
    return torch.full_like(block[..., 0], -INF), torch.zeros_like(block[..., 0])


def _terms(block, m):
    return (block - stand_in(m)[..., None]).exp().sum(-1)


def _still(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m, l * _factor(m, m_new) + _terms(block, m_new)


def _too_early(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m_new, (l + _terms(block, m_new)) * _factor(m, m_new)


def _terms_of_the_block(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m_new, l * _factor(m, m_new) + _terms(block, block.amax(-1))


def _right(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m_new, l * _factor(m, m_new) + _terms(block, m_new)


def _careless(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m_new, l * (m - m_new).exp() + (block - m_new[..., None]).exp().sum(-1)


def _still_from_the_first(blocks):
    m = l = None
    for block in blocks:
        if m is None:
            m, l = block.amax(-1), _terms(block, block.amax(-1))
        else:
            m, l = _still(m, l, block)
    return m, l


def _first_taken_away(blocks):
    first = next(iter(blocks))
    m, l = _nothing(first)
    for block in blocks:
        m, l = _right(m, l, block)
    return m, l


def _all_at_once(blocks):
    scores = torch.cat(list(blocks), dim=-1)
    m = scores.amax(-1)
    return m, (scores - m[..., None]).exp().sum(-1)


def _read_twice(zero):
    def program(blocks):
        m = l = None
        for block in blocks:
            m = block.amax(-1) if m is None else torch.maximum(m, block.amax(-1))
            l = zero(m)
        for block in blocks:
            l = l + _terms(block, m)
        return m, l

    return program


NEVER_MOVED = "m is never set to the new maximum, so each block starts from the same old one."
READ_TWICE = (
    "The blocks are asked for twice, for the maximum and for the sum. They come only once: the\n"
    "second loop finds nothing, and l stays 0. Both must be done in one loop."
)

ONLINE_SOFTMAX = (
    Wrong("truth_of_a_tensor", lambda blocks: max(-INF, next(blocks).amax(-1)), ONE_TRUTH),
    Wrong(
        "number_for_m",
        lambda blocks: torch.maximum(-INF, next(blocks).amax(-1)),
        NO_TENSOR,
    ),
    Wrong(
        "number_for_m_on_the_right",
        lambda blocks: torch.maximum(next(blocks).amax(-1), -INF),
        NO_TENSOR,
    ),
    Wrong("max_with_positions", lambda blocks: next(blocks) - next(blocks).max(-1), TWO_RESULTS),
    Wrong("top_without_axis", lambda blocks: _top_without_axis(next(blocks)), ROW_AXIS),
    Wrong("m_never_moved", _stream(_nothing, _still), NEVER_MOVED),
    Wrong("m_of_the_first_block", _still_from_the_first, NEVER_MOVED),
    Wrong(
        "new_terms_rescaled",
        _stream(_nothing, _too_early),
        "The new terms are added first, and then everything is rescaled. The new terms stand\n"
        "under the new maximum already; only the old ones need the factor.",
    ),
    Wrong(
        "terms_under_the_block_s_maximum",
        _stream(_nothing, _terms_of_the_block),
        "The new terms are taken under the maximum of their own block. All terms of l must stand\n"
        "under the same one, the largest so far.",
    ),
    Wrong(
        "first_block_taken_away",
        _first_taken_away,
        "The first block is missing. It was taken for its shape, and a block that was taken\n"
        "doesn't come again.",
    ),
    Wrong(
        "nan_made_zero_at_the_end",
        _stream(_nothing, _careless, lambda m, l: (m, l.nan_to_num(0.0))),
        "A block of -inf made l NaN, and every block after it was lost. Turning NaN into 0 at the\n"
        "end is too late: it must not arise.",
    ),
    Wrong(
        "all_at_once_and_nan",
        _all_at_once,
        "A row in which every score is -inf gives NaN: its maximum is -inf, and (-inf) - (-inf)\n"
        "is not a number. All other rows are right.",
    ),
    Wrong("read_twice", _read_twice(torch.zeros_like), READ_TWICE),
    Wrong("read_twice_from_a_number", _read_twice(lambda m: 0), READ_TWICE),
    Wrong("read_twice_from_a_fraction", _read_twice(lambda m: 0.0), READ_TWICE),
    Wrong(
        "other_way_round",
        _stream(_nothing, _right, lambda m, l: (l, m)),
        "The two results come in the wrong order: first m, then l.",
    ),
)


def _crossed(a, b):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)
    f_a, f_b = _factor(m_b, m), _factor(m_a, m)
    return m, l_a * f_a + l_b * f_b, o_a * f_a[..., None] + o_b * f_b[..., None]


MERGE_SOFTMAX_STATES = (
    Wrong("truth_of_a_tensor", lambda a, b: max(a[0], b[0]), ONE_TRUTH),
    Wrong("factor_without_axis", lambda a, b: a[2] * _factor(a[0], b[0]), O_AXIS),
    Wrong(
        "factors_crossed",
        _crossed,
        "Each state is multiplied by the factor that belongs to the other. a's sums stand under\n"
        "a's maximum, so it is that one which the factor has to leave.",
    ),
)
