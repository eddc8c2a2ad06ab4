"""Lab 01: programs that compute a head, or something like it."""

from __future__ import annotations

import math

import torch

from ...attention.single_head import (
    attention_scores,
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
)


def with_scores(score):
    """Attention whose scores come from another rule; everything else is right."""
    return lambda q, k, v, mask=None: attention_weights(score(q, k), mask) @ v


def with_weights(weigh):
    """Attention whose weights come from another rule; everything else is right."""
    return lambda q, k, v, mask=None: weigh(attention_scores(q, k), mask) @ v


def dots(q, k):
    return q @ k.transpose(-2, -1)


def n_head(q):
    return q.shape[-3] if q.ndim > 2 else 1


def clean(weights, mask):
    """Zero weights where a mask leaves a row no key."""
    return weights if mask is None else weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def fill(value):
    def weigh(scores, mask):
        return (scores if mask is None else scores.masked_fill(~mask, value)).softmax(-1)

    return weigh


def across(dim):
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


def masked_after(scores, mask):
    weights = scores.softmax(-1)
    return weights if mask is None else weights * mask


def scores_times_mask(scores, mask):
    return clean((scores if mask is None else scores * mask).softmax(-1), mask)


def mask_added(scores, mask):
    return clean((scores if mask is None else scores + mask).softmax(-1), mask)


def inverted(scores, mask):
    return attention_weights(scores, None if mask is None else ~mask)


def always_causal(scores, mask):
    return attention_weights(scores, causal_mask(*scores.shape[-2:]))


