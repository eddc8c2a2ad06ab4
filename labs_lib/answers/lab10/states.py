"""Answers to rescale and merge_softmax_states: what is kept of scores that have gone by."""

from __future__ import annotations

import torch

from labs_lib.attention.online_softmax import merge_softmax_states, rescale

from ..kit import Answer, Right, Wrong
from . import state_slips as slips
from .parts import INF, LOG2_E, factor


def _with(factor_l, factor_o=None):
    """rescale by other factors, each a function of (m_old, m_new)."""
    factor_o = factor_o or factor_l

    def program(m_old, m_new, l, o):
        return l * factor_l(m_old, m_new), o * factor_o(m_old, m_new)[..., None]

    return program


def _one(m_old, m_new):
    return torch.ones_like(m_new)


def _along_the_numbers(m_old, m_new, l, o):
    by = factor(m_old, m_new)
    wide = by if by.shape[-1:] == o.shape[-1:] else by[..., None]
    return l * by, o * wide


def _one_by_one(m_old, m_new, l, o):
    l_new, o_new = torch.zeros_like(l), torch.zeros_like(o)
    for index in torch.cartesian_prod(*(torch.arange(n) for n in m_old.shape)).reshape(
        -1, m_old.ndim
    ):
        at = tuple(index.tolist())
        if m_old[at] > -INF:
            by = (m_old[at] - m_new[at]).exp()
            l_new[at], o_new[at] = l[at] * by, o[at] * by
    return [l_new, o_new]


def _masked(m_old, m_new, l, o):
    by = torch.where(m_old == -INF, 0.0, torch.exp2((m_old - m_new) * LOG2_E))
    return l * by, torch.einsum("...d,...->...d", o, by)


RESCALE = Answer(
    reference=rescale,
    wrong=(
        Wrong(
            "o_left_as_it_was",
            _with(factor, _one),
            "l is brought to the new maximum, o isn't. Both are sums of exp(score - m_old).",
        ),
        Wrong(
            "l_left_as_it_was",
            _with(_one, factor),
            "o is brought to the new maximum, l isn't. Both are sums of exp(score - m_old).",
        ),
        Wrong(
            "nothing_changed",
            _with(_one),
            "The factor is 1, as when m_old is overwritten before the factor is made. Then the\n"
            "old terms weigh too much beside those that come.",
        ),
        Wrong(
            "factor_upside_down",
            _with(lambda a, b: (b - a.masked_fill(a == -INF, INF)).exp()),
            "The factor is exp(m_new - m_old), larger than 1. Under a larger maximum each\n"
            "exp(score - m) is smaller.",
        ),
        Wrong(
            "factor_twice",
            _with(factor, lambda a, b: factor(a, b) ** 2),
            "o was multiplied by the factor twice. Once is what each of its terms needs.",
        ),
        Wrong(
            "power_of_two",
            _with(lambda a, b: torch.exp2(a - b.masked_fill(b == -INF, 0.0))),
            "The factor is a power of 2, while the terms are powers of e.",
        ),
        Wrong(
            "difference_subtracted",
            lambda a, b, l, o: (l - (b - a).nan_to_num(0.0, 0.0), o - (b - a).nan_to_num(
                0.0, 0.0)[..., None]),
            "The difference of the maxima is subtracted. It stands in an exponent, so it becomes\n"
            "a factor.",
        ),
        Wrong(
            "started_again",
            lambda a, b, l, o: (l * (a == b), o * (a == b)[..., None]),
            "Where the maximum grew, everything collected so far is thrown away. It still counts,\n"
            "only less.",
        ),
        Wrong(
            "o_divided_by_l",
            lambda a, b, l, o: (l * factor(a, b), (o * factor(a, b)[..., None]) / torch.where(
                l > 0, l, 1.0)[..., None]),
            "o was divided by l as well. That belongs to the very end; done at each step it is\n"
            "done too often.",
        ),
        Wrong(
            "one_factor_for_all_rows",
            _with(lambda a, b: factor(a, b).amax().expand(a.shape)),
            "All rows get the same factor. Each row has its own old and new maximum.",
        ),
        Wrong(
            "along_the_wrong_axis",
            _along_the_numbers,
            "Where o is as wide as there are rows, the factors run along its numbers and not\n"
            "along its rows. Give the factor one more axis at the end.",
        ),
        Wrong(
            "finite_sentinel",
            _with(lambda a, b: torch.where(
                a == -INF, 0.0, (a.clamp(min=-5e4) - b.clamp(min=-5e4)).exp())),
            "Maxima below a number such as -50000 are taken for that number, which was meant as\n"
            "minus infinity. Real scores can be smaller. It can be written as -math.inf.",
        ),
        Wrong(
            "nan_before_the_first_score",
            _with(lambda a, b: (a - b).exp()),
            "Where no score has come yet, both maxima are -inf and their difference is NaN. Zero\n"
            "times NaN is NaN as well. The other rows of this case are right.",
        ),
        Wrong(
            "maxima_floored_at_zero",
            _with(lambda a, b: torch.where(a == -INF, 0.0, (
                a.clamp(min=0.0) - b.clamp(min=0.0)).exp())),
            "Maxima below 0 are taken for 0, as when m begins with 0. A maximum over nothing is\n"
            "-inf, and it may well stay negative.",
        ),
        *slips.RESCALE,
    ),
    right=(
        Right("number_by_number", _one_by_one),
        Right("where_and_einsum", _masked),
        Right("by_division", lambda a, b, l, o: _with(
            lambda x, y: torch.where(x == -INF, 0.0, 1 / (y - x).exp()))(a, b, l, o)),
        Right("float64_inside", lambda a, b, l, o: tuple(
            t.to(l.dtype) for t in rescale(a.double(), b.double(), l.double(), o.double()))),
        Right("nan_made_zero", lambda a, b, l, o: _with(
            lambda x, y: (x - y).exp().nan_to_num(0.0))(a, b, l, o)),
    ),
)  # fmt: skip


