"""Lab 08: slips of a first try in shared heads and in merging heads."""

from __future__ import annotations

import math

import torch

from ..kit import Wrong
from . import pooling
from .grouped import (
    _by_head,
    _by_head_again,
    _by_token,
    _by_token_again,
    _checked,
    _folded,
)


def _heads_against_heads(q, k, v, mask=None):
    _checked(q.shape[1], k.shape[1])
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


def _scale_by_heads(q, k, v, mask=None):
    return _folded()(q * math.sqrt(q.shape[3] / q.shape[1]), k, v, mask)


def _whole_mask_for_a_head(q, k, v, mask=None):
    _checked(q.shape[1], k.shape[1])
    group, outs = q.shape[1] // k.shape[1], []
    for h in range(q.shape[1]):
        scores = q[:, h] @ k[:, h // group].mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        outs.append(scores.softmax(-1) @ v[:, h // group])
    return torch.stack(outs, 1)


def _mask_on_folded_rows(q, k, v, mask=None):
    n_kv_head = k.shape[1]
    _checked(q.shape[1], n_kv_head)
    scores = _by_head(q, n_kv_head, q.shape[1] // n_kv_head) @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return _by_head_again(scores.softmax(-1) @ v, q.shape[1], q.shape[2])


def _mask_along_the_keys(q, k, v, mask=None):
    n_kv_head = k.shape[1]
    _checked(q.shape[1], n_kv_head)
    group = q.shape[1] // n_kv_head
    scores = _by_head(q, n_kv_head, group) @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask.repeat(*[1] * (mask.ndim - 1), group), -math.inf)
    return _by_head_again(scores.softmax(-1) @ v, q.shape[1], q.shape[2])


def _refused_by_torch(q, k, v, mask=None):
    if q.shape[1] % k.shape[1] == 0:
        return _folded()(q, k, v, mask)
    return _by_head(q, k.shape[1], q.shape[1] // k.shape[1])


def _width_of_a_query(q, k, v, mask=None):
    def again(out, n_head, seq_q):
        return out.reshape(out.shape[0], n_head, seq_q, q.shape[-1])

    return _folded(None, again)(q, k, v, mask)


GROUPED_SLIPS = (
    Wrong("whole_mask_for_a_head", _whole_mask_for_a_head,
        "A mask [batch, n_head, seq_q, seq_k] is laid whole on the scores of one head. Take that\n"
        "head's part of it; a mask [seq_q, seq_k] is the same for all heads."),
    Wrong("scale_by_heads", _scale_by_heads,
        "The scores are divided by the root of n_head. A score is a sum over head_dim products."),
    Wrong("heads_against_heads", _heads_against_heads,
        "q has n_head heads and k only n_kv_head, and a product goes head by head. First bring\n"
        "the queries of a group together, as rows over one key head."),
    Wrong("mask_on_folded_rows", _mask_on_folded_rows,
        "The mask has seq_q rows and the folded scores group * seq_q. Give the scores their\n"
        "[batch, n_head, seq_q, seq_k] back before you mask them."),
    Wrong("mask_repeated_along_the_keys", _mask_along_the_keys,
        "The mask is repeated along its last axis, that of the keys. The folded scores have more\n"
        "rows than the mask, not more columns."),
    Wrong("mask_in_the_order_of_heads", _folded(_by_token, _by_token_again, _by_head),
        "The queries are folded token by token and the mask's rows head by head. Both have to\n"
        "stand in the same order."),
    Wrong("answers_left_folded", _folded(None, lambda out, n_head, seq_q: out),
        "The answers are still folded, group * seq_q rows for each key/value head. Give them back\n"
        "the shape that the queries had."),
    Wrong("answers_read_by_token", _folded(None, _by_token_again),
        "The queries are folded head by head and the answers read token by token. Undo the same\n"
        "order that you made."),
    Wrong("heads_joined", _folded(None, lambda out, n_head, seq_q: _by_head_again(
        out, n_head, seq_q).transpose(1, 2).flatten(2)),
        "The heads are joined to one width. Wanted are the heads' answers, still apart."),
    Wrong("heads_under_one_another", _folded(None, lambda out, n_head, seq_q: _by_head_again(
        out, n_head, seq_q).flatten(1, 2)),
        "The heads' answers stand under one another on the axis of the tokens. Heads have an axis\n"
        "of their own: stack, not cat."),
    Wrong("width_of_a_query", _width_of_a_query,
        "The answers are given head_dim numbers, those of a query. An answer is a mean of values\n"
        "and as wide as they are, d_v."),
    Wrong("refused_by_torch", _refused_by_torch,
        "An n_kv_head that doesn't divide n_head is not refused by you: torch stops with an error\n"
        "of its own. Test it first and raise a ValueError."),
)  # fmt: skip


def _keys_twice(W_K, W_V, n_head, n_kv_head):
    pooling._checked(n_head, n_kv_head)
    return (pooling._mean(W_K, n_head, n_kv_head),) * 2


def _read_as_rows(W, n_head, n_kv_head):
    heads = W.reshape(n_kv_head, n_head // n_kv_head, -1, W.shape[0])
    return heads.mean(1).reshape(W.shape[0], -1)


POOLING_SLIPS = (
    Wrong("groups_averaged", pooling._each(
        lambda W, n, m: pooling._grouped(W, n, m).mean(1).flatten(1)),
        "The mean runs over the groups and leaves one head for each place in a group. It is to\n"
        "run within a group and leave one head for each group."),
    Wrong("numbers_averaged", pooling._each(
        lambda W, n, m: pooling._grouped(W, n, m).mean(-1).flatten(1)),
        "The mean runs over the numbers of a head and leaves one of each. It is to run over the\n"
        "heads of a group and leave head_dim numbers."),
    Wrong("one_number_for_a_group", pooling._each(lambda W, n, m: (
        W.unflatten(1, (m, -1)).mean(-1))),
        "One number is left of each group: the mean runs over all its columns. Give the heads of\n"
        "a group an axis of their own first."),
    Wrong("heads_left_apart", pooling._each(lambda W, n, m: pooling._grouped(W, n, m).mean(2)),
        "The means are right, but they still have an axis for heads. A matrix has two axes: join\n"
        "the last ones."),
    Wrong("axis_of_one_left", pooling._each(
        lambda W, n, m: pooling._grouped(W, n, m).mean(2, keepdim=True)),
        "The means still have an axis for heads, and one of length 1 (keepdim). A matrix has two\n"
        "axes: join the last ones."),
    Wrong("rows_merged", pooling._each(lambda W, n, m: W.unflatten(0, (m, -1)).mean(1)),
        "Rows are averaged: those are the token's numbers that come in. Heads are blocks of\n"
        "columns."),
    Wrong("keys_twice", _keys_twice,
        "The second matrix is the merged W_K again. W_V has to be merged, too."),
    Wrong("read_as_rows", pooling._each(_read_as_rows),
        "Rows are taken for columns: a direct reshape with d_model last mixes both. d_model is\n"
        "the first axis and stays there."),
)  # fmt: skip
