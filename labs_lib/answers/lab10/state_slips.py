"""States and streams: slips that stop a program or that go with a first try."""

from __future__ import annotations

import torch

from ..kit import Wrong
from .parts import INF, factor, stand_in, terms
from .slips import NO_TENSOR, ONE_TRUTH, ROW_AXIS, TWO_RESULTS, top_without_axis

O_AXIS = (
    "o is [..., d] and the factor [...]. torch lines shapes up from the right, so the factor\n"
    "needs an axis of length 1 at the end."
)
L_AXIS = "The factor has been given an axis for o, and l has none. l and the factor are both [...]."
ONE_ROW_FOR_ALL = (
    "As soon as one row has seen nothing, no row is rescaled: an `if` decides for all of them.\n"
    "Each row decides for itself; torch.where does that."
)
OTHER_WAY_ROUND = "The two results come in the wrong order: first l, then o."


def _by_if(m_old, m_new, l, o):
    return (l, o) if m_old == -INF else (l * factor(m_old, m_new), o)


def _one_fresh_row_stops_all(as_it_was):
    def program(m_old, m_new, l, o):
        if (m_old == -INF).any():
            return as_it_was * l, as_it_was * o
        by = (m_old - m_new).exp()
        return l * by, o * by[..., None]

    return program


def _quotient_of_powers(m_old, m_new, l, o):
    by = torch.where(m_old == -INF, 0.0, m_old.exp() / m_new.exp())
    return l * by, o * by[..., None]


def _difference_as_factor(m_old, m_new, l, o):
    by = torch.where(m_old == -INF, 0.0, m_old - m_new)
    return l * by, o * by[..., None]


def _ratio(m_old, m_new):
    return torch.where(m_old == -INF, 0.0, m_old / m_new)


def _other_way_round(m_old, m_new, l, o):
    by = factor(m_old, m_new)
    return o * by[..., None], l * by


