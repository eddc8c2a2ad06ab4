"""Answers to ablate_head."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from labs_lib.attention import silencing

from ..kit import Answer, Right, Wrong


def _attend(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _out(heads, W_O):
    return heads.transpose(1, 2).flatten(2) @ W_O


def _one(like, head, axis=1):
    """True at `head` along an axis of a tensor's shape."""
    shape = [1] * like.ndim
    shape[axis] = like.shape[axis]
    return (torch.arange(like.shape[axis]) == head).view(shape)


def _changed(change):
    """A program that changes the heads' answers, `change(heads, head)`, before W_O."""

    def program(q, k, v, W_O, head, mask=None):
        return _out(change(_attend(q, k, v, mask), head), W_O)

    return program


def _silent(heads, head):
    return heads.masked_fill(_one(heads, head), 0.0)


def _scores_zeroed(q, k, v, W_O, head, mask=None):
    return _out(_attend(q.masked_fill(_one(q, head), 0.0), k, v, mask), W_O)


def _rows_with(W_O, n_head, index, value=0.0):
    blocks = W_O.unflatten(0, (n_head, -1)).clone()
    blocks[index] = value
    return blocks.flatten(0, 1)


def _columns_of_w_o(q, k, v, W_O, head, mask=None):
    width = q.shape[3]
    keep = torch.ones(W_O.shape[1], dtype=torch.bool)
    keep[head * width : (head + 1) * width] = False
    return _out(_attend(q, k, v, mask), W_O * keep)


def _rows_dealt_out(q, k, v, W_O, head, mask=None):
    keep = torch.arange(W_O.shape[0]) % q.shape[1] != head
    return _out(_attend(q, k, v, mask), W_O * keep[:, None])


def _in_place(q, k, v, W_O, head, mask=None):
    heads = _attend(q, k, v, mask).clone()
    heads[:, head] = 0
    return _out(heads, W_O)


def _weights_zeroed_in_place(q, k, v, W_O, head, mask=None):
    scores = q @ k.mT / q.shape[3] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = scores.softmax(-1)
    weights[:, head] = 0.0
    return _out(weights @ v, W_O)


def _removed(q, k, v, W_O, head, mask=None):
    left = [h for h in range(q.shape[1]) if h != head]
    rows = W_O.unflatten(0, (q.shape[1], -1))[left].flatten(0, 1)
    return _out(_attend(q[:, left], k[:, left], v[:, left], mask), rows)


def _summed_up(q, k, v, W_O, head, mask=None):
    heads, rows = _attend(q, k, v, mask), W_O.unflatten(0, (q.shape[1], -1))
    return sum(heads[:, h] @ rows[h] for h in range(q.shape[1]) if h != head)


def _subtracted(q, k, v, W_O, head, mask=None):
    heads, rows = _attend(q, k, v, mask), W_O.unflatten(0, (q.shape[1], -1))
    return _out(heads, W_O) - heads[:, head] @ rows[head]


