"""Answers to prune."""

from __future__ import annotations

import torch

from labs_lib.attention import silencing

from ..kit import Answer, Right, Wrong


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


def _prune_dealt_out(W_Q, W_K, W_V, W_O, n_head, gone):
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


def _w_o_rescaled(W_Q, W_K, W_V, W_O, n_head, gone):
    *others, rows = _prune_with()(W_Q, W_K, W_V, W_O, n_head, gone)
    return *others, rows * n_head / (n_head - len(gone))


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


def _one_column_a_head(W_Q, W_K, W_V, W_O, n_head, gone):
    left = _left(n_head, gone)
    return W_Q[:, left], W_K[:, left], W_V[:, left], W_O[left]


def _width_from_d_model(W_Q, W_K, W_V, W_O, n_head, gone):
    width = W_Q.shape[0] // n_head
    left = [c for h in _left(n_head, gone) for c in range(h * width, (h + 1) * width)]
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
            "rows_of_w_o_zeroed",
            lambda Q, K, V, O, n_head, gone: (Q, K, V, _prune_zeros(Q, K, V, O, n_head, gone)[3]),
            "That silences the heads, and nothing is smaller: all matrices are as large as\n"
            "before. A pruned layer has no place for them.",
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
            "dealt_out",
            _prune_dealt_out,
            "Every n_head-th column went. A head's columns stand together: head_dim of them.",
        ),
        Wrong(
            "single_columns",
            _numbers_only,
            "Single columns went, those with the heads' numbers. A head has head_dim columns.",
        ),
        Wrong(
            "one_column_a_head",
            _one_column_a_head,
            "What is left has one column for each head that stays: W[:, keep] takes columns, not\n"
            "heads. A head has head_dim of them; give the heads an axis of their own first.",
        ),
        Wrong(
            "width_from_d_model",
            _width_from_d_model,
            "head_dim is taken from the rows of W_Q, d_model // n_head. The columns say how wide\n"
            "the heads are, n_head * head_dim, and that needn't be d_model.",
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
            "as_many_from_the_back",
            lambda Q, K, V, O, n_head, gone: (
                *(W[:, : (n_head - len(gone)) * W.shape[1] // n_head] for W in (Q, K, V)),
                O[: (n_head - len(gone)) * O.shape[0] // n_head]),
            "The right number of heads went, always the last ones. The list says which.",
        ),
        Wrong(
            "w_o_before_w_v",
            lambda Q, K, V, O, n_head, gone: tuple(
                _prune_with()(Q, K, V, O, n_head, gone)[i] for i in (0, 1, 3, 2)),
            "W_V and W_O have changed places: the order is W_Q, W_K, W_V, W_O.",
        ),
        Wrong(
            "rows_of_all",
            _prune_with(axes=(0, 0, 0, 0)),
            "W_Q, W_K and W_V lost rows: those are the token's numbers that come in, and all\n"
            "heads read them. A head is a block of columns there, and of rows in W_O alone.",
        ),
        Wrong(
            "w_o_rescaled",
            _w_o_rescaled,
            "W_O is made larger, to make up for the heads that are gone. That is dropout's way;\n"
            "here the layer has to answer as the whole one does with these heads silent.",
        ),
        Wrong(
            "n_head_behind_them",
            lambda Q, K, V, O, n_head, gone: (
                *_prune_with()(Q, K, V, O, n_head, gone), n_head - len(gone)),
            "The matrices are right. They alone are wanted: four, without the number of heads.",
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
