"""Answers to concat_heads and apply_w_o: side by side, then mixed."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labs_lib.attention import multi_head

from ...exercises.lab05 import COMPUTES
from ..kit import Answer, Right, Wrong, decorated


def _by_permutation(heads):
    """Side by side through a product with a permutation of the identity."""
    batch, n_head, seq, head_dim = heads.shape
    wide = heads.new_zeros(batch, seq, n_head * head_dim)
    eye = torch.eye(n_head * head_dim, dtype=heads.dtype)
    for h in range(n_head):
        wide = wide + heads[:, h] @ eye[h * head_dim : (h + 1) * head_dim]
    return wide


def _filled(heads):
    batch, n_head, seq, head_dim = heads.shape
    wide = torch.empty(batch, seq, n_head * head_dim, dtype=heads.dtype)
    for h in range(n_head):
        wide[..., h * head_dim : (h + 1) * head_dim] = heads[:, h]
    return wide


def _number_by_number(heads):
    batch, n_head, seq, head_dim = heads.shape
    rows = [
        torch.stack([heads[b, h, t, d] for h in range(n_head) for d in range(head_dim)])
        for b in range(batch)
        for t in range(seq)
    ]
    return torch.stack(rows).view(batch, seq, -1)


def _by_index(heads):
    n_head, head_dim = heads.shape[1], heads.shape[3]
    place = torch.arange(n_head * head_dim)
    return heads.movedim(2, 1)[:, :, place // head_dim, place % head_dim]


def _overlapping(heads):
    batch, n_head, seq, head_dim = heads.shape
    wide = torch.zeros(batch, seq, n_head * head_dim, dtype=heads.dtype)
    for h in range(n_head):
        wide[..., h : h + head_dim] = heads[:, h]
    return wide


CONCAT_HEADS = Answer(
    reference=multi_head.concat_heads,
    wrong=(
        Wrong("computes", _by_permutation, COMPUTES),
        Wrong(
            "direct_reshape",
            lambda heads: heads.reshape(heads.shape[0], heads.shape[2], -1),
            "The shape is right, and each row holds several tokens of one head: a reshape keeps\n"
            "the order of the numbers, and head comes before token here. Swap those two axes in\n"
            "a step of its own.",
        ),
        Wrong(
            "dealt_out",
            lambda heads: heads.permute(0, 2, 3, 1).flatten(2),
            "The heads are dealt out like cards: number 0 of every head, then number 1 of every\n"
            "head. Wanted is all of head 0, then all of head 1; look at the order of the axes\n"
            "that you join.",
        ),
        Wrong(
            "not_joined",
            lambda heads: heads.transpose(1, 2),
            "Token and head are swapped, and the heads are still an axis of their own. The last\n"
            "two axes have to become one.",
        ),
        Wrong(
            "one_below_the_other",
            lambda heads: torch.cat(list(heads.unbind(1)), dim=1),
            "The heads are put one below the other, along seq: n_head times as many tokens. Side\n"
            "by side means along the last axis.",
        ),
        Wrong(
            "batch_side_by_side",
            lambda heads: torch.cat(list(heads), dim=-1),
            "The sequences of the batch are put side by side and not the heads: a loop over a\n"
            "tensor runs over its first axis. The heads are axis 1.",
        ),
        Wrong(
            "tokens_first",
            lambda heads: heads.permute(2, 0, 1, 3).flatten(2),
            "Each row is right, but the result is [seq, batch, ...]. The batch stays in front.",
        ),
        Wrong(
            "numbers_in_reverse",
            lambda heads: heads.transpose(1, 2).flatten(2).flip(2),
            "The numbers of each token stand in the reverse order. Head 0 comes first, and each\n"
            "head's numbers keep their order.",
        ),
        Wrong(
            "last_head_first",
            lambda heads: torch.cat(list(heads.unbind(1))[::-1], dim=-1),
            "The heads stand in the reverse order: the last one comes first.",
        ),
        Wrong(
            "summed",
            lambda heads: heads.sum(1),
            "The heads are added up: head_dim numbers are left, and which head said what is\n"
            "gone. Keep them all, side by side.",
        ),
        Wrong(
            "averaged",
            lambda heads: heads.mean(1),
            "The heads are averaged: head_dim numbers are left, and which head said what is\n"
            "gone. Keep them all, side by side.",
        ),
        Wrong(
            "first_head_only",
            lambda heads: heads[:, 0],
            "This is head 0 alone. The others stand behind it.",
        ),
        Wrong(
            "view_after_the_swap",
            lambda heads: heads.transpose(1, 2).view(heads.shape[0], heads.shape[2], -1),
            "The axes are right. After the swap the numbers lie elsewhere than the shape says,\n"
            "and a view can't join them; a reshape makes the copy that is needed.",
        ),
        Wrong(
            "numbers_before_heads_and_tokens",
            lambda heads: heads.transpose(2, 3).reshape(heads.shape[0], heads.shape[2], -1),
            "Tokens and numbers were swapped, not tokens and heads. Which two axes have to become\n"
            "neighbours before they are joined?",
        ),
        Wrong(
            "first_sequence_only",
            lambda heads: heads[:1].transpose(1, 2).flatten(2),
            "Only the first sequence of the batch is there.",
        ),
        Wrong(
            "last_head_only",
            lambda heads: heads[:, -1],
            "This is the last head alone: a loop that assigns keeps its last turn. Collect the\n"
            "heads, and put them side by side at the end.",
        ),
        Wrong(
            "last_head_missing",
            lambda heads: F.pad(heads[:, :-1].transpose(1, 2).flatten(2), (0, heads.shape[3])),
            "The last head is missing, and zeros stand in its place. range(n_head)\n"
            "already ends with it.",
        ),
        Wrong(
            "heads_overlap",
            _overlapping,
            "The heads overlap: head h begins at place h, and the next one writes over it. It\n"
            "begins behind the h heads before it, each head_dim wide.",
        ),
        Wrong(
            "without_the_batch",
            lambda heads: heads[0].transpose(0, 1).flatten(1),
            "Only the first sequence of the batch is there, and its axis is gone.",
        ),
    ),
    right=(
        Right("cat_of_heads", lambda heads: torch.cat(heads.unbind(1), dim=-1)),
        Right("flatten", lambda heads: heads.permute(0, 2, 1, 3).flatten(-2)),
        Right(
            "contiguous_view",
            lambda heads: heads.transpose(1, 2).contiguous().view(
                heads.shape[0], heads.shape[2], -1),
        ),
        Right("filled_in_place", _filled),
        Right("number_by_number", _number_by_number),
        Right("by_index", _by_index),
        Right("einsum", lambda heads: torch.einsum("bhtd->bthd", heads).reshape(
            heads.shape[0], heads.shape[2], -1)),
        Right("float64_inside", lambda heads: multi_head.concat_heads(
            heads.double()).to(heads.dtype)),
        Right("decorated", decorated(multi_head.concat_heads)),
    ),
)  # fmt: skip


def _turned(concat, W_O):
    return concat @ W_O.T if W_O.shape[0] == W_O.shape[1] else concat @ W_O


def _loop(concat, W_O):
    columns = [(concat * W_O[:, d]).sum(-1) for d in range(W_O.shape[1])]
    return torch.stack(columns, dim=-1)


def _rows_added(concat, W_O, scale=1.0):
    out = 0.0
    for c in range(W_O.shape[0]):
        out = out + concat[..., c, None] * W_O[c] * scale
    return out


APPLY_W_O = Answer(
    reference=multi_head.apply_w_o,
    wrong=(
        Wrong(
            "transposed",
            lambda concat, W_O: concat @ W_O.T,
            "The product is with W_O turned over, so that its columns are read as rows. Our W_O\n"
            "is [n_head * head_dim, d_model]: what comes in stands first, as in x @ W_Q.",
        ),
        Wrong(
            "as_nn_linear",
            _turned,
            "A square W_O is read the wrong way round here (nn.Linear keeps [out, in], ours is\n"
            "[in, out]); with other shapes it is right. Square matrices hide this mistake.",
        ),
        Wrong(
            "left_out",
            lambda concat, W_O: concat.clone(),
            "This is concat itself: W_O is never used.",
        ),
        Wrong(
            "diagonal_only",
            lambda concat, W_O: concat * W_O.diagonal() if W_O.shape[0] == W_O.shape[1] else concat,
            "Each number is multiplied by one number of W_O, that on the diagonal. Nothing is\n"
            "mixed: an output number is a sum over all numbers of the token.",
        ),
        Wrong(
            "input_added",
            lambda concat, W_O: concat @ W_O + (
                concat if W_O.shape[0] == W_O.shape[1] else 0.0),
            "The input is added to the product. Adding what came before is the block's business,\n"
            "outside of this layer, and what it adds is x.",
        ),
        Wrong(
            "softmaxed",
            lambda concat, W_O: concat @ W_O.softmax(dim=0),
            "W_O goes through a softmax here, so its numbers are all positive. W_O is used as it\n"
            "is; the softmax was in the heads.",
        ),
        Wrong(
            "divided_by_the_root",
            lambda concat, W_O: concat @ W_O / W_O.shape[0] ** 0.5,
            "The product is divided by the root of the width. Scores are scaled, because a\n"
            "softmax follows them; this product is not.",
        ),
        Wrong(
            "with_a_relu",
            lambda concat, W_O: (concat @ W_O).relu(),
            "Negative numbers became 0: there is a ReLU behind the product. W_O is linear; the\n"
            "ReLU belongs to the MLP.",
        ),
        Wrong(
            "last_token_only",
            lambda concat, W_O: concat[:, -1] @ W_O,
            "Only the last token went through W_O. Every token does, each on its own.",
        ),
        Wrong(
            "tokens_averaged",
            lambda concat, W_O: (concat @ W_O).mean(1, keepdim=True).expand(
                -1, concat.shape[1], -1),
            "All tokens get the same output, their mean. W_O mixes the numbers of one token and\n"
            "never two tokens.",
        ),
        Wrong(
            "number_by_number",
            lambda concat, W_O: concat * W_O,
            "`*` multiplies entry by entry. An output number is a sum of products: `@`.",
        ),
        Wrong(
            "w_o_first",
            lambda concat, W_O: W_O @ concat,
            "W_O stands first. Tokens are rows here, so the matrix comes behind them: x @ W.",
        ),
        Wrong(
            "columns_for_tokens",
            lambda concat, W_O: W_O.T @ concat.mT,
            "The product is right and lies on its side: [batch, d_model, seq].",
        ),
        Wrong(
            "batch_joined",
            lambda concat, W_O: concat.flatten(0, 1) @ W_O,
            "The tokens of all sequences are in one long list. The batch has an axis of its own.",
        ),
        Wrong(
            "rows_summed",
            lambda concat, W_O: (concat[..., None] * W_O).sum(-1),
            "The products are right and are added up along the wrong axis: number c is multiplied\n"
            "by the sum of its own row. Output number d adds up column d, over all rows c.",
        ),
        Wrong(
            "one_column_only",
            lambda concat, W_O: concat @ W_O[:, 0],
            "This is output number 0 alone. There are d_model of them, one for each column.",
        ),
        Wrong(
            "last_column_only",
            lambda concat, W_O: concat @ W_O[:, -1],
            "This is the last output number alone: a loop that assigns keeps its last turn.",
        ),
        Wrong(
            "first_sequence_only",
            lambda concat, W_O: concat[0] @ W_O,
            "Only the first sequence of the batch is there, and its axis is gone.",
        ),
        Wrong(
            "softmax_behind",
            lambda concat, W_O: (concat @ W_O).softmax(-1),
            "The output went through a softmax. The only softmax stands inside the heads; W_O is\n"
            "one product and nothing else.",
        ),
    ),
    right=(
        Right("matmul", torch.matmul),
        Right("einsum", lambda concat, W_O: torch.einsum("btc,cd->btd", concat, W_O)),
        Right("linear", lambda concat, W_O: F.linear(concat, W_O.T)),
        Right("column_by_column", _loop),
        Right("row_by_row", _rows_added),
        Right("float64_inside", lambda concat, W_O: (concat.double() @ W_O.double()).to(
            concat.dtype)),
        Right("tensordot", lambda concat, W_O, bias=None: torch.tensordot(concat, W_O, dims=1)),
    ),
)  # fmt: skip