def _merge(of_a=factor, of_b=factor, of_l=None, top=torch.maximum):
    """The right merge with other factors (of_l: for l alone) or another maximum."""

    def program(a, b):
        (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
        m = top(m_a, m_b)
        f_a, f_b = of_a(m_a, m), of_b(m_b, m)
        g_a, g_b = (of_l(m_a, m), of_l(m_b, m)) if of_l else (f_a, f_b)
        return m, l_a * g_a + l_b * g_b, o_a * f_a[..., None] + o_b * f_b[..., None]

    return program


def _means(a, b):
    m, l, o = merge_softmax_states(a, b)
    return m, l, o / torch.where(l > 0, l, 1.0)[..., None]


def _mean_of_means(a, b):
    m, l, _ = merge_softmax_states(a, b)
    means = [x[2] / torch.where(x[1] > 0, x[1], 1.0)[..., None] for x in (a, b)]
    return m, l, (means[0] + means[1]) / 2


def _larger_wins(a, b):
    first = a[0] >= b[0]
    m, l, o = (torch.where(first if x.ndim == first.ndim else first[..., None], x, y)
               for x, y in zip(a, b, strict=True))  # fmt: skip
    return m, l, o


def _wrong_axis(a, b):
    m, l, o = merge_softmax_states(a, b)
    f_a, f_b = factor(a[0], m), factor(b[0], m)
    if f_a.shape[-1] == o.shape[-1]:
        o = a[2] * f_a + b[2] * f_b
    return m, l, o


def _stand_in_kept(a, b):
    floor = [x[0].masked_fill(x[0] == -INF, 0.0) for x in (a, b)]
    top = torch.maximum(*floor)
    f_a, f_b = (torch.where(x[0] == -INF, 0.0, (x[0] - top).exp()) for x in (a, b))
    return top, a[1] * f_a + b[1] * f_b, a[2] * f_a[..., None] + b[2] * f_b[..., None]


def _stacked(a, b):
    m, l, o = (torch.stack([x, y]) for x, y in zip(a, b, strict=True))
    top = m.amax(0)
    by = torch.where(m == -INF, 0.0, torch.exp2((m - top) * LOG2_E))
    return [top, (l * by).sum(0), torch.einsum("s...d,s...->...d", o, by)]


def _by_cases(a, b):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    down = (-(m_a - m_b).abs()).nan_to_num(-INF).exp()  # what the smaller one is multiplied by
    first = m_a >= m_b
    f_a, f_b = torch.where(first, 1.0, down), torch.where(first, down, 1.0)
    return (
        torch.where(first, m_a, m_b),
        l_a * f_a + l_b * f_b,
        o_a * f_a.unsqueeze(-1) + o_b * f_b.unsqueeze(-1),
    )


def _wide(a, b, lowest=-1e30):
    (m_a, l_a, o_a), (m_b, l_b, o_b) = ([t.double() for t in x] for x in (a, b))
    m = torch.maximum(m_a, m_b).clamp(min=lowest)
    f_a, f_b = (m_a - m).exp(), (m_b - m).exp()
    out = (
        torch.maximum(m_a, m_b),
        l_a * f_a + l_b * f_b,
        o_a * f_a[..., None] + o_b * f_b[..., None],
    )
    return tuple(t.to(a[0].dtype) for t in out)


MERGE_SOFTMAX_STATES = Answer(
    reference=merge_softmax_states,
    wrong=(
        Wrong(
            "just_added",
            _merge(_one, _one),
            "The sums are added as they are. They were collected under different maxima, so their\n"
            "terms don't mean the same. Bring both to one m first.",
        ),
        Wrong(
            "o_left_as_it_was",
            _merge(_one, _one, of_l=factor),
            "l is rescaled before it is added, o isn't. o is a sum of the same exp(score - m),\n"
            "each times a value.",
        ),
        Wrong(
            "l_left_as_it_was",
            _merge(of_l=_one),
            "o is rescaled before it is added, l isn't. Both are sums of exp(score - m).",
        ),
        Wrong(
            "factor_upside_down",
            _merge(*[lambda m, top: (top - m.masked_fill(m == -INF, INF)).exp()] * 2),
            "The factors are exp(m_new - m_old), larger than 1. Under a larger maximum each\n"
            "exp(score - m) is smaller.",
        ),
        Wrong(
            "only_the_first_rescaled",
            _merge(of_b=lambda m, top: (m > -INF).to(m.dtype)),
            "Only a is brought to the new maximum, as if b always had the larger one. In some\n"
            "rows a has it, and then it is b that must be rescaled.",
        ),
        Wrong(
            "only_the_second_rescaled",
            _merge(of_a=lambda m, top: (m > -INF).to(m.dtype)),
            "Only b is brought to the new maximum, as if a always had the larger one. In some\n"
            "rows b has it.",
        ),
        Wrong(
            "the_second_s_maximum",
            lambda a, b: _merge(
                lambda m, top: (m - top).exp().nan_to_num(0.0, 0.0),
                lambda m, top: (m > -INF).to(m.dtype), top=lambda x, y: y)(a, b),
            "m is always b's. If a had the larger maximum, a's sums are blown up, and with b\n"
            "empty they are lost. The new m is the larger of the two, row by row.",
        ),
        Wrong(
            "smaller_maximum",
            _merge(*[lambda m, top: (m - top).exp().nan_to_num(0.0, 0.0)] * 2, top=torch.minimum),
            "m is the smaller maximum, and the factors grow beyond every bound. It is the larger\n"
            "one that keeps exp in range.",
        ),
        Wrong(
            "one_maximum_for_all_rows",
            _merge(top=lambda x, y: torch.maximum(x, y).amax().expand(x.shape)),
            "All rows get one maximum. Rows that lie far below it lose all they have collected.",
        ),
        Wrong(
            "larger_wins",
            _larger_wins,
            "The state with the larger maximum is taken, and the other is dropped. Its scores\n"
            "count too.",
        ),
        Wrong(
            "already_divided",
            _means,
            "o comes out divided by l. A state keeps the sum; the mean can't be merged again.",
        ),
        Wrong(
            "mean_of_means",
            _mean_of_means,
            "o is the mean of the two outputs. The two states have seen different amounts of\n"
            "weight, and the one with more has to count for more.",
        ),
        Wrong(
            "maxima_added",
            lambda a, b: (a[0] + b[0], *merge_softmax_states(a, b)[1:]),
            "m is the sum of the two maxima. The new m is the larger of them.",
        ),
        Wrong(
            "power_of_two",
            _merge(*[lambda m, top: torch.exp2(m - top.masked_fill(top == -INF, 0.0))] * 2),
            "The factors are powers of 2, while the terms are powers of e.",
        ),
        Wrong(
            "along_the_wrong_axis",
            _wrong_axis,
            "Where o is as wide as there are rows, the factors run along its numbers and not\n"
            "along its rows. Give the factors one more axis at the end.",
        ),
        Wrong(
            "finite_sentinel",
            _merge(*[lambda m, top: torch.where(
                m == -INF, 0.0, (m.clamp(min=-5e4) - top.clamp(min=-5e4)).exp())] * 2),
            "Maxima below a number such as -50000 are taken for that number, which was meant as\n"
            "minus infinity. Real scores can be smaller.",
        ),
        Wrong(
            "stand_in_kept",
            _stand_in_kept,
            "A maximum of -inf was replaced by 0, and the 0 was kept. It then beats the real\n"
            "maximum of -150, and all weights become 0. The stand-in belongs in the exponent\n"
            "only.",
        ),
        Wrong(
            "nan_where_nothing_was_seen",
            _merge(*[lambda m, top: (m - top).exp()] * 2),
            "Where neither state has seen a score, the difference (-inf) - (-inf) is NaN. The\n"
            "other rows of this case are right.",
        ),
        *slips.MERGE_SOFTMAX_STATES,
    ),
    right=(
        Right("stacked", _stacked),
        Right("by_cases", _by_cases),
        Right("wide_with_a_handled_sentinel", _wide),
        Right("the_other_way_round", lambda a, b: merge_softmax_states(b, a)),
    ),
)  # fmt: skip
