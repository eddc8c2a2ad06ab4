"""Answers to safe_softmax and log_sum_exp: the whole row is at hand."""

from __future__ import annotations

from functools import reduce

import torch

from labs_lib.attention.online_softmax import log_sum_exp, safe_softmax

from ..kit import Answer, Right, Wrong
from . import slips
from .parts import INF, LOG2_E, stand_in


def _softmax(shift, power=torch.exp, total=lambda p: p.sum(-1, keepdim=True)):
    """The right program with another number to subtract, another power or another sum."""

    def program(scores):
        p = power(scores - shift(scores))
        sums = total(p)
        return p / sums.masked_fill(sums == 0, 1.0)

    return program


def _row_max(scores):
    return stand_in(scores.amax(-1, keepdim=True))


def _row_min(scores):
    return scores.masked_fill(scores == -INF, INF).amin(-1, keepdim=True).clamp(max=1e30)


def _nan_for_nothing(scores):
    p = (scores - scores.amax(-1, keepdim=True)).exp()
    return p / p.sum(-1, keepdim=True)


def _even_for_nothing(scores):
    return scores.clamp(min=-1e30).softmax(-1)


def _one_row(row):
    top = row.max()
    if top == -INF:
        return torch.zeros_like(row)
    powers = [torch.exp(score - top) for score in row]
    return torch.stack(powers) / sum(powers)


def _row_by_row(scores):
    rows = scores.reshape(-1, scores.shape[-1])
    return torch.stack([_one_row(row) for row in rows]).view(scores.shape)


def _by_steps(scores):
    p = scores.sub(_row_max(scores)).exp_()
    sums = p.sum(-1)
    sums = torch.where(sums > 0, sums, torch.ones_like(sums))
    return p / sums[..., None]


def _sentinel(scores, dim=-1):
    m = torch.clamp(scores.max(dim, keepdim=True).values, min=-1e30)
    p = torch.exp(scores - m)
    return p / p.sum(dim, keepdim=True).clamp(min=1e-30)