RESCALE = (
    Wrong("truth_of_a_tensor", _by_if, ONE_TRUTH),
    Wrong("one_fresh_row_leaves_all", _one_fresh_row_stops_all(1), ONE_ROW_FOR_ALL),
    Wrong("one_fresh_row_empties_all", _one_fresh_row_stops_all(0), ONE_ROW_FOR_ALL),
    Wrong("factor_without_axis", lambda a, b, l, o: (l, o * factor(a, b)), O_AXIS),
    Wrong("factor_without_axis_in_front", lambda a, b, l, o: (l, factor(a, b) * o), O_AXIS),
    Wrong(
        "axis_for_both",
        lambda a, b, l, o: (l * factor(a, b)[..., None], o),
        L_AXIS,
    ),
    Wrong("axis_for_both_in_front", lambda a, b, l, o: (factor(a, b)[..., None] * l, o), L_AXIS),
    Wrong(
        "quotient_of_maxima",
        lambda a, b, l, o: (l * _ratio(a, b), o * _ratio(a, b)[..., None]),
        "The factor is m_old / m_new. The maxima stand in an exponent, and there it is their\n"
        "difference that counts.",
    ),
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


def _still(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m, l * factor(m, m_new) + terms(block, m_new)


def _too_early(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m_new, (l + terms(block, m_new)) * factor(m, m_new)


def _terms_of_the_block(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m_new, l * factor(m, m_new) + terms(block, block.amax(-1))


def _right(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m_new, l * factor(m, m_new) + terms(block, m_new)


def _careless(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m_new, l * (m - m_new).exp() + (block - m_new[..., None]).exp().sum(-1)


def _still_from_the_first(blocks):
    m = l = None
    for block in blocks:
        if m is None:
            m, l = block.amax(-1), terms(block, block.amax(-1))
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
            l = l + terms(block, m)
        return m, l

    return program


def _one_for_all(m, l, block):
    m_new = torch.maximum(m, block.max())
    return m_new, l * (m - m_new).exp() + (block - m_new).exp().sum(-1)


def _upside_down(m, l, block):
    m_new = torch.maximum(m, block.amax(-1))
    return m_new, l * (m_new - m).exp() + (block - m_new[..., None]).exp().sum(-1)


def _only_the_first_maximum(below):
    def program(blocks):
        m, l = None, 0.0
        for block in blocks:
            m = block.amax(-1) if m is None else m
            l = l + (block - below(m)[..., None]).exp().sum(-1)
        return m, l

    return program


ONLY_THE_FIRST = (
    "m is the first block's maximum to the end. Scores that come later may lie far above it: each\n"
    "block may bring a larger one, and then l has to move on, too."
)
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
    Wrong(
        "max_with_positions_in_maximum",
        lambda blocks: torch.maximum(next(blocks)[..., 0], next(blocks).max(-1)),
        TWO_RESULTS,
    ),
    Wrong(
        "max_with_positions_in_front",
        lambda blocks: torch.maximum(next(blocks).max(-1), next(blocks)[..., 0]),
        TWO_RESULTS,
    ),
    Wrong(
        "max_with_positions_in_max",
        lambda blocks: torch.max(next(blocks)[..., 0], next(blocks).max(-1)),
        TWO_RESULTS,
    ),
    Wrong("first_maximum_kept", _only_the_first_maximum(stand_in), ONLY_THE_FIRST),
    Wrong("first_maximum_kept_and_nan", _only_the_first_maximum(lambda m: m), ONLY_THE_FIRST),
    Wrong("top_without_axis", lambda blocks: top_without_axis(next(blocks)), ROW_AXIS),
    Wrong(
        "blocks_counted",
        lambda blocks: len(blocks),
        "The blocks come one after the other, and nobody knows how many there will be: they have\n"
        "no length and no numbers. `for block in blocks` takes each as it comes.",
    ),
    Wrong(
        "one_number_for_all_rows",
        _stream(lambda block: (torch.tensor(-INF), 0.0), _one_for_all),
        "m is one number: block.max() is the largest of the whole block. Each row has its own.",
    ),
    Wrong(
        "factor_upside_down_and_nan",
        _stream(_nothing, _upside_down),
        "The factor is exp(m_new - m). It is larger than 1, where it has to make old terms\n"
        "smaller; and from m = -inf it is inf, and inf times 0 is NaN.",
    ),
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
        "is not a number. The other rows of this case are right.",
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
    f_a, f_b = factor(m_b, m), factor(m_a, m)
    return m, l_a * f_a + l_b * f_b, o_a * f_a[..., None] + o_b * f_b[..., None]


def _a_to_b(a, b):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    f = (m_a - m_b).exp()
    return torch.maximum(m_a, m_b), l_a * f + l_b, o_a * f[..., None] + o_b


def _one_decision(first_is_larger):
    def merge(a, b):
        large, small = (a, b) if first_is_larger(a[0], b[0]) else (b, a)
        f = (small[0] - large[0]).exp()
        return large[0], large[1] + small[1] * f, large[2] + small[2] * f[..., None]

    return merge


ONE_DECISION = (
    "One comparison decides for all rows which state has the larger maximum. In one row it is\n"
    "a, in the next b: the larger has to be found row by row."
)

MERGE_SOFTMAX_STATES = (
    Wrong("truth_of_a_tensor", lambda a, b: max(a[0], b[0]), ONE_TRUTH),
    Wrong("factor_without_axis", lambda a, b: a[2] * factor(a[0], b[0]), O_AXIS),
    Wrong("factor_without_axis_in_front", lambda a, b: factor(a[0], b[0]) * a[2], O_AXIS),
    Wrong(
        "a_brought_to_b",
        _a_to_b,
        "a is brought to b's maximum, by exp(m_a - m_b), and b is left as it is. Where a has the\n"
        "larger maximum, that factor is larger than 1, and b's sums don't belong to m.",
    ),
    Wrong("one_decision_for_all_rows", _one_decision(lambda x, y: x.max() > y.max()), ONE_DECISION),
    Wrong("one_decision_by_all", _one_decision(lambda x, y: not (x < y).all()), ONE_DECISION),
    Wrong(
        "factors_crossed",
        _crossed,
        "Each state is multiplied by the factor that belongs to the other. a's sums stand under\n"
        "a's maximum, so it is that one which the factor has to leave.",
    ),
)
