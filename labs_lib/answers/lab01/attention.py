"""Lab 01: scaled_dot_product_attention."""

from __future__ import annotations

import functools
import math

import torch

from ...attention.single_head import (
    attention_scores,
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
)
from ..kit import Answer, Right, Wrong


def _with_scores(score):
    """Attention whose scores come from another rule; everything else is right."""
    return lambda q, k, v, mask=None: attention_weights(score(q, k), mask) @ v


def _with_weights(weigh):
    """Attention whose weights come from another rule; everything else is right."""
    return lambda q, k, v, mask=None: weigh(attention_scores(q, k), mask) @ v


def _dots(q, k):
    return q @ k.transpose(-2, -1)


def _n_head(q):
    return q.shape[-3] if q.ndim > 2 else 1


def _clean(weights, mask):
    """Zero weights where a mask leaves a row no key."""
    return weights if mask is None else weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def _fill(value):
    def weigh(scores, mask):
        return (scores if mask is None else scores.masked_fill(~mask, value)).softmax(-1)

    return weigh


def _across(dim):
    """Softmax along another axis, with everything else in order."""

    def weigh(scores, mask):
        if scores.ndim <= -dim - 1:
            dim_here = -1
        else:
            dim_here = dim
        closed = scores if mask is None else scores.masked_fill(~mask, -1e30)
        weights = closed.softmax(dim_here)
        return weights if mask is None else weights.masked_fill(~mask, 0.0)

    return weigh


def _masked_after(scores, mask):
    weights = scores.softmax(-1)
    return weights if mask is None else weights * mask


def _scores_times_mask(scores, mask):
    return _clean((scores if mask is None else scores * mask).softmax(-1), mask)


def _mask_added(scores, mask):
    return _clean((scores if mask is None else scores + mask).softmax(-1), mask)


def _inverted(scores, mask):
    return attention_weights(scores, None if mask is None else ~mask)


def _always_causal(scores, mask):
    return attention_weights(scores, causal_mask(*scores.shape[-2:]))


