"""Answers to per_head_contributions: what each head alone adds."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labs_lib.attention import multi_head

from ...exercises.lab05 import MULTIPLIES_TOO_OFTEN
from ..kit import Answer, Right, Wrong

_contributions = multi_head.per_head_contributions


def _zeros_times_w_o(heads, W_O):
    concat = multi_head.concat_heads(heads)
    head_dim = heads.shape[3]
    parts = []
    for h in range(heads.shape[1]):
        own = torch.zeros_like(concat)
        own[..., h * head_dim : (h + 1) * head_dim] = heads[:, h]
        parts.append(own @ W_O)
    return torch.stack(parts, dim=1)


def _whole(heads, W_O):
    return multi_head.concat_heads(heads) @ W_O


def _own_places_only(heads, W_O):
    """Head h keeps only the columns of its own places: W_O read as a block diagonal."""
    parts = _contributions(heads, W_O)
    n_head, d_model = heads.shape[1], W_O.shape[1]
    owner = torch.arange(d_model) * n_head // d_model
    own = owner == torch.arange(n_head)[:, None]
    return parts * own[:, None]


def _through_rows(choose):
    """A program that multiplies head h by the rows that `choose` names."""

    def program(heads, W_O):
        n_head, head_dim = heads.shape[1], heads.shape[3]
        return torch.stack(
            [heads[:, h] @ W_O[choose(h, n_head, head_dim)] for h in range(n_head)], dim=1
        )

    return program


def _block(h, n_head, head_dim):
    return slice(h * head_dim, (h + 1) * head_dim)


def _columns(heads, W_O):
    n_head, head_dim = heads.shape[1], heads.shape[3]
    parts = [heads[:, h] @ W_O[:, _block(h, n_head, head_dim)].T for h in range(n_head)]
    return torch.stack(parts, dim=1)


def _heads_cut_anew(heads, W_O):
    batch, n_head, seq, head_dim = heads.shape
    return _contributions(heads.transpose(1, 2).reshape(batch, n_head, seq, head_dim), W_O)


def _loop_over_the_batch(heads, W_O):
    rows = W_O.split(heads.shape[3])
    parts = [own @ block for own, block in zip(heads, rows, strict=False)]
    return torch.stack(parts, dim=1)


def _filled(heads, W_O):
    batch, n_head, seq, head_dim = heads.shape
    out = heads.new_empty(batch, n_head, seq, W_O.shape[1])
    for h in range(n_head):
        out[:, h] = heads[:, h] @ W_O[h * head_dim : (h + 1) * head_dim]
    return out


def _split_and_linear(heads, W_O, bias=None):
    blocks = W_O.split(heads.shape[3])
    return torch.stack([F.linear(x, w.T, bias) for x, w in zip(heads.unbind(1), blocks)], 1)  # noqa: B905


def _output_columns(heads, W_O):
    batch, n_head, seq, _ = heads.shape
    return _whole(heads, W_O).view(batch, seq, n_head, -1).transpose(1, 2)


PER_HEAD_CONTRIBUTIONS = Answer(
    reference=_contributions,
    wrong=(
        Wrong("zeros_times_w_o", _zeros_times_w_o, MULTIPLIES_TOO_OFTEN),
        Wrong(
            "column_blocks",
            _columns,
            "Head h is multiplied by a block of columns of W_O, turned over. Columns belong to\n"
            "what comes out. A head's numbers go in, and what goes in are rows.",
        ),
        Wrong(
            "rows_dealt_out",
            _through_rows(lambda h, n_head, head_dim: slice(h, None, n_head)),
            "Head h takes every n_head-th row of W_O (also what W_O.view(head_dim, n_head, -1)\n"
            "does). In concat its numbers stand together, so its rows do too.",
        ),
        Wrong(
            "same_rows_for_all",
            _through_rows(lambda h, n_head, head_dim: slice(head_dim)),
            "Every head is multiplied by the first block of rows. Those are head 0's; the others\n"
            "have rows of their own.",
        ),
        Wrong(
            "blocks_reversed",
            _through_rows(lambda h, n_head, head_dim: _block(n_head - 1 - h, n_head, head_dim)),
            "The blocks of rows are given out from the end: head 0 gets the last one.",
        ),
        Wrong(
            "shifted_block",
            _through_rows(
                lambda h, n_head, head_dim: [(h + i) % (n_head * head_dim) for i in range(head_dim)]
            ),
            "Head h begins at row h, so the blocks overlap. It begins after the h heads before\n"
            "it, and each of them has head_dim rows.",
        ),
        Wrong(
            "equal_shares",
            lambda heads, W_O: (_whole(heads, W_O) / heads.shape[1]).unsqueeze(1).expand(
                -1, heads.shape[1], -1, -1),
            "The output is divided equally among the heads. The sum is right, and it says\n"
            "nothing about what one head did. Start from heads[:, h].",
        ),
        Wrong(
            "whole_for_each",
            lambda heads, W_O: _whole(heads, W_O).unsqueeze(1).expand(-1, heads.shape[1], -1, -1),
            "Every head gets the whole output. What one head adds uses that head's numbers only.",
        ),
        Wrong(
            "already_summed",
            _whole,
            "This is the layer's output, the sum of what is wanted. Keep the heads apart: an axis\n"
            "n_head stands behind batch.",
        ),
        Wrong(
            "without_this_head",
            lambda heads, W_O: _whole(heads, W_O).unsqueeze(1) - _contributions(heads, W_O),
            "This is what is left when head h is taken out. Wanted is what it adds: the rest of\n"
            "the output.",
        ),
        Wrong(
            "running_sum",
            lambda heads, W_O: _contributions(heads, W_O).cumsum(1),
            "These are running sums: entry h holds what heads 0 to h add together.",
        ),
        Wrong(
            "tokens_before_heads",
            lambda heads, W_O: _contributions(heads, W_O).transpose(1, 2),
            "The contributions are right, as [batch, seq, n_head, d_model]. The head axis is\n"
            "wanted right behind batch.",
        ),
        Wrong(
            "own_places_only",
            _own_places_only,
            "Head h writes only into its own share of the output here, as if W_O were blocks on\n"
            "a diagonal. A head's rows of W_O reach all d_model columns.",
        ),
        Wrong(
            "heads_cut_anew",
            _heads_cut_anew,
            "The rows of W_O are right and the heads are not: they were put side by side and cut\n"
            "again by a reshape, which mixes tokens. They come in cut already; use them so.",
        ),
        Wrong(
            "mean_of_the_heads",
            lambda heads, W_O: _contributions(heads.mean(1, keepdim=True).expand_as(heads), W_O),
            "Every block of W_O meets the same numbers, the mean of the heads. Block h belongs\n"
            "to heads[:, h].",
        ),
        Wrong(
            "output_columns_as_heads",
            _output_columns,
            "The whole output is cut into n_head blocks of columns. W_O has spread each head over\n"
            "all columns by then: what belongs to a head are its rows of W_O.",
        ),
        Wrong(
            "one_row_for_a_head",
            lambda heads, W_O: torch.stack(
                [heads[:, h] @ W_O[h] for h in range(heads.shape[1])], dim=1),
            "W_O[h] is one row of W_O. Head h has head_dim numbers, and each of them has a row of\n"
            "its own.",
        ),
        Wrong(
            "columns_not_turned",
            lambda heads, W_O: torch.stack([heads[:, h] @ W_O[:, _block(
                h, heads.shape[1], heads.shape[3])] for h in range(heads.shape[1])], dim=1),
            "Head h meets a block of columns of W_O. Columns belong to what comes out; its\n"
            "head_dim numbers go in, so they need head_dim rows.",
        ),
        Wrong(
            "heads_before_batch",
            lambda heads, W_O: _contributions(heads, W_O).transpose(0, 1),
            "The contributions are right, as [n_head, batch, seq, d_model]. The batch stays in\n"
            "front; torch.stack can put the heads at axis 1.",
        ),
        Wrong(
            "last_head_everywhere",
            lambda heads, W_O: _contributions(heads, W_O)[:, -1:].expand(
                -1, heads.shape[1], -1, -1),
            "Every place holds what the last head adds: the loop writes over all heads in each\n"
            "turn. Head h belongs at [:, h].",
        ),
        Wrong(
            "steps_of_n_head",
            _through_rows(lambda h, n_head, head_dim: [
                (h * n_head + i) % (n_head * head_dim) for i in range(head_dim)]),
            "Head h begins at row h * n_head. The heads before it have head_dim rows each, so it\n"
            "begins at h * head_dim. Equal only where n_head is head_dim.",
        ),
        Wrong(
            "batch_taken_for_heads",
            _loop_over_the_batch,
            "heads[h] is sequence h of the batch, not head h: the heads are axis 1.",
        ),
        Wrong(
            "one_below_the_other",
            lambda heads, W_O: _contributions(heads, W_O).flatten(1, 2),
            "The contributions are right and stand one below the other, along seq. The heads need\n"
            "an axis of their own: torch.stack makes one, torch.cat doesn't.",
        ),
        Wrong(
            "all_of_w_o",
            lambda heads, W_O: heads @ W_O,
            "A head of head_dim numbers can't meet all n_head * head_dim rows of W_O. Which of\n"
            "them are its own?",
        ),
    ),
    right=(
        Right("loop_over_rows", _filled),
        Right(
            "einsum",
            lambda heads, W_O: torch.einsum(
                "bhtd,hdm->bhtm", heads, W_O.view(heads.shape[1], heads.shape[3], -1)),
        ),
        Right("split_and_linear", _split_and_linear),
        Right("chunks", lambda heads, W_O: torch.stack(
            [x @ w for x, w in zip(heads.unbind(1), W_O.chunk(heads.shape[1]))], dim=1)),  # noqa: B905
        Right("sums_without_products", lambda heads, W_O: (
            heads[..., None] * W_O.view(heads.shape[1], 1, heads.shape[3], -1)).sum(-2)),
        Right("float64_inside", lambda heads, W_O: _contributions(
            heads.double(), W_O.double()).to(heads.dtype)),
    ),
)  # fmt: skip
