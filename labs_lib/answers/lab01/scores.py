"""Lab 01: attention_scores."""

from __future__ import annotations

import math

import numpy as np
import torch

from ...attention.single_head import attention_scores
from ..kit import Answer, Right, Wrong
from .heads import all_axes_turned, dots, n_head


def _cosine(q, k):
    return dots(torch.nn.functional.normalize(q, dim=-1), torch.nn.functional.normalize(k, dim=-1))


def _in_two(k, i, j):
    """k with two axes swapped, counted from the front; the last two where it has only two."""
    return k.transpose(i, j) if k.ndim > max(i, j) else k.mT


def _loops(q, k):
    rows = []
    for i in range(q.shape[-2]):
        row = [(q[..., i, :] * k[..., j, :]).sum(-1) for j in range(k.shape[-2])]
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2) * q.shape[-1] ** -0.5


def _loops_over_two_axes(q, k):
    scores = torch.zeros(len(q), len(k))
    for i in range(len(q)):
        for j in range(len(k)):
            scores[i, j] = sum(q[i, n] * k[j, n] for n in range(q.shape[1]))
    return scores / math.sqrt(q.shape[1])


def _in_place(q, k):
    scores = torch.matmul(q, k.mT)
    scores /= math.sqrt(k.size(-1))
    return scores


def _double_inside(q, k):
    return (dots(q.double(), k.double()) / q.shape[-1] ** 0.5).to(q.dtype)


class _Head:
    def scores(self, q: torch.Tensor, k: torch.Tensor, *, scale: float | None = None):
        scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        return (q * scale) @ k.transpose(-1, -2)


