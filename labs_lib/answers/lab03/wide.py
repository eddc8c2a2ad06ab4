"""Answers to stack_projections: the small matrices side by side in a wide one."""

from __future__ import annotations

import torch

from labs_lib.attention import fused

from ..kit import Answer, Right, Wrong


def _stacked_by_element(W):
    n_head, d_in, head_dim = W.shape
    out = W.new_zeros(d_in, n_head * head_dim)
    for h in range(n_head):
        for c in range(head_dim):
            out[:, h * head_dim + c] = W[h, :, c]
    return out


def _slots(start, dtype=None):
    """A loop that writes head h to the columns from start(h, head_dim) on."""

    def stack(W):
        n_head, d_in, head_dim = W.shape
        out = W.new_zeros(d_in, n_head * head_dim, dtype=dtype)
        for h in range(n_head):
            out[:, start(h, head_dim) : start(h, head_dim) + head_dim] = W[h]
        return out

    return stack


_NO_LIST = (
    "torch.cat, like stack and hstack, takes a list or a tuple of tensors; here it is given a\n"
    "single one. Make a list of the small matrices of it first."
)

STACK_PROJECTIONS = Answer(
    reference=fused.stack_projections,
    wrong=(
        Wrong(
            "direct_reshape",
            lambda W: W.reshape(W.shape[1], -1),
            "The shape is right and the numbers are not: the axes were joined in the order\n"
            "(n_head, d_in, head_dim), so rows of one head were cut up and strung along. Which\n"
            "axis must come first before you join two?",
        ),
        Wrong(
            "one_below_the_other",
            lambda W: W.flatten(0, 1),
            "The matrices stand one below the other, [n_head * d_in, head_dim]. Such a matrix\n"
            "would read n_head copies of the token and add up what the heads say. They belong\n"
            "side by side.",
        ),
        Wrong(
            "columns_dealt_out",
            lambda W: W.permute(1, 2, 0).flatten(1),
            "The columns are dealt out one by one: column 0 of every head, then column 1 of every\n"
            "head. The columns of one head should stay together, block h for head h.",
        ),
        Wrong(
            "transposed",
            lambda W: W.transpose(1, 2).flatten(0, 1),
            "This is the wide matrix turned over, [n_head * head_dim, d_in]: the way nn.Linear\n"
            "keeps its weight. Here it is used as x @ W, so the inputs are the rows.",
        ),
        Wrong(
            "columns_as_rows",
            lambda W: W.transpose(1, 2).reshape(W.shape[1], -1),
            "The shape is right, but each small matrix was turned over before joining. The axis\n"
            "that has to come to the front is d_in, and it stands in the middle.",
        ),
        Wrong(
            "block_diagonal",
            lambda W: torch.block_diag(*W),
            "The small matrices stand along the diagonal, with zeros around them. Then head h\n"
            "reads only block h of a wider input; each head should read the same d_in numbers.",
        ),
        Wrong(
            "mean_of_heads",
            lambda W: W.mean(dim=0),
            "The heads are averaged into one matrix [d_in, head_dim]. Nothing is to be computed\n"
            "here: every number of every head has its own place in the wide matrix.",
        ),
        Wrong(
            "sum_of_heads",
            lambda W: W.sum(dim=0),
            "The heads are added up to one matrix [d_in, head_dim]. Nothing is to be computed\n"
            "here: every number of every head has its own place in the wide matrix.",
        ),
        Wrong(
            "view_after_the_swap",
            lambda W: W.transpose(0, 1).view(W.shape[1], -1),
            "The axes are in the right order. But after the swap the two to be joined don't lie\n"
            "next to each other in memory, and view never copies; here a copy is needed.",
        ),
        Wrong(
            "all_axes_reversed",
            lambda W: W.permute(2, 1, 0).reshape(W.shape[1], -1),
            "All three axes were reversed, which is what .T does, and then joined, so that the\n"
            "numbers were cut anew. Only the first two change places.",
        ),
        Wrong(
            "slot_overwritten",
            _slots(lambda h, head_dim: 0),
            "Every head was written to the same columns, so that the last one is left and the\n"
            "rest is empty. Head 1 begins where head 0 ends.",
        ),
        Wrong(
            "slots_overlap",
            _slots(lambda h, head_dim: h),
            "Head h was written from column h on, over the head before it. A head is head_dim\n"
            "columns wide: where does head h begin?",
        ),
        Wrong(
            "only_the_last_head",
            lambda W: W[-1],
            "This is the matrix of one head. A loop that writes each to the same name keeps the\n"
            "last one.",
        ),
        Wrong(
            "two_heads_only",
            lambda W: torch.cat([W[0], W[1]], dim=1),
            "Only the matrices of heads 0 and 1 are here. There are as many as W is long.",
        ),
        Wrong(
            "rows_joined_then_turned",
            lambda W: W.reshape(-1, W.shape[1]).T,
            "A reshape to [..., d_in] cut the numbers into rows as they come, and these were then\n"
            "turned over. The shape is right, but no row that was cut is a column of a head:\n"
            "order the axes first, then join two.",
        ),
        Wrong(
            "filled_in_float32",
            _slots(lambda h, head_dim: h * head_dim, dtype=torch.float32),
            "The numbers are in their places, but they are float32 whatever W is: that is what\n"
            "torch.zeros makes, unless it is told dtype=W.dtype.",
        ),
        Wrong(
            "rows_as_lists",
            lambda W: torch.cat(list(W), dim=1).tolist(),
            "These are Python lists, as in the loop above. One tensor is wanted.",
        ),
        Wrong(
            "unchanged",
            lambda W: W.transpose(0, 1),
            "The three axes are in the right order and still three. Join the last two into one.",
        ),
        Wrong(
            "as_it_came",
            lambda W: torch.stack(list(W)),
            "These are the three axes of W as they came, [n_head, d_in, head_dim]: torch.stack\n"
            "without dim= puts its matrices on a new axis in front. Side by side they have two.",
        ),
        Wrong(
            "heads_on_a_last_axis",
            lambda W: torch.stack(list(W), dim=-1),
            "The heads stand on a third axis, the last one: [d_in, head_dim, n_head]. torch.stack\n"
            "always makes a new axis. Side by side there is none: the columns of head 1 follow\n"
            "those of head 0 on the axis that is there.",
        ),
        Wrong("cat_of_one_tensor", lambda W: torch.cat(W, dim=1), _NO_LIST),
        Wrong("concat_of_one_tensor", lambda W: torch.concat(W, dim=1), _NO_LIST),
        Wrong("hstack_of_one_tensor", lambda W: torch.hstack(W), _NO_LIST),
        Wrong("stack_of_one_tensor", lambda W: torch.stack(W, dim=1), _NO_LIST),
        Wrong(
            "last_head_first",
            lambda W: W.flip(0).transpose(0, 1).flatten(1),
            "The heads stand in the reverse order: block 0 is the matrix of the last head.",
        ),
    ),
    right=(
        Right("cat", lambda W: torch.cat(list(W), dim=1)),
        Right("hstack", lambda W: torch.hstack([W[h] for h in range(len(W))])),
        Right("permute", lambda W: W.permute(1, 0, 2).reshape(W.shape[1], -1)),
        Right("contiguous_view", lambda W: W.transpose(0, 1).contiguous().view(W.size(1), -1)),
        Right("element_by_element", _stacked_by_element),
        Right(
            "product_with_one_hot",
            lambda W: torch.eye(W.shape[1], dtype=W.dtype) @ torch.cat(W.unbind(), dim=-1),
        ),
        Right("turned_twice", lambda W: W.mT.flatten(0, 1).T),
        Right("extra_argument", lambda W, dim=1: torch.cat(W.unbind(0), dim=dim)),
    ),
)
