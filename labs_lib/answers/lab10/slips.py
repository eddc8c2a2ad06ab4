"""safe_softmax and log_sum_exp: slips that stop a program or that go with a first try.

A slip of shape or of Python is recognised by the error that it raises, so each stands here as it
is mostly written, without care for rows of -inf.
"""

from __future__ import annotations

import numpy as np
import torch

from ..kit import Wrong
from .parts import INF, stand_in

ONE_TRUTH = (
    "A tensor of several numbers stands where Python wants one True or False: in max(a, b), in an\n"
    "`if`, in `and`. Each row decides for itself: see torch.maximum and torch.where."
)
NO_TENSOR = (
    "torch wants a tensor here, and got a number of Python. Begin with a tensor: in torch.full,\n"
    "torch.full_like or torch.tensor."
)
NO_NUMPY = (
    "numpy's functions know nothing of tensors. torch has its own: exp, and amax and sum, which\n"
    "take dim=... where numpy has axis=..."
)
TWO_RESULTS = (
    "max(dim=...) gives two results, the values and where they stand. amax gives the values alone."
)
ROW_AXIS = (
    "There is one number for each row [...], and it meets all scores [..., n]. torch lines shapes\n"
    "up from the right, so the number needs an axis of length 1 at the end."
)


def top_without_axis(scores):
    """exp(score - m) where m [...] lacks the axis of the scores; torch refuses."""
    return (scores - scores.amax(-1)).exp()


def _sum_without_axis(scores):
    p = (scores - scores.amax(-1, keepdim=True)).exp()
    return p / p.sum(-1)


def _unguarded(top, total=lambda p: p.sum(-1, keepdim=True)):
    def program(scores):
        p = (scores - top(scores)).exp()
        return p / total(p)

    return program


def _unguarded_quotient(scores):
    p = (scores / scores.abs().amax(-1, keepdim=True)).exp()
    return p / p.sum(-1, keepdim=True)


def _matrix_by_matrix(scores):
    """A loop that was meant to go from row to row."""
    tops = [scores[i].max() for i in range(len(scores))]
    powers = [(scores[i] - stand_in(top)).exp() for i, top in enumerate(tops)]
    return torch.stack([p / (p.sum() if p.sum() > 0 else 1.0) for p in powers])


def _hidden_become_zero(scores):
    return scores.masked_fill(scores == -INF, 0.0).softmax(-1)


def _if_a_row(scores):
    return scores if scores.amax(-1) == -INF else top_without_axis(scores)


SAFE_SOFTMAX = (
    Wrong("truth_of_a_tensor", _if_a_row, ONE_TRUTH),
    Wrong("maximum_by_numpy", lambda s: np.exp(s - np.max(s, axis=-1)), NO_NUMPY),
    Wrong("max_with_positions", lambda s: s - s.max(-1), TWO_RESULTS),
    Wrong("top_without_axis", top_without_axis, ROW_AXIS),
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
        "matrix_by_matrix",
        _matrix_by_matrix,
        "A loop over the scores goes along their first axis, and what it gives need not be a row:\n"
        "there may be axes in front. A row is the last axis.",
    ),
    Wrong(
        "hidden_scores_become_zero",
        _hidden_become_zero,
        "Scores of -inf were replaced by 0, and exp(0) is 1: hidden keys get weight. Let -inf be\n"
        "-inf, exp makes 0 of it.",
    ),
    Wrong(
        "mean",
        _unguarded(lambda s: s.mean(-1, keepdim=True)),
        "The mean is subtracted. It is -inf as soon as one score is, and large scores still lie\n"
        "far above it. Which score must become exp(0)?",
    ),
    Wrong(
        "divided_by_the_largest",
        _unguarded_quotient,
        "The scores are divided by the largest. That changes their differences, on which the\n"
        "weights depend; a softmax stays the same only if one number is added to all.",
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

AXES_THAT_DIFFER = (
    "m has kept the axis of the row, and the sum hasn't. Both are one number a row: [...]."
)

LOG_SUM_EXP = (
    Wrong("truth_of_a_tensor", _if_a_row, ONE_TRUTH),
    Wrong("maximum_by_numpy", lambda s: np.exp(s - np.max(s, axis=-1)), NO_NUMPY),
    Wrong("max_with_positions", lambda s: s - s.max(-1), TWO_RESULTS),
    Wrong("top_without_axis", top_without_axis, ROW_AXIS),
    Wrong(
        "axes_that_differ",
        lambda s: s.amax(-1, keepdim=True) + (s - s.amax(-1, keepdim=True)).exp().sum(-1).log(),
        AXES_THAT_DIFFER,
    ),
    Wrong(
        "axes_that_differ_the_other_way_round",
        lambda s: (s - s.amax(-1, keepdim=True)).exp().sum(-1).log() + s.amax(-1, keepdim=True),
        AXES_THAT_DIFFER,
    ),
    Wrong(
        "logarithm_of_all_weights",
        lambda s: s.new_zeros(s.shape[:-1]).masked_fill(s.amax(-1) == -INF, -INF),
        "This is 0 in every row: the weights of a softmax add up to 1, and log(1) is 0. Take the\n"
        "logarithm of the sum before the division.",
    ),
    Wrong(
        "sum_of_the_scores",
        lambda s: s.sum(-1),
        "The scores themselves are added up: log(exp(s)) is s only for one term, not for a sum.",
    ),
    Wrong(
        "logarithm_subtracted",
        lambda s: stand_in(s.amax(-1)) - (s - stand_in(s.amax(-1))[..., None]).exp().sum(-1).log(),
        "log(l) is subtracted from m. The logarithm of a product is a sum.",
    ),
)