SCORES = Answer(
    reference=attention_scores,
    wrong=(
        Wrong(
            "no_scale",
            dots,
            "These are the bare dot products, which is what you get when the scale is left out.\n"
            "Their spread grows with the width of the head; look at what q·k is divided by.",
        ),
        Wrong(
            "scale_by_d_model",
            lambda q, k: dots(q, k) / math.sqrt(n_head(q) * q.shape[-1]),
            "This is what you get when the scale is 1/√d_model. A dot product here runs over one\n"
            "head's own numbers only; look at the last axis of q.",
        ),
        Wrong(
            "scale_without_root",
            lambda q, k: dots(q, k) / q.shape[-1],
            "The scores are divided by head_dim itself: the root is missing, or the scale was\n"
            "applied twice. Look at what a variance and a standard deviation are.",
        ),
        Wrong(
            "power_then_half",
            lambda q, k: dots(q, k) / q.shape[-1] ** 1 / 2,
            "n ** 1 / 2 is (n ** 1) / 2 in Python: the power comes first. So this divides by\n"
            "head_dim and by 2, and no root is taken. Put the exponent in brackets.",
        ),
        Wrong(
            "half_of_the_width",
            lambda q, k: dots(q, k) / (q.shape[-1] ** 1 / 2),
            "n ** 1 / 2 is (n ** 1) / 2 in Python: the power comes first. So this divides by half\n"
            "of head_dim, and no root is taken. Put the exponent in brackets.",
        ),
        Wrong(
            "root_cut_to_a_whole_number",
            lambda q, k: dots(q, k) / int(math.sqrt(q.shape[-1])),
            "The root is cut to a whole number here, so that it is right only where head_dim is a\n"
            "square number, such as 16 or 64. Leave out int, or isqrt.",
        ),
        Wrong(
            "scores_cut_to_whole_numbers",
            lambda q, k: dots(q, k) // math.sqrt(q.shape[-1]),
            "// cuts the scores to whole numbers. Divide with /.",
        ),
        Wrong(
            "torch_root_of_an_int",
            lambda q, k: dots(q, k) / torch.sqrt(q.shape[-1]),
            "torch.sqrt takes tensors, and q.shape[-1] is a plain int. Python's math has a root\n"
            "for numbers.",
        ),
        Wrong(
            "head_dim_taken_for_an_argument",
            lambda q, k: dots(q, k) / math.sqrt(head_dim),  # noqa: F821  # ty: ignore
            "There is no head_dim among the arguments. It is the length of q's last axis; read it\n"
            "from q.",
        ),
        Wrong(
            "axes_counted_from_the_front",
            lambda q, k: q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]),
            "This counts the axes of k from the front, and q and k can come with two. Count the\n"
            "two that change places from the back.",
        ),
        Wrong(
            "element_by_element",
            lambda q, k: q * k.transpose(-2, -1) / math.sqrt(q.shape[-1]),
            "* multiplies number by number, and doesn't add up. A dot product does both: that is\n"
            "a product of matrices, @.",
        ),
        Wrong(
            "element_by_element_no_scale",
            lambda q, k: q * k.transpose(-2, -1),
            "* multiplies number by number, and doesn't add up; the scale is missing too. A dot\n"
            "product multiplies and adds up: that is a product of matrices, @.",
        ),
        Wrong(
            "element_by_element_not_turned",
            lambda q, k: q * k / math.sqrt(q.shape[-1]),
            "* multiplies number by number, and doesn't add up. A dot product does both: that is\n"
            "a product of matrices, @.",
        ),
        Wrong(
            "element_by_element_not_turned_no_scale",
            lambda q, k: q * k,
            "* multiplies number by number, and doesn't add up; the scale is missing too. A dot\n"
            "product multiplies and adds up: that is a product of matrices, @.",
        ),
        Wrong(
            "through_numpy",
            lambda q, k: np.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1]),
            "In training torch follows every step of a function, and it can't follow numpy.\n"
            "Don't take torch's advice here: detach() only hides the step. Stay with torch's\n"
            "own operations.",
        ),
        Wrong(
            "all_four_axes_named",
            lambda q, k: q @ k.permute(0, 1, 3, 2) / math.sqrt(q.shape[-1]),
            "This names four axes, and q and k can come with two. Name only the two that change\n"
            "places, and count them from the back.",
        ),
        Wrong(
            "a_letter_for_each_axis",
            lambda q, k: torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1]),
            "This einsum has a letter for each of four axes, and q and k can come with two. Three\n"
            "dots stand for any axes in front.",
        ),
        Wrong(
            "product_of_two_axes_only",
            lambda q, k: torch.mm(q, k.mT) / math.sqrt(q.shape[-1]),
            "torch.mm takes matrices alone, of two axes. @ takes any axes in front.",
        ),
        Wrong(
            "product_of_three_axes_only",
            lambda q, k: torch.bmm(q, k.mT) / math.sqrt(q.shape[-1]),
            "torch.bmm takes three axes and no other number. @ takes any axes in front.",
        ),
        Wrong(
            "heads_summed",
            lambda q, k: torch.einsum("...hid,...hjd->...ij", q, k) / math.sqrt(q.shape[-1])
            if q.ndim > 2 else attention_scores(q, k),
            "The scores of all heads are added up: the head's letter is missing behind the arrow.\n"
            "Each head keeps its own.",
        ),
        Wrong(
            "scale_by_keys",
            lambda q, k: dots(q, k) / math.sqrt(k.shape[-2]),
            "This is divided by the root of the number of keys. What counts is how many products\n"
            "stand in one sum; look at which axis of k disappears in the product.",
        ),
        Wrong(
            "scale_by_queries",
            lambda q, k: dots(q, k) / math.sqrt(q.shape[-2]),
            "This is divided by the root of the number of queries. The scale has nothing to do\n"
            "with how many tokens there are; look at which axis disappears in the product.",
        ),
        Wrong(
            "multiplied",
            lambda q, k: dots(q, k) * math.sqrt(q.shape[-1]),
            "This is multiplied by the root where it should be divided; the scores spread even\n"
            "more than without any scale.",
        ),
        Wrong(
            "scale_of_64",
            lambda q, k: dots(q, k) / 8.0,
            "This is divided by 8 whatever the width is, which is right for head_dim 64 alone.\n"
            "Take the width from the tensor.",
        ),
        Wrong(
            "keys_ask",
            lambda q, k: dots(k, q) / math.sqrt(q.shape[-1]),
            "Rows and columns have changed places, which is what happens when the keys ask and\n"
            "the queries answer. Row i belongs to query i.",
        ),
        Wrong(
            "queries_turned_over",
            lambda q, k: q.mT @ k / math.sqrt(q.shape[-1]),
            "q was turned over; it is the keys that have to become columns. A row of q is a\n"
            "query, and stays a row.",
        ),
        Wrong(
            "queries_turned_over_no_scale",
            lambda q, k: q.mT @ k,
            "q was turned over; it is the keys that have to become columns. And the scale is\n"
            "missing too.",
        ),
        Wrong(
            "turned_keys_in_front",
            lambda q, k: k.mT @ q / math.sqrt(q.shape[-1]),
            "The keys are turned over but stand in front, so columns of k meet columns of q.\n"
            "Row i of the scores belongs to query i: q comes first.",
        ),
        Wrong(
            "turned_keys_in_front_no_scale",
            lambda q, k: k.mT @ q,
            "The keys are turned over but stand in front, so columns of k meet columns of q. q\n"
            "comes first; and the scale is missing too.",
        ),
        Wrong(
            "queries_only",
            lambda q, k: dots(q, q) / math.sqrt(q.shape[-1]),
            "The queries are compared with themselves; k takes no part. It goes unnoticed only\n"
            "where k equals q.",
        ),
        Wrong(
            "softmax_already",
            lambda q, k: attention_scores(q, k).softmax(dim=-1),
            "These are the weights already. The scores come one step before the softmax, and can\n"
            "be negative.",
        ),
        Wrong(
            "cosine",
            _cosine,
            "These are cosines, which is what happens when q and k are brought to length 1. In\n"
            "this attention the lengths count; only the spread is taken back, by one fixed\n"
            "factor.",
        ),
        Wrong(
            "keys_not_turned",
            lambda q, k: q @ k / math.sqrt(q.shape[-1]),
            "q meets k as it stands, so rows of q meet columns of k. Each row of k is a key, and\n"
            "the dot product of a query with a key is a row with a row.",
        ),
        Wrong(
            "keys_not_turned_no_scale",
            lambda q, k: q @ k,
            "q meets k as it stands, so rows of q meet columns of k, and the scale is missing\n"
            "too. Each row of k is a key: a row has to meet a row.",
        ),
        Wrong(
            "all_axes_turned",
            lambda q, k: q @ all_axes_turned(k) / math.sqrt(q.shape[-1]),
            "All axes of k have been turned round, as .T does, so batch and heads have moved too.\n"
            "Only tokens and head_dim may change places.",
        ),
        Wrong(
            "all_axes_turned_no_scale",
            lambda q, k: q @ all_axes_turned(k),
            "All axes of k have been turned round, as .T does, and the scale is missing too. Only\n"
            "tokens and head_dim may change places.",
        ),
        Wrong(
            "heads_and_tokens_swapped",
            lambda q, k: q @ _in_two(k, 1, 2) / math.sqrt(q.shape[-1]),
            "Axes 1 and 2 of k have changed places; with four axes those are heads and tokens.\n"
            "Count the two axes from the back.",
        ),
        Wrong(
            "batch_and_heads_swapped",
            lambda q, k: q @ _in_two(k, 0, 1) / math.sqrt(q.shape[-1]),
            "Axes 0 and 1 of k have changed places; with four axes those are batch and heads.\n"
            "Count the two axes from the back.",
        ),
        Wrong(
            "keys_reshaped",
            lambda q, k: q @ k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
            / math.sqrt(q.shape[-1]),
            "k has the right shape but the wrong numbers in it: reshape and view read the numbers\n"
            "on in the same order. To make columns of rows is another thing, a transposition.",
        ),
        Wrong(
            "same_place_only",
            lambda q, k: (q * k[..., : q.shape[-2], :]).sum(-1) / math.sqrt(q.shape[-1]),
            "Query i has met key i only. Each query meets every key: a row of scores per query.",
        ),
        Wrong(
            "same_place_only_as_a_column",
            lambda q, k: (q * k[..., : q.shape[-2], :]).sum(-1, keepdim=True)
            / math.sqrt(q.shape[-1]),
            "Query i has met key i only. Each query meets every key: a row of scores per query.",
        ),
        Wrong(
            "scale_by_axis_one",
            lambda q, k: dots(q, k) / math.sqrt(q.shape[1]),
            "This is divided by √q.shape[1], which is head_dim only where there are two axes;\n"
            "with four it is the number of heads. Count from the back.",
        ),
        Wrong(
            "scale_by_first_axis",
            lambda q, k: dots(q, k) / math.sqrt(len(q)),
            "This is divided by the root of the length of q's first axis, which is what len(q)\n"
            "and q.shape[0] give. The scale goes by head_dim, the last axis.",
        ),
        Wrong(
            "loops_over_two_axes",
            _loops_over_two_axes,
            "The loop of the picture is right for two axes; with batch and heads in front,\n"
            "q[i, n] is no longer one number. One product of matrices serves any axes in front.",
        ),
        Wrong(
            "root_of_the_scores",
            lambda q, k: (dots(q, k) / q.shape[-1]).sqrt(),
            "The root is taken of the scores too, and a negative score has none (NaN). The root\n"
            "belongs to head_dim alone.",
        ),
        Wrong(
            "always_float32",
            lambda q, k: attention_scores(q, k).float(),
            "The values are float32 whatever comes in. A result has the dtype of its inputs; look\n"
            "for a .float() or a tensor made without dtype.",
        ),
    ),
    right=(
        Right("loops", _loops),
        Right("in_place", _in_place),
        Right("double_inside", _double_inside),
        Right("scaled_query_method", _Head().scores),
        Right(
            "einsum",
            lambda q, k: torch.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1]),
        ),
        Right("products_summed", lambda q, k: (q[..., :, None, :] * k[..., None, :, :]).sum(-1)
              / q.shape[-1] ** 0.5),
        Right("root_on_both", lambda q, k: dots(q / q.shape[-1] ** 0.25, k / k.shape[-1] ** 0.25)),
        Right("scale_as_tensor", lambda q, k: dots(q, k) / torch.tensor(q.shape[-1]).sqrt()),
    ),
)  # fmt: skip

ANSWERS = {"lab01.attention_scores": SCORES}