SAFE_SOFTMAX = Answer(
    reference=safe_softmax,
    wrong=(
        Wrong(
            "no_maximum",
            _softmax(lambda s: 0.0),
            "exp is taken of the scores as they are. exp(89) is beyond float32 and becomes inf,\n"
            "exp(-200) becomes 0, and then inf/inf or 0/0 is NaN. What can be subtracted first?",
        ),
        Wrong(
            "one_maximum_for_all_rows",
            _softmax(lambda s: s.max()),
            "One maximum serves all rows. A row that lies 300 below it has only zeros left.\n"
            "Each row needs a maximum of its own.",
        ),
        Wrong(
            "maximum_of_columns",
            _softmax(lambda s: stand_in(s.amax(-2, keepdim=True))),
            "The maximum is taken down the columns. A row is the last axis.",
        ),
        Wrong(
            "over_the_columns",
            lambda s: (s - stand_in(s.amax(-2, keepdim=True))).exp().nan_to_num()
            / (s - stand_in(s.amax(-2, keepdim=True))).exp().sum(-2, keepdim=True).clamp(min=1e-30),
            "Here the columns add up to 1. The softmax of a row runs along the last axis.",
        ),
        Wrong(
            "not_divided",
            lambda s: (s - _row_max(s)).exp(),
            "The largest weight of each row is 1: these are exp(score - maximum). The division by\n"
            "their sum is missing.",
        ),
        Wrong(
            "divided_by_half_a_row",
            _softmax(_row_max, total=lambda p: p[..., : (p.shape[-1] + 1) // 2].sum(
                -1, keepdim=True)),
            "The sum stops in the middle of the row, so the weights add up to more than 1.",
        ),
        Wrong(
            "minimum",
            _softmax(_row_min),
            "The smallest score is subtracted, so the exponents are positive and overflow.\n"
            "Which score must become exp(0)?",
        ),
        Wrong(
            "maximum_at_least_zero",
            _softmax(lambda s: s.amax(-1, keepdim=True).clamp(min=0.0)),
            "The maximum can't fall below 0 here, as when it begins with 0. Scores around -200\n"
            "then all become 0. A maximum over nothing is -inf.",
        ),
        Wrong(
            "finite_sentinel",
            _softmax(lambda s: s.amax(-1, keepdim=True).clamp(min=-5e4)),
            "The maximum can't fall below a number such as -50000, which is meant as minus\n"
            "infinity. Scores of -60000 can, and their exp is 0. Minus infinity is -math.inf.",
        ),
        Wrong(
            "hidden_scores_count",
            lambda s: s.clamp(min=-1e4).softmax(-1),
            "Scores of -inf were replaced by -10000. Beside scores of -20000 that is the largest\n"
            "of all. Let -inf be -inf: exp makes 0 of it.",
        ),
        Wrong(
            "clamped",
            lambda s: s.clamp(-INF, 80.0).exp() / s.clamp(max=80.0).exp().sum(
                -1, keepdim=True).clamp(min=1e-30),
            "Scores above 80 are cut down to 80. Nothing overflows, and the large scores of a\n"
            "row have all become equal.",
        ),
        Wrong(
            "powers_of_two",
            _softmax(_row_max, power=torch.exp2),
            "The powers are of 2 and not of e: exp2(x) is exp(x * 0.693). exp(x) = 2 to the power\n"
            "of what?",
        ),
        Wrong(
            "added_a_little",
            lambda s: (s - _row_max(s)).exp() / ((s - _row_max(s)).exp().sum(
                -1, keepdim=True) + 1e-6),
            "A small number is added to the sum, and the weights are off by up to a millionth: it\n"
            "shows in float64. The sum is at least 1, except where there is nothing to divide.",
        ),
        Wrong(
            "nan_for_nothing",
            _nan_for_nothing,
            "A row of -inf gives NaN: its maximum is -inf, and (-inf) - (-inf) is not a number.\n"
            "The other rows of this case are right.",
        ),
        Wrong(
            "even_for_nothing",
            _even_for_nothing,
            "A row of -inf gets equal weights, as if all its scores were the same large negative\n"
            "number. Nothing may be seen there, so its weights are zeros. The other rows of this\n"
            "case are right.",
        ),
        Wrong(
            "half_precision_sum",
            _softmax(_row_max, total=lambda p: p.half().sum(-1, keepdim=True).to(p.dtype)),
            "The sum was kept in float16, which has three digits. Keep it as wide as the scores.",
        ),
        *slips.SAFE_SOFTMAX,
    ),
    right=(
        Right("row_by_row", _row_by_row),
        Right("sentinel_that_is_handled", _sentinel),
        Right("by_steps", _by_steps),
        Right("nan_made_zero_at_the_end", lambda s: torch.nan_to_num(_nan_for_nothing(s))),
        Right("powers_of_two_throughout", lambda s: _softmax(
            lambda x: stand_in(x.amax(-1, keepdim=True)), power=torch.exp2)(s * LOG2_E)),
        Right("float64_inside", lambda s: safe_softmax(s.double()).to(s.dtype)),
        Right("added_next_to_nothing", lambda s: (s - _row_max(s)).exp() / (
            (s - _row_max(s)).exp().sum(-1, keepdim=True) + 1e-8)),
        Right("from_log_sum_exp", lambda s: (s - stand_in(log_sum_exp(s))[..., None]).exp()),
    ),
)  # fmt: skip


def _lse(shift, finish=lambda m, l: m + l.log()):
    def program(scores):
        m = shift(scores)
        return finish(m, (scores - m[..., None]).exp().sum(-1))

    return program


def _max(scores):
    return stand_in(scores.amax(-1))


def _by_two(scores):
    twos = scores * LOG2_E
    m = _max(twos)
    return (m + torch.exp2(twos - m[..., None]).sum(-1).log2()) / LOG2_E