def _top_left(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    return attention_weights(scores, torch.ones_like(scores[0], dtype=torch.bool).tril())


def _nan_in_gradient(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -math.inf)
    return (scores + bias).softmax(-1).nan_to_num()


def _nan_hidden_in_output(q, k, v, mask=None):
    return (_fill(-math.inf)(attention_scores(q, k), mask) @ v).nan_to_num()


def _softmax_before_scale(q, k, v, mask=None):
    return attention_weights(_dots(q, k), mask) @ v / math.sqrt(q.shape[-1])


def _weights_only(q, k, v, mask=None):
    return attention_weights(attention_scores(q, k), mask)


def _values_are_keys(q, k, v, mask=None):
    return scaled_dot_product_attention(q, k, k, mask)


def _queries_and_keys_swapped(q, k, v, mask=None):
    weights = attention_weights(attention_scores(q, k), mask)
    return weights.transpose(-2, -1) @ v


def _no_grad(q, k, v, mask=None):
    return scaled_dot_product_attention(q.detach(), k.detach(), v.detach(), mask)


def _unshifted_exponentials(scores, mask):
    raised = scores.exp() if mask is None else scores.exp() * mask
    return raised / raised.sum(-1, keepdim=True).clamp(min=1e-30)


def _finite_fill_then_zero(q, k, v, mask=None, *, dropout_p=0.0, scale=None):
    return _clean(_fill(-1e9)(attention_scores(q, k), mask), mask) @ v


def _nan_to_num_after_fill(scores, mask):
    return _fill(-math.inf)(scores, mask).nan_to_num(0.0)


def _loops(q, k, v, mask=None):
    lead, seq_q, seq_k = q.shape[:-2], q.shape[-2], k.shape[-2]
    rows = []
    for i in range(seq_q):
        score = (q[..., i : i + 1, :] * k).sum(-1) / q.shape[-1] ** 0.5  # [..., T_k]
        sees = torch.ones(*lead, seq_q, seq_k, dtype=torch.bool) if mask is None else mask
        sees = sees.expand(*lead, seq_q, seq_k)[..., i, :]
        rows.append((attention_weights(score, sees)[..., None] * v).sum(-2))
    return torch.stack(rows, dim=-2)


def _double_inside(q: torch.Tensor, k, v, mask: torch.Tensor | None = None) -> torch.Tensor:
    weights = attention_weights(attention_scores(q.double(), k.double()), mask)
    return (weights @ v.double()).type_as(q)


def _decorated(function):
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapped


def _keys_at_a_time(q, k, v, mask=None):
    """One pass over the keys with a running maximum."""
    scores = attention_scores(q, k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    highest = scores.max(-1, keepdim=True).values.detach()
    raised = (scores - highest).exp()
    if mask is not None:
        raised = raised * mask
    return (raised @ v) / raised.sum(-1, keepdim=True).clamp(min=1e-30)


ATTENTION = Answer(
    reference=scaled_dot_product_attention,
    wrong=(
        Wrong(
            "no_scale",
            _with_scores(_dots),
            "The scale is missing: this is what you get with the bare dot products. The rows come\n"
            "out too sharp.",
        ),
        Wrong(
            "scale_by_d_model",
            _with_scores(lambda q, k: _dots(q, k) / math.sqrt(_n_head(q) * q.shape[-1])),
            "This is what you get when the scale is 1/√d_model; a head only sees head_dim numbers.",
        ),
        Wrong(
            "scale_without_root",
            _with_scores(lambda q, k: _dots(q, k) / q.shape[-1]),
            "The scores are divided by head_dim without the root, or scaled twice. The rows come\n"
            "out too even.",
        ),
        Wrong(
            "scale_after_softmax",
            _softmax_before_scale,
            "The scale comes after the softmax: the rows are as sharp as without it, and the\n"
            "output is too small. Look at the order of the steps.",
        ),
        Wrong(
            "softmax_over_queries",
            _with_weights(_across(-2)),
            "The softmax runs down the queries, so that each column adds up to 1. It is each\n"
            "query that has 100 percent to give; look at `dim`.",
        ),
        Wrong(
            "softmax_over_heads",
            _with_weights(_across(-3)),
            "The softmax runs across the heads. Each head has its own rows, and each row its own\n"
            "100 percent; look at `dim`, which counts from the front or from the back.",
        ),
        Wrong(
            "mask_ignored",
            lambda q, k, v, mask=None: scaled_dot_product_attention(q, k, v),
            "The mask takes no part: this is the output without one.",
        ),
        Wrong(
            "mask_after_softmax",
            _with_weights(_masked_after),
            "The mask comes after the softmax: what is left of a row adds up to less than 1.\n"
            "Close the keys before the row is shared out.",
        ),
        Wrong(
            "scores_times_mask",
            _with_weights(_scores_times_mask),
            "Masked scores are 0 here (or nearly 0, as with 1e-9). A score of 0 still earns\n"
            "e⁰ = 1; what must a score be for its weight to be 0?",
        ),
        Wrong(
            "mask_added",
            _with_weights(_mask_added),
            "The bool mask is added to the scores: True counts as 1, which favours the open keys\n"
            "a little and closes none.",
        ),
        Wrong(
            "fill_too_small",
            _with_weights(lambda s, m: _clean(_fill(-10.0)(s, m), m)),
            "The fill is negative but not far enough: real scores go as low as that, so closed\n"
            "keys still leak through. Take -inf, or a number no score can reach.",
        ),
        Wrong(
            "mask_inverted",
            _with_weights(_inverted),
            "The mask is read the other way round: this looks only where it may not. True means:\n"
            "may attend.",
        ),
        Wrong(
            "always_causal",
            _with_weights(_always_causal),
            "This is causal whatever mask comes in. The mask is an argument; without it every\n"
            "query sees every key.",
        ),
        Wrong(
            "top_left_causal",
            _with_weights(_top_left),
            "Wherever a mask comes in, a causal one that starts at the top left is used instead\n"
            "(as torch's is_causal does). Use the mask that is given.",
        ),
        Wrong(
            "empty_row_is_nan",
            _with_weights(_fill(-math.inf)),
            "Right, except for a query that may see nothing: a row of -inf alone gives 0/0, so\n"
            "NaN. Such a query gets zeros here.",
        ),
        Wrong(
            "empty_row_is_a_mean",
            _with_weights(_fill(-1e9)),
            "Right, except for a query that may see nothing: its scores are all equally low, and\n"
            "the softmax then spreads evenly over keys that are all closed. It should get zeros.",
        ),
        Wrong(
            "nan_in_gradient",
            _with_weights(_nan_in_gradient),
            "The output is right, but in the gradient there is NaN: a row of -inf alone went\n"
            "through the softmax and was repaired afterwards. Keep it from getting there.",
        ),
        Wrong(
            "nan_hidden_in_output",
            _nan_hidden_in_output,
            "NaN is swept from the output, but the weights still hold it, so the gradient of v is\n"
            "NaN. Mend the row of weights, not what comes after it.",
        ),
        Wrong(
            "weights_only",
            _weights_only,
            "These are the weights. The output is one step further: the mean of the values,\n"
            "weighted by them.",
        ),
        Wrong(
            "values_are_keys",
            _values_are_keys,
            "The weights multiply k where they should multiply v. It goes unnoticed only where\n"
            "the two are the same tensor.",
        ),
        Wrong(
            "weights_transposed",
            _queries_and_keys_swapped,
            "The weights are transposed before they meet v: each output collects by whom it is\n"
            "seen, not what it sees.",
        ),
        Wrong(
            "gradient_lost",
            _no_grad,
            "The values are right but the gradient is lost: something was detached on the way.",
        ),
        Wrong(
            "always_float32",
            lambda q, k, v, mask=None: scaled_dot_product_attention(q, k, v, mask).float(),
            "The output is float32 whatever comes in; it should have the dtype of v.",
        ),
    ),
    right=(
        Right("loops", _loops),
        Right("double_inside", _double_inside),
        Right("finite_fill_then_zero", _finite_fill_then_zero),
        Right("nan_to_num_of_filled_weights", _with_weights(_nan_to_num_after_fill)),
        Right("exponentials_times_mask", _keys_at_a_time),
        Right("plain_exponentials", _with_weights(_unshifted_exponentials)),
        Right("decorated", _decorated(scaled_dot_product_attention)),
        Right("partial", functools.partial(scaled_dot_product_attention)),
        Right(
            "einsum",
            lambda q, k, v, mask=None: torch.einsum(
                "...ij,...jd->...id", attention_weights(attention_scores(q, k), mask), v
            ),
        ),
    ),
)

ANSWERS = {"lab01.scaled_dot_product_attention": ATTENTION}
