"""Answers to fused_multi_head that go wrong with the mask."""

from __future__ import annotations

import math

import torch

from ..kit import Wrong
from .all_at_once_parts import attend, program, with_mask


def _zero_after_softmax(q, k, v, mask, divisor):
    weights = (q @ k.mT / divisor).softmax(dim=-1)
    return (weights if mask is None else weights.masked_fill(~mask, 0.0)) @ v


def _always_causal(q, k, v, mask, divisor):
    seq = q.shape[-2]
    return attend(q, k, v, torch.ones(seq, seq, dtype=torch.bool).tril(), divisor)


def _filled_by_the_mask(scores, mask):
    scores = scores.clone()
    if mask is not None:
        scores[~mask] = -math.inf
    return scores


MASK_SLIPS = (
    Wrong(
        "mask_ignored",
        with_mask(lambda scores, mask: scores),
        "The mask changes nothing: masked keys still get weight. It is the sixth argument.",
    ),
    Wrong(
        "mask_inverted",
        with_mask(lambda s, mask: s if mask is None else s.masked_fill(mask, -math.inf)),
        "The mask is read the wrong way round. True means: may attend.",
    ),
    Wrong(
        "mask_inverted_with_a_finite_fill",
        with_mask(lambda s, mask: s if mask is None else s.masked_fill(mask, -1e9)),
        "The mask is read the wrong way round: the keys that may be attended to are the ones\n"
        "filled. True means: may attend.",
    ),
    Wrong(
        "masked_scores_are_zero",
        with_mask(lambda s, mask: s if mask is None else s * mask),
        "Masked scores are set to 0, and exp(0) = 1: such keys still get weight. What must a\n"
        "score be so that its exponential is 0?",
    ),
    Wrong(
        "minus_infinity_times_zero",
        with_mask(lambda s, mask: s if mask is None else s + ~mask * -math.inf),
        "The mask is multiplied by -inf and added. Where a key may be seen that is 0 times -inf,\n"
        "which is NaN. Put -inf in where it belongs, and leave the other scores alone.",
    ),
    Wrong(
        "mask_as_an_index",
        with_mask(_filled_by_the_mask),
        "A mask between the brackets must have the shape of the scores, and this one has no axis\n"
        "for batch and heads. masked_fill stretches it, and so does torch.where.",
    ),
    Wrong(
        "asks_the_mask_for_one_answer",
        with_mask(lambda s, mask: s.masked_fill(~mask, -math.inf) if mask else s),
        "`if mask` asks a table of True and False for one answer. What you want to know is\n"
        "whether a mask was given at all: is it None?",
    ),
    Wrong(
        "mask_added_as_a_number",
        with_mask(lambda s, mask: s if mask is None else s + mask.to(s.dtype)),
        "The mask is added to the scores as 0 and 1. That favours the allowed keys a little and\n"
        "forbids none.",
    ),
    Wrong(
        "mask_after_softmax",
        program(attend=_zero_after_softmax),
        "The mask comes after the softmax: the masked weights are gone, and what is left no\n"
        "longer sums to 1. Mask the scores.",
    ),
    Wrong(
        "always_causal",
        program(attend=_always_causal),
        "A causal mask is applied whatever is given. Without a mask every query may see every\n"
        "key, and a given mask need not be causal.",
    ),
)