LOG_SUM_EXP = Answer(
    reference=log_sum_exp,
    wrong=(
        Wrong(
            "no_maximum",
            lambda s: s.exp().sum(-1).log(),
            "The sum is taken first and the logarithm afterwards. For scores of 100 the sum is\n"
            "beyond float32. Take the largest exp out of it as a factor.",
        ),
        Wrong(
            "sum_without_its_logarithm",
            _lse(_max, lambda m, l: m + l),
            "This is m + l: the maximum is there, but l is still a sum. Its logarithm belongs to\n"
            "the maximum.",
        ),
        Wrong(
            "maximum_forgotten",
            _lse(_max, lambda m, l: l.log()),
            "This is log(l), with l the sum of exp(score - m). The m that was subtracted has to\n"
            "come back.",
        ),
        Wrong(
            "maximum_subtracted_again",
            _lse(_max, lambda m, l: l.log() - m),
            "m was subtracted from the scores, and here once more from the result. It has to come\n"
            "back with the other sign.",
        ),
        Wrong(
            "maximum_only",
            _lse(_max, lambda m, l: torch.where(l > 0, m, -INF)),
            "This is the maximum. It is near the log-sum-exp where one score stands out, but the\n"
            "others have to be counted too.",
        ),
        Wrong(
            "maximum_times",
            _lse(_max, lambda m, l: torch.where(l > 0, m * l.log(), -INF)),
            "m and log(l) are multiplied. The logarithm of a product is a sum.",
        ),
        Wrong(
            "logarithm_to_base_two",
            _lse(_max, lambda m, l: m + l.log2()),
            "The logarithm is to base 2 while the powers are of e. Both must belong together.",
        ),
        Wrong(
            "mean",
            lambda s: _lse(_max, lambda m, l: m + (l / s.shape[-1]).log())(s),
            "The mean of the exponentials is taken, not their sum.",
        ),
        Wrong(
            "half_a_row",
            lambda s: log_sum_exp(s[..., : (s.shape[-1] + 1) // 2]),
            "Only the first half of each row is summed.",
        ),
        Wrong(
            "over_the_columns",
            lambda s: log_sum_exp(s.transpose(-1, -2)),
            "The sum runs down the columns. A row is the last axis.",
        ),
        Wrong(
            "one_maximum_for_all_rows",
            _lse(lambda s: s.max().expand(s.shape[:-1])),
            "One maximum serves all rows. In a row that lies 300 below it, all exp are 0 and\n"
            "the logarithm is -inf. Each row needs its own.",
        ),
        Wrong(
            "maximum_at_least_zero",
            _lse(lambda s: s.amax(-1).clamp(min=0.0)),
            "The maximum can't fall below 0 here, as when it begins with 0. With scores around\n"
            "-200 every exp becomes 0, and the logarithm -inf.",
        ),
        Wrong(
            "finite_sentinel",
            _lse(lambda s: s.amax(-1).clamp(min=-5e4)),
            "The maximum can't fall below a number such as -50000, which is meant as minus\n"
            "infinity. Scores of -60000 can. Minus infinity is -math.inf.",
        ),
        Wrong(
            "nan_for_nothing",
            _lse(lambda s: s.amax(-1)),
            "A row of -inf gives NaN: its maximum is -inf, and (-inf) - (-inf) is not a number.\n"
            "The other rows of this case are right.",
        ),
        Wrong(
            "zero_for_nothing",
            lambda s: stand_in(log_sum_exp(s)),
            "A row of -inf gets 0. Zero would say that its exponentials add up to 1; they add up\n"
            "to 0, and the logarithm of 0 is -inf.",
        ),
        Wrong(
            "axis_kept",
            lambda s: log_sum_exp(s)[..., None],
            "The row's axis is still there, with length 1. One number a row: [...].",
        ),
        Wrong(
            "added_a_little",
            _lse(_max, lambda m, l: torch.where(l > 0, m + (l + 1e-6).log(), -INF)),
            "A small number is added to the sum, and the result is off: it shows in float64. The\n"
            "sum is at least 1, so its logarithm is safe.",
        ),
        *slips.LOG_SUM_EXP,
    ),
    right=(
        Right("two_at_a_time", lambda s: reduce(torch.logaddexp, s.unbind(-1))),
        Right("powers_of_two_throughout", _by_two),
        Right("float64_inside", lambda s: log_sum_exp(s.double()).to(s.dtype)),
        Right("from_the_largest_weight", lambda s: torch.where(
            s.amax(-1) > -INF, _max(s) - safe_softmax(s).amax(-1).clamp(min=1e-30).log(), -INF)),
        Right("sentinel_that_is_handled", lambda s: torch.where(
            (s > -INF).any(-1), _lse(lambda x: x.amax(-1).clamp(min=-1e30))(s), -INF)),
    ),
)  # fmt: skip
