"""Answers to online_softmax: blocks that come one at a time."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labs_lib.attention.online_softmax import online_softmax
from labs_lib.exercises.lab10 import KEEPS_THE_ROW

from ..kit import Answer, Right, Wrong
from . import state_slips as slips
from .parts import INF, LOG2_E, factor, stand_in, terms


def _maximum(m, block):
    return torch.maximum(m, block.amax(-1))


def _stream(factor=factor, terms=terms, top=_maximum, start=-INF, seen=lambda block, first: block):
    """The right program with one part changed."""

    def program(blocks):
        m = l = first = None
        for block in blocks:
            first = block if first is None else first
            block = seen(block, first)
            if m is None:
                m, l = torch.full_like(block[..., 0], start), torch.zeros_like(block[..., 0])
            m_new = top(m, block)
            l = l * factor(m, m_new) + terms(block, m_new)
            m = m_new
        return m, l

    return program


def _first_only(blocks):
    return online_softmax([next(iter(blocks))])


def _last_only(blocks):
    return online_softmax([list(blocks)[-1]])


def _no_maximum(blocks):
    l = sum(block.exp().sum(-1) for block in blocks)
    return torch.zeros_like(l), l


def _all_at_once(blocks):
    scores = torch.cat(list(blocks), dim=-1)
    m = scores.amax(-1)
    return m, terms(scores, m)


def _in_half(blocks):
    m, l = _stream(
        lambda m, m_new: factor(m, m_new).half(), lambda block, m_new: terms(block, m_new).half()
    )(blocks)
    return m, l.to(m.dtype)


def _divided(blocks):
    m, l = online_softmax(blocks)
    return m, 1 / l


def _stand_in_kept(blocks):
    m = l = None
    for block in blocks:
        top = stand_in(block.amax(-1))
        m_new = top if m is None else torch.maximum(m, top)
        l = (0.0 if m is None else l * (m - m_new).exp()) + (block - m_new[..., None]).exp().sum(-1)
        m = m_new
    return m, l


def _score_by_score(blocks):
    m = l = None
    for block in blocks:
        for score in block.unbind(-1):
            if m is None:
                m, l = torch.full_like(score, -INF), torch.zeros_like(score)
            larger = torch.maximum(m, score)
            l = torch.where(m > -INF, l * (m - larger).exp(), 0.0)
            l = l + torch.where(score > -INF, (score - larger).exp(), 0.0)
            m = larger
    return m, l


def _by_logaddexp(blocks):
    m = lse = None
    for block in blocks:
        own = block.double()
        m = own.amax(-1) if m is None else torch.maximum(m, own.amax(-1))
        for score in own.unbind(-1):
            lse = score if lse is None else torch.logaddexp(lse, score)
        dtype = block.dtype
    l = torch.where(m > -INF, (lse - stand_in(m)).exp(), 0.0)
    return [m.to(dtype), l.to(dtype)]


def _sentinel(blocks, lowest=-1e30):
    blocks = iter(blocks)
    block = next(blocks)
    m = block.amax(-1).clamp(min=lowest)
    l = torch.exp2((block - m[..., None]) * LOG2_E).sum(-1)
    for block in blocks:
        m_new = torch.maximum(m, block.max(-1).values)
        l = l * torch.exp2((m - m_new) * LOG2_E)
        l += torch.exp2((block - m_new[..., None]) * LOG2_E).sum(-1)
        m = m_new
    return torch.where(m > lowest, m, -INF), l


def _lazily(blocks, slack=4.0):
    """Rescale only when the maximum has grown by more than the slack, and once at the end."""
    m = stale = l = None
    for block in blocks:
        top = block.amax(-1)
        if m is None:
            m = stale = torch.full_like(top, -INF)
            l = torch.zeros_like(top)
        m = torch.maximum(m, top)
        used = torch.where(m > stale + slack, m, stale)
        l = l * factor(stale, used) + terms(block, used)
        stale = used
    return m, l * torch.where(m > -INF, (stale - stand_in(m)).exp(), 0.0)


ONLINE_SOFTMAX = Answer(
    reference=online_softmax,
    wrong=(
        Wrong(
            "l_not_rescaled",
            _stream(factor=lambda m, m_new: torch.ones_like(m)),
            "l is never rescaled: its factor is 1. Either it is missing, or m was overwritten\n"
            "before the factor was made, so that both maxima in it are the new one.",
        ),
        Wrong(
            "factor_upside_down",
            _stream(factor=lambda m, m_new: (m_new - m.masked_fill(m == -INF, INF)).exp()),
            "The factor is exp(m_new - m), larger than 1. Under a larger maximum each\n"
            "exp(score - m) is smaller.",
        ),
        Wrong(
            "maximum_of_the_block",
            _stream(top=lambda m, block: block.amax(-1), factor=lambda m, n: (
                m - n).exp().nan_to_num(0.0, 1e30)),
            "m is the maximum of the last block, not of all that came. A block with smaller\n"
            "scores makes it fall again.",
        ),
        Wrong(
            "maximum_begins_with_zero",
            _stream(start=0.0),
            "m begins with 0. Where all scores are negative it stays 0, which no score was, and\n"
            "around -200 every exp is 0. A maximum over nothing is -inf.",
        ),
        Wrong(
            "finite_sentinel",
            _stream(start=-5e4),
            "m begins with a number such as -50000, which is meant as minus infinity. Scores of\n"
            "-60000 lie below it, and a row without scores ends with that number.",
        ),
        Wrong(
            "stand_in_kept",
            _stand_in_kept,
            "A maximum of -inf was replaced by 0, and the 0 was kept. After a block of -inf the\n"
            "scores around -150 can't beat it any more. The stand-in belongs in the exponent\n"
            "only.",
        ),
        Wrong(
            "nan_for_nothing",
            _stream(lambda m, n: (m - n).exp(), lambda b, n: (b - n[..., None]).exp().sum(-1)),
            "A block of -inf gives NaN: as long as no score has come, (-inf) - (-inf) is taken,\n"
            "and a NaN in l never goes away.",
        ),
        Wrong(
            "one_maximum_for_all_rows",
            _stream(top=lambda m, block: torch.maximum(m, block.amax().expand(m.shape))),
            "All rows of a block share one maximum. Rows that lie far below it get only zeros.",
        ),
        Wrong(
            "no_maximum",
            _no_maximum,
            "exp is taken of the scores as they are, and m is 0. exp(89) is beyond float32.",
        ),
        Wrong(
            "first_block_only",
            _first_only,
            "This is m and l of the first block. The others came after it.",
        ),
        Wrong(
            "last_block_only",
            _last_only,
            "This is m and l of the last block. What came before was dropped.",
        ),
        Wrong(
            "half_of_each_block",
            _stream(terms=lambda block, m: terms(block[..., : (block.shape[-1] + 1) // 2], m)),
            "Only the first half of each block is summed; the maximum has seen all of it.",
        ),
        Wrong(
            "short_blocks_padded_with_zeros",
            _stream(seen=lambda block, first: F.pad(
                block, (0, max(0, first.shape[-1] - block.shape[-1])))),
            "A short last block was filled up with zeros, and the zeros count as scores. Beside\n"
            "scores of -8 they are the largest of all. Take a short block as it is.",
        ),
        Wrong(
            "power_of_two",
            _stream(
                lambda m, n: torch.exp2(m - stand_in(n)),
                lambda b, n: torch.exp2(b - stand_in(n)[..., None]).sum(-1)),
            "The powers are of 2 and not of e. exp(x) = 2 to the power of what?",
        ),
        Wrong(
            "l_in_half_precision",
            _in_half,
            "l was kept in float16. It has three digits, and from 2048 on adding 1 changes\n"
            "nothing. Keep sums as wide as the scores, or wider.",
        ),
        Wrong(
            "logarithm_of_l",
            lambda blocks: (lambda m, l: (m, l.log()))(*online_softmax(blocks)),
            "The second result is the logarithm of l. Wanted is the sum itself.",
        ),
        Wrong(
            "log_sum_exp_in_place_of_l",
            lambda blocks: (lambda m, l: (m, m + l.log()))(*online_softmax(blocks)),
            "The second result is m + log(l), the log-sum-exp. Wanted is l, the sum of\n"
            "exp(score - m).",
        ),
        Wrong(
            "one_over_l",
            _divided,
            "The second result is 1 / l, what a softmax multiplies by. Wanted is l.",
        ),
        *slips.ONLINE_SOFTMAX,
        Wrong("all_at_once", _all_at_once, KEEPS_THE_ROW),
    ),
    right=(
        Right("score_by_score", _score_by_score),
        Right("by_logaddexp_in_float64", _by_logaddexp),
        Right("powers_of_two_with_a_handled_sentinel", _sentinel),
        Right("rescaled_lazily", _lazily),
        Right("in_pairs", lambda blocks: online_softmax(
            half for block in blocks for half in (block[..., :1], block[..., 1:]) if half.numel())),
    ),
)  # fmt: skip
