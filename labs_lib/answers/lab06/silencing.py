"""Answers to ablate_head and prune."""

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


def _interleaved_rows(q, k, v, W_O, head, mask=None):
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
            "[batch, n_head, T_q, head_dim].",
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
            "interleaved_rows",
            _interleaved_rows,
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


def _take(W, axis, n_head, left):
    return W.unflatten(axis, (n_head, -1)).index_select(axis, torch.tensor(left)).flatten(
        axis, axis + 1)  # fmt: skip


def _left(n_head, gone):
    return [h for h in range(n_head) if h not in gone]


def _prune_with(left=_left, axes=(1, 1, 1, 0)):
    """A program that takes other heads, or cuts along other axes."""

    def program(W_Q, W_K, W_V, W_O, n_head, gone):
        return tuple(
            _take(W, axis, n_head, left(n_head, gone))
            for W, axis in zip((W_Q, W_K, W_V, W_O), axes, strict=True)
        )

    return program


def _prune_zeros(W_Q, W_K, W_V, W_O, n_head, gone):
    keep = torch.tensor([h not in gone for h in range(n_head)])
    wide = keep.repeat_interleave(W_O.shape[0] // n_head)
    return W_Q * wide, W_K * wide, W_V * wide, W_O * wide[:, None]


def _prune_interleaved(W_Q, W_K, W_V, W_O, n_head, gone):
    keep = torch.tensor([c % n_head not in gone for c in range(W_O.shape[0])])
    return W_Q[:, keep], W_K[:, keep], W_V[:, keep], W_O[keep]


def _one_after_another(W_Q, W_K, W_V, W_O, n_head, gone):
    """Deletes by the numbers of the whole layer, though the heads behind have moved up."""
    width = W_O.shape[0] // n_head
    matrices = [W_Q.T, W_K.T, W_V.T, W_O]
    for head in gone:
        matrices = [torch.cat([W[: head * width], W[(head + 1) * width :]]) for W in matrices]
    return *(W.T for W in matrices[:3]), matrices[3]


def _from_the_back(W_Q, W_K, W_V, W_O, n_head, gone):
    return _one_after_another(W_Q, W_K, W_V, W_O, n_head, sorted(gone, reverse=True))


def _by_chunks(W_Q, W_K, W_V, W_O, n_head, gone):
    def cut(W, axis):
        parts = [p for h, p in enumerate(W.chunk(n_head, dim=axis)) if h not in gone]
        return torch.cat(parts, dim=axis)

    return cut(W_Q, 1), cut(W_K, 1), cut(W_V, 1), cut(W_O, 0)


def _by_mask(W_Q, W_K, W_V, W_O, n_head, gone):
    width = W_O.shape[0] // n_head
    keep = torch.tensor([c // width not in set(gone) for c in range(W_O.shape[0])])
    return [W_Q[:, keep], W_K[:, keep], W_V[:, keep], W_O[keep]]


def _numbers_only(W_Q, W_K, W_V, W_O, n_head, gone):
    """Takes single columns by the heads' numbers."""
    left = _left(W_O.shape[0], gone)
    return W_Q[:, left], W_K[:, left], W_V[:, left], W_O[left]


PRUNE = Answer(
    reference=silencing.prune,
    wrong=(
        Wrong(
            "keeps_the_wrong_ones",
            _prune_with(lambda n_head, gone: sorted(gone) or list(range(n_head))),
            "What is left are the heads that were to go.",
        ),
        Wrong(
            "zeros",
            _prune_zeros,
            "The heads are set to zero and still there: the matrices are as large as before. A\n"
            "pruned layer is smaller.",
        ),
        Wrong(
            "w_o_left_whole",
            lambda W_Q, W_K, W_V, W_O, n_head, gone: (
                *_by_chunks(W_Q, W_K, W_V, W_O, n_head, gone)[:3], W_O.clone()),
            "W_O is whole. The heads side by side are narrower now, so W_O has rows that nothing\n"
            "meets: they have to go as well.",
        ),
        Wrong(
            "w_o_only",
            lambda W_Q, W_K, W_V, W_O, n_head, gone: (W_Q.clone(), W_K.clone(), W_V.clone(),
                _by_chunks(W_Q, W_K, W_V, W_O, n_head, gone)[3]),
            "Only W_O is cut. The heads are still computed, by W_Q, W_K and W_V.",
        ),
        Wrong(
            "queries_only",
            lambda W_Q, W_K, W_V, W_O, n_head, gone: (
                _by_chunks(W_Q, W_K, W_V, W_O, n_head, gone)[0], W_K.clone(), W_V.clone(),
                _by_chunks(W_Q, W_K, W_V, W_O, n_head, gone)[3]),
            "W_K and W_V are whole. A head has its own part in all four matrices.",
        ),
        Wrong(
            "columns_of_w_o",
            lambda W_Q, W_K, W_V, W_O, n_head, gone: (
                *_by_chunks(W_Q, W_K, W_V, W_O, n_head, gone)[:3], torch.cat(
                    [p for h, p in enumerate(W_O.tensor_split(n_head, dim=1)) if h not in gone],
                    dim=1)),
            "W_O lost columns: those are the numbers of the output, which stays as wide as the\n"
            "model. The heads are its rows.",
        ),
        Wrong(
            "interleaved",
            _prune_interleaved,
            "Every n_head-th column went. A head's columns stand together: head_dim of them.",
        ),
        Wrong(
            "single_columns",
            _numbers_only,
            "Single columns went, those with the heads' numbers. A head has head_dim columns.",
        ),
        Wrong(
            "one_after_another",
            _one_after_another,
            "One head is right, several are not: after the first is gone, the heads behind it\n"
            "have moved up and their numbers no longer fit. Choose what stays all at once.",
        ),
        Wrong(
            "order_lost",
            _prune_with(lambda n_head, gone: _left(n_head, gone)[::-1]),
            "The heads that stay stand in another order.",
        ),
        Wrong(
            "one_number_off",
            _prune_with(lambda n_head, gone: _left(
                n_head, [(h + 1) % n_head for h in gone])),
            "Other heads went, each the one after. Counting starts at 0.",
        ),
        Wrong(
            "heads_still_an_axis",
            lambda Q, K, V, O, n_head, gone: tuple(
                W.unflatten(axis, (n_head, -1)).index_select(axis, torch.tensor(
                    [h for h in range(n_head) if h not in gone]))
                for W, axis in ((Q, 1), (K, 1), (V, 1), (O, 0))),
            "The right heads are left, and they still have an axis of their own. Join it with\n"
            "head_dim again: a matrix has two axes.",
        ),
        Wrong(
            "as_many_from_the_front",
            lambda Q, K, V, O, n_head, gone: (
                *(W[:, len(gone) * W.shape[1] // n_head :] for W in (Q, K, V)),
                O[len(gone) * O.shape[0] // n_head :]),
            "The right number of heads went, always the first ones. The list says which.",
        ),
        Wrong(
            "n_head_behind_them",
            lambda Q, K, V, O, n_head, gone: (
                *_prune_with()(Q, K, V, O, n_head, gone), n_head - len(gone)),
            "The matrices are right. They alone are asked: four, without the number of heads.",
        ),
    ),
    right=(
        Right("chunks", _by_chunks),
        Right("mask", _by_mask),
        Right("from_the_back", _from_the_back),
        Right("index_select", _prune_with()),
        Right("a_set", lambda W_Q, W_K, W_V, W_O, n_head, gone: silencing.prune(
            W_Q, W_K, W_V, W_O, n_head, set(gone))),
    ),
)  # fmt: skip
