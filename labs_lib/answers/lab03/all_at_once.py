"""Answers to fused_multi_head: all heads without a loop."""

from __future__ import annotations

import math

import torch

from labs_lib.attention import fused

from ...exercises.lab03 import LOOP_REMAINS
from ..kit import Answer, Wrong
from .all_at_once_masks import MASK_SLIPS
from .all_at_once_parts import attend, merge, program, softmax_over, split
from .all_at_once_right import RIGHT


def _direct_split(x, n_head):
    batch, seq, width = x.shape
    return x.reshape(batch, n_head, seq, width // n_head)


def _direct_merge(heads):
    batch, n_head, seq, head_dim = heads.shape
    return heads.reshape(batch, seq, n_head * head_dim)


def _dealt_out_split(x, n_head):
    return x.unflatten(-1, (-1, n_head)).movedim(-1, 1)


def _pieces_of_n_head(x, n_head):
    return x.unflatten(-1, (-1, n_head)).transpose(1, 2)


def _head_dim_from_d_in(x, W_Q, W_K, W_V, n_head, mask=None):
    batch, seq, d_in = x.shape
    head_dim = d_in // n_head
    wide = (x @ W for W in (W_Q, W_K, W_V))
    q, k, v = (w.view(batch, seq, n_head, head_dim).transpose(1, 2) for w in wide)
    return merge(attend(q, k, v, mask, math.sqrt(head_dim)))


def _merged_to_d_in(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (split(x @ W, n_head) for W in (W_Q, W_K, W_V))
    return attend(q, k, v, mask, math.sqrt(q.shape[-1])).transpose(1, 2).reshape(x.shape)


def _loop_over_heads(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (split(x @ W, n_head) for W in (W_Q, W_K, W_V))
    full = torch.ones(1, 1, 1, 1, dtype=torch.bool) if mask is None else mask
    full = full.expand(x.shape[0], n_head, x.shape[1], x.shape[1])
    divisor = math.sqrt(q.shape[-1])
    answers = [attend(q[:, h], k[:, h], v[:, h], full[:, h], divisor) for h in range(n_head)]
    return torch.cat(answers, dim=-1)


def _loop_with_the_whole_mask(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (split(x @ W, n_head) for W in (W_Q, W_K, W_V))
    divisor = math.sqrt(q.shape[-1])
    answers = [attend(q[:, h], k[:, h], v[:, h], mask, divisor) for h in range(n_head)]
    return torch.cat(answers, dim=-1)


def _heads_attend_to_heads(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = ((x @ W).unflatten(-1, (n_head, -1)) for W in (W_Q, W_K, W_V))
    return attend(q, k, v, None, math.sqrt(q.shape[-1])).flatten(2)


def _all_axes_of_k(q, k, v, mask, divisor):
    return attend(q, k.permute(3, 2, 1, 0).mT, v, mask, divisor)


def _tokens_and_heads_of_k(q, k, v, mask, divisor):
    return attend(q, k.transpose(1, 2).mT, v, mask, divisor)


def _cuts_the_token(x, W_Q, W_K, W_V, n_head, mask=None):
    q, k, v = (split(x, n_head) @ W for W in (W_Q, W_K, W_V))
    return merge(attend(q, k, v, mask, math.sqrt(q.shape[-1])))


def _no_softmax(q, k, v, mask, divisor):
    scores = q @ k.mT / divisor
    return (scores if mask is None else scores.masked_fill(~mask, 0.0)) @ v


_MIXED_IN_THE_SPLIT = (
    "The shape is right, but reshaping straight to [batch, n_head, seq, head_dim] mixes\n"
    "tokens into heads: a reshape keeps the order of the numbers, and in x @ W the heads of\n"
    "one token stand together. Cut the width first and swap the axes in a step of its own."
)
_MIXED_IN_THE_MERGE = (
    "The shape is right, but reshaping [batch, n_head, seq, head_dim] straight to [batch,\n"
    "seq, width] mixes tokens: a reshape keeps the order of the numbers, and here the tokens\n"
    "of one head stand together. Swap the axes first and join the width in a step of its own."
)
_MIXED_BOTH_WAYS = (
    "The shape is right, but a direct reshape, there and back (also view(batch * n_head,\n"
    "...)), mixes tokens into heads: a reshape keeps the order of the numbers, and in x @ W\n"
    "the heads of one token stand together. Swap the axes of head and token in a step of its\n"
    "own, both ways."
)

_NOT_OF_D_IN = (
    "head_dim is made of the last axis of x, as d_in // n_head. d_in is how many numbers come\n"
    "in, and it need not be n_head * head_dim: look at what comes out, at x @ W_Q."
)
_OTHER_AXES_OF_K = (
    "Other axes of k than the last two change places: .T turns over all four, transpose(1, 2)\n"
    "swaps heads and tokens. Count the two axes from the back."
)
_PIECES = (
    "The width was cut into pieces of n_head numbers, [batch, seq, head_dim, n_head]. n_head is\n"
    "how many pieces there are, not how long each is: it is named before head_dim."
)

WRONG = (
    Wrong("loop_over_heads", _loop_over_heads, LOOP_REMAINS),
    Wrong(
        "scale_by_d_model",
        program(scale=lambda x, q, n_head: math.sqrt(x.shape[-1])),
        "The scores are divided by the root of d_in. A head's query and key have only head_dim\n"
        "numbers, and it is their count that makes the scores grow.",
    ),
    Wrong(
        "scale_by_the_whole_width",
        program(scale=lambda x, q, n_head: math.sqrt(q.shape[-1] * n_head)),
        "The scores are divided by the root of n_head * head_dim, as if one head were that\n"
        "wide. A head's query and key have only head_dim numbers.",
    ),
    Wrong(
        "no_scale",
        program(scale=lambda x, q, n_head: 1.0),
        "The scores are not divided at all. Look at lab 01: by what do they grow with head_dim?",
    ),
    Wrong(
        "scale_by_head_dim",
        program(scale=lambda x, q, n_head: q.shape[-1]),
        "The scores are divided by head_dim. Their variance grows with head_dim; what is the\n"
        "standard deviation then?",
    ),
    Wrong(
        "multiplied_by_the_scale",
        program(scale=lambda x, q, n_head: 1 / math.sqrt(q.shape[-1])),
        "The scores are multiplied by the root of head_dim. The scale is there to keep them\n"
        "small: divide.",
    ),
    Wrong(
        "scale_of_the_example",
        program(scale=lambda x, q, n_head: 8),
        "The scores are divided by 8. That is the root of 64, so it is right for heads of 64\n"
        "numbers and for no others: take the length of a head's query.",
    ),
    Wrong(
        "scale_by_n_head",
        program(scale=lambda x, q, n_head: math.sqrt(n_head)),
        "The scores are divided by the root of n_head. It is the length of a head's query that\n"
        "makes scores grow; look at its last axis.",
    ),
    Wrong("head_dim_from_d_in", _head_dim_from_d_in, _NOT_OF_D_IN),
    Wrong(
        "merged_to_d_in",
        _merged_to_d_in,
        "The heads are joined to as many numbers as a token of x has, d_in. Side by side they\n"
        "have n_head * head_dim, as x @ W_Q has, and that may be another number.",
    ),
    Wrong(
        "scale_by_d_in_over_n_head",
        program(scale=lambda x, q, n_head: math.sqrt(x.shape[-1] // n_head)),
        _NOT_OF_D_IN,
    ),
    Wrong(
        "scale_by_d_in_over_n_head_in_fractions",
        program(scale=lambda x, q, n_head: math.sqrt(x.shape[-1] / n_head)),
        _NOT_OF_D_IN,
    ),
    Wrong(
        "scale_by_seq",
        program(scale=lambda x, q, n_head: math.sqrt(q.shape[-2])),
        "The scores are divided by the root of the number of tokens. It is the length of a\n"
        "head's query that makes scores grow; look at its last axis.",
    ),
    Wrong(
        "weights_turned_over",
        program(weights=lambda *W: tuple(w.mT for w in W)),
        "The matrices were turned over before the product. They are [d_in, n_head * head_dim] and\n"
        "used as x @ W; where both axes are equally long, the shape doesn't show it.",
    ),
    Wrong(
        "keys_turned_with_T",
        program(attend=_all_axes_of_k),
        _OTHER_AXES_OF_K,
    ),
    Wrong(
        "tokens_and_heads_of_k_swapped",
        program(attend=_tokens_and_heads_of_k),
        _OTHER_AXES_OF_K,
    ),
    Wrong(
        "cuts_the_token",
        _cuts_the_token,
        "x itself is cut into heads here, so that each head would read its own slice of the\n"
        "token. Every head reads the whole token: multiply first, and cut what comes out.",
    ),
    Wrong(
        "one_wide_head",
        program(split=lambda x, n_head: x.unsqueeze(1), merge=lambda heads: heads.squeeze(1)),
        "This is one head as wide as all of them together: n_head is never used. Each head\n"
        "needs a softmax of its own.",
    ),
    Wrong(
        "one_wide_head_with_the_scale_of_many",
        program(
            split=lambda x, n_head: x.unsqueeze(1),
            merge=lambda heads: heads.squeeze(1),
            scale=lambda x, q, n_head: math.sqrt(q.shape[-1] // n_head),
        ),
        "n_head is used for the scale only: the scores are still those of one head, as wide as\n"
        "all of them together. Each head needs scores and a softmax of its own.",
    ),
    Wrong(
        "heads_attend_to_heads",
        _heads_attend_to_heads,
        "The heads of each token attend to one another here: q and k are [batch, seq, n_head,\n"
        "head_dim], so @ gives scores of n_head by n_head. Tokens should attend to tokens; bring\n"
        "seq next to head_dim.",
    ),
    Wrong(
        "heads_attend_to_heads_and_are_swapped_after",
        program(split=lambda x, n_head: x.unflatten(-1, (n_head, -1))),
        "The swap of token and head is there at the end, but not before attention: q and k are\n"
        "[batch, seq, n_head, head_dim], so @ gives scores of n_head by n_head, and the heads of\n"
        "each token attend to one another. Bring seq next to head_dim first.",
    ),
    Wrong(
        "no_softmax",
        program(attend=_no_softmax),
        "The scores themselves are used as weights. What turns a row of scores into weights\n"
        "that sum to 1?",
    ),
    Wrong(
        "loop_with_the_whole_mask",
        _loop_with_the_whole_mask,
        "A loop over heads, and each of them meets the whole mask, which has an axis for the\n"
        "heads. Without the loop the scores have that axis too, and the mask fits.",
    ),
    Wrong("direct_reshape_in_the_split", program(split=_direct_split), _MIXED_IN_THE_SPLIT),
    Wrong("direct_reshape_in_the_merge", program(merge=_direct_merge), _MIXED_IN_THE_MERGE),
    Wrong(
        "direct_reshape_both_ways",
        program(split=_direct_split, merge=_direct_merge),
        _MIXED_BOTH_WAYS,
    ),
    Wrong("pieces_of_n_head_numbers", program(split=_pieces_of_n_head), _PIECES),
    Wrong(
        "pieces_of_n_head_numbers_with_the_right_scale",
        program(split=_pieces_of_n_head, scale=lambda x, q, n_head: math.sqrt(q.shape[1])),
        _PIECES,
    ),
    Wrong(
        "split_dealt_out",
        program(split=_dealt_out_split),
        "Head h takes every n_head-th column. The columns of one head stand together: head h\n"
        "has the block of head_dim columns that begins at h * head_dim.",
    ),
    Wrong(
        "merge_dealt_out",
        program(merge=lambda heads: heads.permute(0, 2, 3, 1).flatten(2)),
        "The heads are right and dealt out one by one in the result: number 0 of every head, then\n"
        "number 1 of every head. Join n_head and head_dim in that order.",
    ),
    Wrong(
        "not_merged",
        program(merge=lambda heads: heads),
        "The heads are right and still an axis of their own. The result has them side by side\n"
        "in one width.",
    ),
    Wrong(
        "swapped_back_and_not_joined",
        program(merge=lambda heads: heads.transpose(1, 2)),
        "The heads are right and seq stands in front of them again, but head and number are\n"
        "still two axes. Join the last two to one width.",
    ),
    Wrong(
        "view_in_the_merge",
        program(merge=lambda heads: heads.transpose(1, 2).view(*heads.shape[:3:2], -1)),
        "The order is right. But after the swap n_head and head_dim don't lie next to each other\n"
        "in memory, and view never copies; here a copy is needed.",
    ),
    Wrong(
        "heads_added_up",
        program(merge=lambda heads: heads.sum(1)),
        "The answers of the heads were added up. They stand side by side in the result, one\n"
        "block for each head.",
    ),
    Wrong(
        "heads_averaged",
        program(merge=lambda heads: heads.mean(1)),
        "The result is the mean of the heads' answers. They stand side by side in the result,\n"
        "one block for each head.",
    ),
    Wrong(
        "softmax_over_queries",
        softmax_over(-2),
        "The softmax runs over the queries: each column sums to 1. Each query's row of weights\n"
        "over the keys should.",
    ),
    Wrong(
        "softmax_over_heads",
        softmax_over(1),
        "The softmax runs over the heads, so that they compete with one another. Each head has\n"
        "a softmax of its own, over the keys.",
    ),
    *MASK_SLIPS,
    Wrong(
        "queries_three_times",
        program(weights=lambda q, k, v: (q, q, q)),
        "q, k and v are equal: all three are made with W_Q. Each letter has its own matrix.",
    ),
    Wrong(
        "keys_as_values",
        program(weights=lambda q, k, v: (q, k, k)),
        "The values are the keys: W_V is never used. What a head hands on is x @ W_V.",
    ),
    Wrong(
        "keys_and_values_swapped",
        program(weights=lambda q, k, v: (q, v, k)),
        "W_K and W_V are exchanged: the scores are made with the values, and the keys are\n"
        "handed on.",
    ),
    Wrong(
        "queries_and_keys_swapped",
        program(weights=lambda q, k, v: (k, q, v)),
        "Queries and keys are exchanged: the table of scores is turned over. A row belongs to a\n"
        "query.",
    ),
)

FUSED_MULTI_HEAD = Answer(reference=fused.fused_multi_head, wrong=WRONG, right=RIGHT)
