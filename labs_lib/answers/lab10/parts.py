"""What the programs of labs 10 and 11 share: the arithmetic of a running maximum."""

from __future__ import annotations

import math

import torch

INF = math.inf
MAXIMUM_OVER_HIDDEN = (
    "The maximum is taken over hidden keys, too. A hidden score that lies 110 higher makes every\n"
    "visible exp 0. Hide first, then take the maximum."
)
LOG2_E = 1.4426950408889634


def stand_in(m):
    """m with 0 in the place of -inf, for use in an exponent."""
    return m.masked_fill(m == -INF, 0.0)


def factor(m_old, m_new):
    """What a sum under m_old is multiplied by to stand under m_new; 0 where m_old is -inf."""
    return (m_old - stand_in(m_new)).exp()


def terms(block, m):
    """The sum of exp(score - m) over a block: [..., n_b], [...] -> [...]."""
    return (block - stand_in(m)[..., None]).exp().sum(-1)


def finish(m, l, o):
    """Output and log-sum-exp; zeros and -inf where nothing was seen."""
    return o / torch.where(l > 0, l, 1.0)[..., None], m + l.log()