def top_left(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    return attention_weights(scores, torch.ones_like(scores[0], dtype=torch.bool).tril())


def square_causal(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    return attention_weights(scores, causal_mask(scores.shape[-2]))


def inverted_with_nan(scores, mask):
    return fill(-math.inf)(scores, None if mask is None else ~mask)


def no_softmax(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, 0.0)


def columns_of_sums(scores, mask):
    """Exponentials over their sums, with the sums laid along the wrong axis where that runs."""
    raised = scores.exp() if mask is None else scores.exp() * mask
    return raised / raised.sum(-1)


def mask_always_there(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


def any_of_no_mask(scores, mask):
    blind = ~mask.any(dim=-1, keepdim=True)
    return scores.masked_fill(~mask, -1e9).softmax(-1).masked_fill(blind, 0.0)


def truth_of_a_mask(scores, mask):
    return (scores.masked_fill(~mask, -math.inf) if mask else scores).softmax(-1)


def mask_as_index(scores, mask):
    if mask is not None:
        scores[~mask] = -math.inf
    return scores.softmax(-1)


def mask_turned_over(scores, mask):
    return attention_weights(scores, None if mask is None else mask.mT)


def any_without_keepdim(scores, mask):
    """The rows' answers [..., seq_q] are laid along the keys, which runs where both are as many."""
    if mask is None:
        return scores.softmax(-1)
    return fill(-math.inf)(scores, mask).masked_fill(~mask.any(dim=-1), 0.0)


def nan_asked_without_keepdim(scores, mask):
    weights = fill(-math.inf)(scores, mask)
    return weights.masked_fill(weights.isnan().any(dim=-1), 0.0)


def product_with_any_without_keepdim(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    return fill(-math.inf)(scores, mask).nan_to_num() * mask.any(dim=-1)


def output_filled_without_keepdim(q, k, v, mask=None):
    output = fill(-math.inf)(attention_scores(q, k), mask) @ v
    return output if mask is None else output.masked_fill(~mask.any(dim=-1), 0.0)


def output_times_any_without_keepdim(q, k, v, mask=None):
    output = fill(-1e9)(attention_scores(q, k), mask) @ v
    return output if mask is None else output * mask.any(dim=-1)


def rows_as_index(scores, mask):
    weights = fill(-math.inf)(scores, mask)
    if mask is not None:
        weights[~mask.any(dim=-1)] = 0.0
    return weights


def causal_without_a_mask(scores, mask):
    return attention_weights(scores, causal_mask(*scores.shape[-2:]) if mask is None else mask)


def all_rows_zero(q, k, v, mask=None):
    output = scaled_dot_product_attention(q, k, v, mask)
    blind = mask is not None and not mask.any(dim=-1).all()
    return torch.zeros_like(output) if blind else output


def mask_reshaped(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    turned = mask.reshape(*mask.shape[:-2], mask.shape[-1], mask.shape[-2])
    return attention_weights(scores, turned)


def all_for_any(scores, mask):
    weights = attention_weights(scores, mask)
    return weights if mask is None else weights.masked_fill(~mask.all(-1, keepdim=True), 0.0)


def mended_in_place(scores, mask):
    weights = fill(-math.inf)(scores, mask)
    weights[weights.isnan()] = 0.0
    return weights


def zero_times_infinity(scores, mask):
    return (scores if mask is None else scores + ~mask * -math.inf).softmax(-1)


def all_axes_turned(tensor):
    """What .T does to any tensor: its axes in reverse order."""
    return tensor.permute(*range(tensor.ndim - 1, -1, -1))


def scale_by_value_width(q, k, v, mask=None):
    return attention_weights(dots(q, k) / math.sqrt(v.shape[-1]), mask) @ v


def values_first(q, k, v, mask=None):
    return v @ attention_weights(attention_scores(q, k), mask)


def element_by_element(q, k, v, mask=None):
    return attention_weights(attention_scores(q, k), mask) * v


def nan_in_gradient(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -math.inf)
    return (scores + bias).softmax(-1).nan_to_num()


def nan_hidden_in_output(q, k, v, mask=None):
    return (fill(-math.inf)(attention_scores(q, k), mask) @ v).nan_to_num()


def softmax_before_scale(q, k, v, mask=None):
    return attention_weights(dots(q, k), mask) @ v / math.sqrt(q.shape[-1])


def weights_only(q, k, v, mask=None):
    return attention_weights(attention_scores(q, k), mask)


def values_are_keys(q, k, v, mask=None):
    return scaled_dot_product_attention(q, k, k, mask)


def weights_transposed(q, k, v, mask=None):
    weights = attention_weights(attention_scores(q, k), mask)
    return weights.transpose(-2, -1) @ v


def no_grad(q, k, v, mask=None):
    return scaled_dot_product_attention(q.detach(), k.detach(), v.detach(), mask)


def unshifted_exponentials(scores, mask):
    raised = scores.exp() if mask is None else scores.exp() * mask
    return raised / raised.sum(-1, keepdim=True).clamp(min=1e-30)


def finite_fill_then_zero(q, k, v, mask=None, *, dropout_p=0.0, scale=None):
    return clean(fill(-1e9)(attention_scores(q, k), mask), mask) @ v


def nan_to_num_after_fill(scores, mask):
    return fill(-math.inf)(scores, mask).nan_to_num(0.0)


def loops(q, k, v, mask=None):
    lead, seq_q, seq_k = q.shape[:-2], q.shape[-2], k.shape[-2]
    rows = []
    for i in range(seq_q):
        score = (q[..., i : i + 1, :] * k).sum(-1) / q.shape[-1] ** 0.5  # [..., seq_k]
        sees = torch.ones(*lead, seq_q, seq_k, dtype=torch.bool) if mask is None else mask
        sees = sees.expand(*lead, seq_q, seq_k)[..., i, :]
        rows.append((attention_weights(score, sees)[..., None] * v).sum(-2))
    return torch.stack(rows, dim=-2)


def double_inside(q: torch.Tensor, k, v, mask: torch.Tensor | None = None) -> torch.Tensor:
    weights = attention_weights(attention_scores(q.double(), k.double()), mask)
    return (weights @ v.double()).type_as(q)


def exponentials_times_mask(q, k, v, mask=None):
    """Exponentials below the row's maximum, closed ones multiplied by 0, over their sum."""
    scores = attention_scores(q, k)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    highest = scores.max(-1, keepdim=True).values.detach()
    raised = (scores - highest).exp()
    if mask is not None:
        raised = raised * mask
    return (raised @ v) / raised.sum(-1, keepdim=True).clamp(min=1e-30)