ABLATE_HEAD = Answer(
    reference=silencing.ablate_head,
    wrong=(
        Wrong(
            "before_the_softmax",
            _scores_zeroed,
            "The head's scores are zero, and it still speaks: softmax of equal scores looks at\n"
            "all keys alike and hands on the mean of their values. Silence what comes out.",
        ),
        Wrong(
            "a_query_silenced",
            _changed(lambda heads, head: heads.masked_fill(_one(heads, head, 2), 0.0)),
            "A query is silent, in all heads: the zeros went along the wrong axis. Heads are\n"
            "[batch, n_head, seq_q, head_dim].",
        ),
        Wrong(
            "a_number_silenced",
            _changed(lambda heads, head: heads.masked_fill(_one(heads, head, 3), 0.0)),
            "One number of every head is zero: the zeros went along head_dim.",
        ),
        Wrong(
            "a_text_silenced",
            _changed(lambda heads, head: heads.masked_fill(_one(heads, head, 0), 0.0)),
            "A whole text of the batch is silent: the zeros went along axis 0.",
        ),
        Wrong(
            "columns_of_w_o",
            _columns_of_w_o,
            "Columns of W_O are zero. Columns belong to the output's numbers, to which all heads\n"
            "add; a head's numbers meet rows of W_O.",
        ),
        Wrong(
            "rows_dealt_out",
            _rows_dealt_out,
            "Every n_head-th row of W_O is zero. A head's rows stand together: head_dim of them.",
        ),
        Wrong(
            "the_only_speaker",
            _changed(lambda heads, head: heads.masked_fill(~_one(heads, head), 0.0)),
            "Only this head speaks, all others are silent. It is the other way round.",
        ),
        Wrong(
            "the_one_after",
            _changed(lambda heads, head: _silent(heads, (head + 1) % heads.shape[1])),
            "Another head is silent, the one after. Counting starts at 0.",
        ),
        Wrong(
            "the_one_before",
            _changed(lambda heads, head: _silent(heads, (head - 1) % heads.shape[1])),
            "Another head is silent, the one before. Counting starts at 0.",
        ),
        Wrong(
            "others_louder",
            _changed(lambda heads, head: _silent(heads, head) * (
                heads.shape[1] / max(heads.shape[1] - 1, 1))),
            "The others speak louder, to make up for the silent one, as in dropout. They are to\n"
            "go on as before.",
        ),
        Wrong(
            "replaced_by_the_mean",
            _changed(lambda heads, head: torch.where(
                _one(heads, head), heads.mean(2, keepdim=True), heads)),
            "The head hands on its mean over the queries: it has stopped choosing, but it still\n"
            "speaks. (That is mean ablation, another measurement.)",
        ),
        Wrong(
            "nobody_silenced",
            _changed(lambda heads, head: heads),
            "This is the whole layer: no head is silent.",
        ),
        Wrong(
            "mask_ignored",
            lambda q, k, v, W_O, head, mask=None: _out(_silent(_attend(q, k, v), head), W_O),
            "Without a mask it is right; the mask changes nothing here.",
        ),
        Wrong(
            "without_w_o",
            lambda q, k, v, W_O, head, mask=None: _silent(_attend(q, k, v, mask), head).transpose(
                1, 2).flatten(2),
            "W_O is never used: these are the heads side by side.",
        ),
        Wrong(
            "one_column_of_w_o",
            lambda q, k, v, W_O, head, mask=None: _out(_attend(q, k, v, mask), W_O * (
                torch.arange(W_O.shape[1]) != head)),
            "One column of W_O is zero: that is one number of the output. A head's numbers meet\n"
            "rows of W_O, head_dim of them.",
        ),
        Wrong(
            "one_number_of_concat",
            lambda q, k, v, W_O, head, mask=None: (_attend(q, k, v, mask).transpose(1, 2).flatten(
                2) * (torch.arange(W_O.shape[0]) != head)) @ W_O,
            "After the merge, place `head` is one number of one head. A head has head_dim places\n"
            "there; before the merge it has an axis of its own.",
        ),
        Wrong(
            "reshaped_without_a_swap",
            lambda q, k, v, W_O, head, mask=None: _silent(_attend(q, k, v, mask), head).reshape(
                len(q), q.shape[2], -1) @ W_O,
            "The right head is silent, and the merge mixes tokens into heads: swap head and token\n"
            "before you join head and head_dim.",
        ),
        Wrong(
            "says_its_mean",
            _changed(lambda heads, head: torch.where(
                _one(heads, head), heads.mean((0, 2, 3), keepdim=True), heads)),
            "The head says its mean. That is another experiment; here it says nothing: zeros.",
        ),
        Wrong(
            "all_heads_before_it",
            _changed(lambda heads, head: torch.cat(
                [torch.zeros_like(heads[:, :head]), heads[:, head:]], dim=1)),
            "All heads before this one are silent, and it speaks: `[:head]` ends before head.",
        ),
        Wrong(
            "gone_from_the_row",
            lambda q, k, v, W_O, head, mask=None: _out(_attend(q, k, v, mask)[:, [
                h for h in range(q.shape[1]) if h != head]], W_O),
            "The head is gone and not silent: the row is narrower now than W_O has rows. Zeros\n"
            "keep its place.",
        ),
        Wrong(
            "weights_zeroed_in_place",
            _weights_zeroed_in_place,
            "Weights of 0 do silence the head. But they are written into the softmax's own\n"
            "result, which autograd needs for the gradient: work on a copy.",
        ),
    ),
    right=(
        Right("in_place_on_a_copy", _in_place),
        Right("value_zeroed", lambda q, k, v, W_O, head, mask=None: _out(_attend(
            q, k, v.masked_fill(_one(v, head), 0.0), mask), W_O)),
        Right("rows_of_w_o_zeroed", lambda q, k, v, W_O, head, mask=None: _out(_attend(
            q, k, v, mask), _rows_with(W_O, q.shape[1], head))),
        Right("head_left_out", _removed),
        Right("sum_over_the_others", _summed_up),
        Right("contribution_subtracted", _subtracted),
    ),
)  # fmt: skip
