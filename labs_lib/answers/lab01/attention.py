"""Lab 01: scaled_dot_product_attention."""

from __future__ import annotations

import functools
import math

import torch

from ...attention.single_head import (
    attention_scores,
    attention_weights,
    scaled_dot_product_attention,
)
from ..kit import Answer, Right, Wrong, decorated
from . import heads

_KEY_AXIS_GONE = (
    "`any` (or sum, max) took the key axis away; keepdim=True keeps it, so that one\n"
    "answer serves a whole row."
)
_SUMMED_TOO_LATE = (
    "* multiplies number by number: row i of the weights meets row i of v alone, and the\n"
    "sum comes too late. Each weight goes with a whole row of v; @ multiplies and adds so."
)

ATTENTION = Answer(
    reference=scaled_dot_product_attention,
    wrong=(
        Wrong(
            "no_scale",
            heads.with_scores(heads.dots),
            "The scale is missing: this is what you get with the bare dot products. The rows come\n"
            "out too sharp.",
        ),
        Wrong(
            "scale_by_d_model",
            heads.with_scores(
                lambda q, k: heads.dots(q, k) / math.sqrt(heads.n_head(q) * q.shape[-1])
            ),
            "This is what you get when the scale is 1/√d_model; a head only sees head_dim numbers.",
        ),
        Wrong(
            "scale_without_root",
            heads.with_scores(lambda q, k: heads.dots(q, k) / q.shape[-1]),
            "The scores are divided by head_dim without the root, or scaled twice. The rows come\n"
            "out too even.",
        ),
        Wrong(
            "power_then_half",
            heads.with_scores(lambda q, k: heads.dots(q, k) / q.shape[-1] ** 1 / 2),
            "n ** 1 / 2 is (n ** 1) / 2 in Python: the power comes first, and no root is taken.\n"
            "Put the exponent in brackets.",
        ),
        Wrong(
            "scale_after_softmax",
            heads.softmax_before_scale,
            "The scale comes after the softmax: the rows are as sharp as without it, and the\n"
            "output is too small. Look at the order of the steps.",
        ),
        Wrong(
            "softmax_over_queries",
            heads.with_weights(heads.across(-2)),
            "The softmax runs down the queries, so that each column adds up to 1. It is each\n"
            "query that has 100 percent to give; look at `dim`.",
        ),
        Wrong(
            "softmax_over_heads",
            heads.with_weights(heads.across(-3)),
            "The softmax runs across the heads. Each head has its own rows, and each row its own\n"
            "100 percent; look at `dim`, which counts from the front or from the back.",
        ),
        Wrong(
            "softmax_over_batch",
            heads.with_weights(heads.across(-4)),
            "The softmax runs across the batch (dim=0), so the examples of a batch share 100\n"
            "percent. Each row has its own; look at `dim`.",
        ),
        Wrong(
            "no_softmax",
            heads.with_weights(heads.no_softmax),
            "The scores meet v without a softmax. Scores can be negative and add up to anything;\n"
            "a row of weights adds up to 1.",
        ),
        Wrong(
            "sums_along_the_wrong_axis",
            heads.with_weights(heads.columns_of_sums),
            "Each number is divided by the sum of another row: without keepdim=True the sums lie\n"
            "along the keys. Each row has to be divided by its own sum.",
        ),
        Wrong(
            "all_axes_turned",
            heads.with_scores(lambda q, k: q @ heads.all_axes_turned(k) / math.sqrt(q.shape[-1])),
            "All axes of k have been turned round, as .T does, so batch and heads have moved too.\n"
            "Only tokens and head_dim may change places.",
        ),
        Wrong(
            "scale_by_value_width",
            heads.scale_by_value_width,
            "The scale goes by the width of v. A score is a dot product of q and k; v comes later\n"
            "and may have another width.",
        ),
        Wrong(
            "values_turned_over",
            lambda q, k, v, mask=None: heads.weights_only(q, k, v, mask) @ v.mT,
            "v is turned over. Column j of the weights belongs to key j, and row j of v is its\n"
            "value: the two fit as they stand.",
        ),
        Wrong(
            "values_first",
            heads.values_first,
            "v stands before the weights. Row i of the weights belongs to query i and has one\n"
            "number per key; which axis of v counts the keys?",
        ),
        Wrong(
            "axes_counted_from_the_front",
            heads.with_scores(lambda q, k: q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])),
            "This counts the axes of k from the front, and q and k can come with two. Count the\n"
            "two that change places from the back.",
        ),
        Wrong(
            "element_by_element",
            heads.element_by_element,
            "* multiplies number by number. A weighted mean multiplies each value by its weight\n"
            "and adds up over the keys, which is a product of matrices.",
        ),
        Wrong(
            "element_by_element_summed",
            lambda q, k, v, mask=None: heads.element_by_element(q, k, v, mask).sum(-2),
            _SUMMED_TOO_LATE,
        ),
        Wrong(
            "element_by_element_summed_along_rows",
            lambda q, k, v, mask=None: heads.element_by_element(q, k, v, mask).sum(-1),
            _SUMMED_TOO_LATE,
        ),
        Wrong(
            "mask_ignored",
            lambda q, k, v, mask=None: scaled_dot_product_attention(q, k, v),
            "The mask takes no part: this is the output without one. (masked_fill gives back a\n"
            "new tensor; the one that it is called on stays as it was.)",
        ),
        Wrong(
            "mask_after_softmax",
            heads.with_weights(heads.masked_after),
            "The mask comes after the softmax: what is left of a row adds up to less than 1.\n"
            "Close the keys before the row is shared out.",
        ),
        Wrong(
            "scores_times_mask",
            heads.with_weights(heads.scores_times_mask),
            "Masked scores are 0 here (or nearly 0, as with 1e-9). A score of 0 still earns\n"
            "e⁰ = 1; what must a score be for its weight to be 0?",
        ),
        Wrong(
            "mask_added",
            heads.with_weights(heads.mask_added),
            "The bool mask is added to the scores: True counts as 1, which favours the open keys\n"
            "a little and closes none.",
        ),
        Wrong(
            "fill_too_small",
            heads.with_weights(lambda s, m: heads.clean(heads.fill(-10.0)(s, m), m)),
            "The fill is negative but not far enough: real scores go as low as that, so closed\n"
            "keys still leak through. Take -inf, or a number no score can reach.",
        ),
        Wrong(
            "mask_inverted",
            heads.with_weights(heads.inverted),
            "The mask is read the other way round: this looks only where it may not. True means:\n"
            "may attend.",
        ),
        Wrong(
            "mask_inverted_with_nan",
            heads.with_weights(heads.inverted_with_nan),
            "The mask is read the other way round: this looks only where it may not. True means:\n"
            "may attend. (A row that is all open is then left without a key, and so NaN.)",
        ),
        Wrong(
            "mask_always_there",
            heads.with_weights(heads.mask_always_there),
            "mask is None where none is given, and None is no tensor: it can't be turned round by\n"
            "~ or filled with. Without a mask every query sees every key.",
        ),
        Wrong(
            "any_of_no_mask",
            heads.with_weights(heads.any_of_no_mask),
            "mask is None where none is given, and None is no tensor: it has no .any(), nor any\n"
            "other method of one. Without a mask every query sees every key.",
        ),
        Wrong(
            "truth_of_a_mask",
            heads.with_weights(heads.truth_of_a_mask),
            "`if mask` asks whether a whole tensor is true, which has no answer. What you want to\n"
            "know is whether a mask was given at all: is it None?",
        ),
        Wrong(
            "any_without_keepdim",
            heads.with_weights(heads.any_without_keepdim),
            _KEY_AXIS_GONE,
        ),
        Wrong(
            "nan_asked_without_keepdim",
            heads.with_weights(heads.nan_asked_without_keepdim),
            _KEY_AXIS_GONE,
        ),
        Wrong(
            "product_with_any_without_keepdim",
            heads.with_weights(heads.product_with_any_without_keepdim),
            _KEY_AXIS_GONE,
        ),
        Wrong(
            "output_filled_without_keepdim",
            heads.output_filled_without_keepdim,
            _KEY_AXIS_GONE,
        ),
        Wrong(
            "output_times_any_without_keepdim",
            heads.output_times_any_without_keepdim,
            _KEY_AXIS_GONE,
        ),
        Wrong(
            "rows_as_index",
            heads.with_weights(heads.rows_as_index),
            "An index has to count batch and heads as well, and one mask may serve them all:\n"
            "masked_fill and torch.where spread it, an index doesn't.",
        ),
        Wrong(
            "mask_turned_over",
            heads.with_weights(heads.mask_turned_over),
            "The mask is turned over: its rows belong to queries and its columns to keys, as with\n"
            "the scores.",
        ),
        Wrong(
            "mask_reshaped",
            heads.with_weights(heads.mask_reshaped),
            "The two axes of the mask have changed their lengths: its rows belong to queries and\n"
            "its columns to keys already, as with the scores.",
        ),
        Wrong(
            "filled_with_plus_infinity",
            heads.with_weights(heads.fill(math.inf)),
            "The closed scores are +inf here, so the closed keys would get everything (inf / inf\n"
            "is NaN). A weight is e to the power of its score; which power gives 0?",
        ),
        Wrong(
            "all_for_any",
            heads.with_weights(heads.all_for_any),
            "A row is emptied as soon as one of its keys is closed: all() asks whether every key\n"
            "is open. Only a row without any open key gets zeros.",
        ),
        Wrong(
            "mended_in_place",
            heads.with_weights(heads.mended_in_place),
            "The weights are changed in place after the softmax, and torch needs them as they\n"
            "were on its way back to the gradient. Make a new tensor of them.",
        ),
        Wrong(
            "mask_as_index",
            heads.with_weights(heads.mask_as_index),
            "A mask used as an index must have the shape of the scores. One mask may serve all\n"
            "heads and all examples: masked_fill and torch.where spread it, an index doesn't.",
        ),
        Wrong(
            "zero_times_infinity",
            heads.with_weights(heads.zero_times_infinity),
            "An open key gets 0 times -inf, and that is NaN, not 0. Put -inf in place of the\n"
            "closed scores; don't multiply by it.",
        ),
        Wrong(
            "causal_without_a_mask",
            heads.with_weights(heads.causal_without_a_mask),
            "Where mask is None this puts in a causal one. None means that every query sees every\n"
            "key; whoever wants a causal head gives the mask.",
        ),
        Wrong(
            "always_causal",
            heads.with_weights(heads.always_causal),
            "This is causal whatever mask comes in. The mask is an argument; without it every\n"
            "query sees every key.",
        ),
        Wrong(
            "top_left_causal",
            heads.with_weights(heads.top_left),
            "Wherever a mask comes in, a causal one that starts at the top left is used instead\n"
            "(as torch's is_causal does). Use the mask that is given.",
        ),
        Wrong(
            "square_causal",
            heads.with_weights(heads.square_causal),
            "Wherever a mask comes in, a causal one of as many keys as queries is used instead.\n"
            "Use the mask that is given.",
        ),
        Wrong(
            "empty_row_is_nan",
            heads.with_weights(heads.fill(-math.inf)),
            "A query that may see nothing gives NaN: a row whose sum is 0 gives 0/0. Such a query\n"
            "has to get zeros. The other rows of this case are right.",
        ),
        Wrong(
            "empty_row_is_a_mean",
            heads.with_weights(heads.fill(-1e9)),
            "A query that may see nothing gets a mean of values: its scores are all equally low,\n"
            "and the softmax spreads evenly over keys that are all closed. It should get zeros.\n"
            "The other rows of this case are right.",
        ),
        Wrong(
            "all_rows_zero",
            heads.all_rows_zero,
            "As soon as one query sees nothing, the whole output is zeros here. Only the row of\n"
            "that query is; all others are means, as before.",
        ),
        Wrong(
            "nan_in_gradient",
            heads.with_weights(heads.nan_in_gradient),
            "The output is right, but in the gradient there is NaN: a row without any key came\n"
            "to 0/0 and was repaired afterwards. Keep it from getting there.",
        ),
        Wrong(
            "nan_hidden_in_output",
            heads.nan_hidden_in_output,
            "NaN is swept from the output, but the weights still hold it, so the gradient of v is\n"
            "NaN. Mend the row of weights, not what comes after it.",
        ),
        Wrong(
            "weights_only",
            heads.weights_only,
            "These are the weights. The output is one step further: the mean of the values,\n"
            "weighted by them.",
        ),
        Wrong(
            "output_and_weights",
            lambda q, k, v, mask=None: (
                scaled_dot_product_attention(q, k, v, mask),
                heads.weights_only(q, k, v, mask),
            ),
            "You return the output and the weights. One tensor is wanted, the output.",
        ),
        Wrong(
            "divided_once_more",
            lambda q, k, v, mask=None: scaled_dot_product_attention(q, k, v, mask) / k.shape[-2],
            "The output is divided by the number of keys. The weights of a row add up to 1\n"
            "already, so the sum is a mean.",
        ),
        Wrong(
            "keys_ask",
            lambda q, k, v, mask=None: scaled_dot_product_attention(k, q, v, mask),
            "q and k have changed places: here the keys ask and the queries are found. The order\n"
            "of the arguments is q, k, v.",
        ),
        Wrong(
            "keys_and_values_exchanged",
            lambda q, k, v, mask=None: scaled_dot_product_attention(q, v, k, mask),
            "k and v have changed places: the scores are made with the values. The order of the\n"
            "arguments is q, k, v.",
        ),
        Wrong(
            "values_are_keys",
            heads.values_are_keys,
            "The weights multiply k where they should multiply v. It goes unnoticed only where\n"
            "the two are the same tensor.",
        ),
        Wrong(
            "weights_transposed",
            heads.weights_transposed,
            "The weights are transposed before they meet v: each output collects by whom it is\n"
            "seen, not what it sees.",
        ),
        Wrong(
            "gradient_lost",
            heads.no_grad,
            "The values are right but the gradient is lost: something was detached on the way.",
        ),
        Wrong(
            "always_float32",
            lambda q, k, v, mask=None: scaled_dot_product_attention(q, k, v, mask).float(),
            "The output is float32 whatever comes in; it should have the dtype of v.",
        ),
    ),
    right=(
        Right("loops", heads.loops),
        Right("double_inside", heads.double_inside),
        Right("finite_fill_then_zero", heads.finite_fill_then_zero),
        Right("nan_to_num_of_filled_weights", heads.with_weights(heads.nan_to_num_after_fill)),
        Right("exponentials_times_mask", heads.exponentials_times_mask),
        Right("plain_exponentials", heads.with_weights(heads.unshifted_exponentials)),
        Right("decorated", decorated(scaled_dot_product_attention)),
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
