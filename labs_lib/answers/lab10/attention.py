"""attention_one_pass: its reference, and how students get it wrong."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from labs_lib.attention.online_softmax import attention_one_pass
from labs_lib.exercises.lab10 import MAKES_THE_ROW

from ..kit import Answer, Wrong
from .attention_parts import changed, hide
from .attention_right import RIGHT
from .attention_slips import SLIPS
from .parts import INF, MAXIMUM_OVER_HIDDEN, finish


def _one(m, m_new, power):
    return torch.ones_like(m)


def _inverted(m, m_new, power):
    return power(m_new - m.masked_fill(m == -INF, INF))


def _maximum_of_the_tile(m, scores, raw):
    return torch.maximum(m, scores.amax((-2, -1), keepdim=True)[..., 0].expand(m.shape))


def _padded(k, v):
    short = -k.shape[-2] % 16
    return F.pad(k, (0, 0, 0, short)), F.pad(v, (0, 0, 0, short))


def _turned(k, v):
    return k, v.mT if v.shape[-1] == v.shape[-2] else v


def _over_the_queries(q, k, v, mask=None, block=16):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
    return scores.softmax(-2) @ v, scores.logsumexp(-1)


def _whole_rows(q, k, v, mask=None, block=16):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores if mask is None else hide(scores, mask)
    lse = scores.logsumexp(-1)
    p = (
        torch.where(lse > -INF, 1.0, 0.0)[..., None]
        * (scores - lse.masked_fill(lse == -INF, 0.0)[..., None]).exp()
    )
    return p @ v, lse


def _block_by_block(q, k, v, mask=None, block=16):
    """Softmax of each block on its own, and the mean of the outputs."""
    starts = range(0, k.shape[-2], block)
    parts = []
    for start in starts:
        own = slice(start, start + block)
        seen = None if mask is None else mask[..., own]
        parts.append(attention_one_pass(q, k[..., own, :], v[..., own, :], seen, block))
    out = torch.stack([part[0] for part in parts]).mean(0)
    return out, torch.stack([part[1] for part in parts]).logsumexp(0)


def _even_for_nobody(q, k, v, mask=None, block=16):
    return changed(hide=lambda s, visible: s.masked_fill(~visible, -1e9))(q, k, v, mask, block)


def _scale(factor):
    return changed(scale=factor)


WRONG = (
    Wrong(
        "o_not_rescaled",
        changed(factor_o=_one),
        "o is never rescaled, only l is. When a larger maximum comes, what o has collected weighs\n"
        "too much. o is a sum of the same exp(score - m).",
    ),
    Wrong(
        "l_not_rescaled",
        changed(factor_l=_one, factor_o=lambda m, n, power: power(
            m - n.masked_fill(n == -INF, 0.0))),
        "l is never rescaled, only o is. Both are sums of exp(score - m).",
    ),
    Wrong(
        "nothing_rescaled",
        changed(factor_l=_one),
        "Nothing is rescaled: the factor is 1. Either it is missing, or m was overwritten before\n"
        "the factor was made, so that both maxima in it are the new one.",
    ),
    Wrong(
        "factor_upside_down",
        changed(factor_l=_inverted),
        "The factor is exp(m_new - m), larger than 1. Under a larger maximum each exp(score - m)\n"
        "is smaller.",
    ),
    Wrong(
        "divided_in_each_block",
        changed(after=lambda l, o: (l, o / torch.where(l > 0, l, 1.0)[..., None])),
        "o is divided by l after each block, and the next block adds to a mean as if it were a\n"
        "sum. Divide once, at the end.",
    ),
    Wrong(
        "never_divided",
        changed(finish=lambda m, l, o: (o, m + l.log())),
        "o comes out as it was summed. The division by l at the end is missing.",
    ),
    Wrong(
        "mean_of_the_blocks",
        _block_by_block,
        "Each block got a softmax of its own, and the outputs were averaged. A block with larger\n"
        "scores has to count for more.",
    ),
    Wrong(
        "maximum_begins_with_zero",
        changed(start=0.0, below=lambda m: m),
        "m begins with 0. Where all scores are around -200, every exp becomes 0 and nothing is\n"
        "left to divide by. A maximum over nothing is -inf.",
    ),
    Wrong(
        "finite_sentinel",
        changed(start=-5e4, below=lambda m: m),
        "m begins with a number such as -50000, which is meant as minus infinity. Scores of\n"
        "-60000 lie below it.",
    ),
    Wrong(
        "nan_for_a_hidden_block",
        changed(below=lambda m: m, factor_l=lambda m, n, power: power(m - n)),
        "As long as a query has seen no key, m is -inf, and (-inf) - (-inf) is NaN. One NaN in o\n"
        "stays there to the end. A stand-in for m in the exponent keeps it out.",
    ),
    Wrong(
        "stand_in_kept",
        changed(top=lambda m, s, raw: torch.maximum(m, s.amax(-1).masked_fill(
            s.amax(-1) == -INF, 0.0))),
        "A maximum of -inf was replaced by 0, and the 0 was kept. After a block of hidden keys,\n"
        "scores around -150 can't beat it. The stand-in belongs in the exponent only.",
    ),
    Wrong(
        "hidden_keys_at_minus_ten_thousand",
        changed(hide=lambda s, visible: s.masked_fill(~visible, -1e4)),
        "Hidden keys get the score -10000. Beside real scores of -20000 that is the largest.\n"
        "Hidden is -inf.",
    ),
    Wrong(
        "hidden_keys_at_zero",
        changed(hide=lambda s, visible: s * visible),
        "Hidden scores are set to 0, and exp(0) is 1: beside scores of -9 the hidden keys win.\n"
        "Hidden is -inf, before the maximum is taken.",
    ),
    Wrong(
        "maximum_over_hidden_keys",
        changed(looked_at=lambda scores, unhidden: unhidden),
        MAXIMUM_OVER_HIDDEN,
    ),
    Wrong(
        "even_for_nobody",
        _even_for_nobody,
        "A query that may attend to nothing gets the mean of all values, since its hidden scores\n"
        "are all the same large negative number. It has to get zeros. The other queries of this\n"
        "case are right.",
    ),
    Wrong(
        "nan_for_nobody",
        changed(finish=lambda m, l, o: (o / l[..., None], m + l.log())),
        "A query that may attend to nothing gives 0/0 at the end. Take care of l = 0 before the\n"
        "division. The other queries of this case are right.",
    ),
    Wrong(
        "lse_zero_for_nobody",
        changed(finish=lambda m, l, o: (
            finish(m, l, o)[0], (m + l.log()).masked_fill(l == 0, 0.0))),
        "The log-sum-exp of a query that sees nothing is 0 here. The sum is 0, and its logarithm\n"
        "is -inf. All else in this case is right.",
    ),
    Wrong(
        "mask_ignored",
        changed(hide=lambda s, visible: s),
        "The mask changes nothing: hidden keys still get weight.",
    ),
    Wrong(
        "mask_upside_down",
        changed(hide=lambda s, visible: s.masked_fill(visible, -INF)),
        "The mask is read the wrong way round. True means: may attend.",
    ),
    Wrong(
        "mask_of_the_first_block",
        changed(part=lambda mask, start, block: mask[..., :block]),
        "Every block gets the first columns of the mask. A block that begins at key `start` has\n"
        "the columns from `start` on.",
    ),
    Wrong(
        "no_scale",
        _scale(lambda head_dim: 1.0),
        "The scores are not divided by the root of head_dim.",
    ),
    Wrong(
        "scale_by_head_dim",
        _scale(lambda head_dim: 1 / head_dim),
        "The scores are divided by head_dim, and not by its root.",
    ),
    Wrong(
        "multiplied_by_the_root",
        _scale(math.sqrt),
        "The scores are multiplied by the root of head_dim, where they should be divided.",
    ),
    Wrong(
        "maximum_of_unscaled_scores",
        changed(top=lambda m, s, raw: torch.maximum(m, raw.amax(-1))),
        "m is the maximum of the scores before they are scaled, so it lies far above those that\n"
        "are exponentiated. With large scores every exp becomes 0.",
    ),
    Wrong(
        "one_maximum_for_a_tile",
        changed(top=_maximum_of_the_tile),
        "All queries share one maximum. A query whose scores lie 300 below it gets only zeros.",
    ),
    Wrong(
        "no_maximum",
        changed(start=0.0, top=lambda m, s, raw: m),
        "Nothing is subtracted: exp(89) is beyond float32. The running maximum keeps exp in\n"
        "range.",
    ),
    Wrong(
        "power_of_two",
        changed(power=torch.exp2),
        "The powers are of 2 and not of e. exp(x) = 2 to the power of what?",
    ),
    Wrong(
        "half_of_each_block",
        changed(total=lambda p: p[..., : (p.shape[-1] + 1) // 2].sum(-1)),
        "l sums only the first half of each block, as when half of the threads of a group take\n"
        "part.",
    ),
    Wrong(
        "padded_keys_count",
        changed(block=_padded),
        "A short last block was filled up with keys of zeros, and they count: their score is 0.\n"
        "Take a short block as it is, or hide what was added.",
    ),
    Wrong(
        "short_block_dropped",
        changed(starts=lambda n, block: range(0, n // block * block, block)),
        "Keys behind the last full block are never read. The last block may be short.",
    ),
    Wrong(
        "first_block_only",
        changed(starts=lambda n, block: range(0, min(n, block), block)),
        "Only the first block of keys is read.",
    ),
    Wrong(
        "blocks_overlap",
        changed(starts=lambda n, block: range(0, n, max(1, block - 1))),
        "Blocks overlap by one key, which is then counted twice.",
    ),
    Wrong(
        "values_turned",
        changed(block=_turned),
        "Where a block is as long as a value is wide, the block of values is read the wrong way\n"
        "round. Its rows are keys.",
    ),
    Wrong(
        "over_the_queries",
        _over_the_queries,
        "The weights of each key add up to 1, over the queries. It is a query's row that adds up\n"
        "to 1.",
    ),
    Wrong(
        "lse_without_logarithm",
        changed(finish=lambda m, l, o: (finish(m, l, o)[0], m + l)),
        "The second result is m + l. The logarithm of l belongs to m.",
    ),
    Wrong(
        "lse_without_the_maximum",
        changed(finish=lambda m, l, o: (finish(m, l, o)[0], l.log())),
        "The second result is log(l). The m that was subtracted has to come back.",
    ),
    Wrong(
        "maximum_in_place_of_lse",
        changed(finish=lambda m, l, o: (finish(m, l, o)[0], m)),
        "The second result is m. The log-sum-exp is m + log(l).",
    ),
    Wrong(
        "l_in_half_precision",
        changed(total=lambda p: p.sum(-1).half().to(p.dtype)),
        "l was kept in float16, which has three digits. Keep sums as wide as the scores.",
    ),
    Wrong(
        "only_the_output",
        lambda q, k, v, mask=None, block=16: attention_one_pass(q, k, v, mask, block)[0],
        "Only the output came back. Wanted are two: the output and the log-sum-exp.",
    ),
    Wrong(
        "zeros",
        lambda q, k, v, mask=None, block=16: (
            q[..., :1] * 0 * v.sum() + q.new_zeros(*q.shape[:-1], v.shape[-1]), q.sum(-1) * 0),
        "Everything is 0.",
    ),
    Wrong(
        "mean_of_the_values",
        lambda q, k, v, mask=None, block=16: attention_one_pass(q * 0, k, v, mask, block),
        "All keys that may be seen get equal weight: the scores are not used.",
    ),
    *SLIPS,
    Wrong("whole_rows", _whole_rows, MAKES_THE_ROW),
)  # fmt: skip

ATTENTION_ONE_PASS = Answer(attention_one_pass, WRONG, RIGHT)
