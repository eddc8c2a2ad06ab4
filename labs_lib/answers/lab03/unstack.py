"""Answers to unstack_from_fused_qkv: the small matrices taken out of a fused one."""

from __future__ import annotations

import torch

from labs_lib.attention import fused
from labs_lib.attention.heads import split_heads

from ..kit import Answer, Right, Wrong


def unstack_from_fused_qkv(W_QKV, n_head, interleaved=False):
    """W_Q, W_K and W_V, each [n_head, d_in, head_dim], out of [d_in, 3 * n_head * head_dim].

    Raises ValueError when the columns are not a whole number of heads.
    """
    if not interleaved:
        return fused.unstack_from_fused_qkv(W_QKV, n_head)
    blocks = fused.unstack_projection(W_QKV, 3 * n_head)  # [n_head * 3, d_in, head_dim]
    W_Q, W_K, W_V = (blocks[letter::3] for letter in range(3))
    return W_Q, W_K, W_V


def _thirds(turn):
    """A program that cuts off three thirds, whatever the layout, and turns each as it is told."""
    return lambda W, n_head, interleaved=False: tuple(turn(t, n_head) for t in W.chunk(3, dim=1))


def _order(first, second, third):
    def program(W, n_head, interleaved=False):
        q, k, v = unstack_from_fused_qkv(W, n_head, interleaved)
        named = {"q": q, "k": k, "v": v}
        return named[first], named[second], named[third]

    return program


def _columns_innermost(W, n_head, interleaved=False):
    cut = (n_head, -1, 3) if interleaved else (3, -1, n_head)
    order = (3, 1, 0, 2) if interleaved else (1, 3, 0, 2)
    return W.unflatten(1, cut).permute(order).unbind(0)


def _interleaved_by_one_reshape(W, n_head, interleaved=False):
    if not interleaved:
        return unstack_from_fused_qkv(W, n_head)
    return W.reshape(n_head, 3, W.shape[0], -1).unbind(1)


def _interleaved_heads_by_one_reshape(W, n_head, interleaved=False):
    if not interleaved:
        return unstack_from_fused_qkv(W, n_head)
    return W.reshape(n_head, W.shape[0], -1).chunk(3, dim=-1)


def _stacked_by_one_reshape(W, n_head, interleaved=False):
    if interleaved:
        return unstack_from_fused_qkv(W, n_head, True)
    return tuple(third.reshape(n_head, W.shape[0], -1) for third in W.chunk(3, dim=1))


def _each(change):
    def program(W, n_head, interleaved=False):
        return tuple(change(w) for w in unstack_from_fused_qkv(W, n_head, interleaved))

    return program


def _starts(letter, n_head, interleaved):
    if interleaved:
        return range(letter, 3 * n_head, 3)
    return range(letter * n_head, (letter + 1) * n_head)


def _by_slices(W_QKV, n_head, interleaved=False):
    D = W_QKV.shape[1] // (3 * n_head)

    def block(letter, head):
        start = (3 * head + letter if interleaved else letter * n_head + head) * D
        return W_QKV[:, start : start + D]

    return tuple(torch.stack([block(t, h) for h in range(n_head)]) for t in range(3))


def _by_unflatten(W_QKV, n_head, interleaved=False):
    if interleaved:
        return W_QKV.unflatten(1, (n_head, 3, -1)).permute(2, 1, 0, 3).unbind()
    return W_QKV.unflatten(1, (3, n_head, -1)).permute(1, 2, 0, 3).unbind()


def _by_split(W_QKV, n_head, layout=False):
    d_in, columns = W_QKV.shape
    if layout:
        W_QKV = W_QKV.view(d_in, n_head, 3, -1).swapaxes(1, 2).reshape(d_in, columns)
    thirds = torch.split(W_QKV, columns // 3, dim=1)
    return [torch.stack(third.chunk(n_head, dim=1)) for third in thirds]


def _every_third_column(cut, stacked_too):
    """A program that takes columns 0, 3, 6, ... for q, in both layouts or in one."""

    def program(W, n_head, interleaved=False):
        if not (interleaved or stacked_too):
            return unstack_from_fused_qkv(W, n_head)
        return tuple(cut(W[:, letter::3], n_head) for letter in range(3))

    return program


def _into_heads(W, n_head):
    return W.unflatten(1, (n_head, -1)).transpose(0, 1)


def _share_of_a_head(W, n_head):
    """What head_dim becomes where the three letters are forgotten."""
    return W.shape[1] // n_head


def _width_of_a_letter(W, n_head):
    """What head_dim becomes where the heads are forgotten."""
    return W.shape[1] // 3


def _share_of_the_rows(W, n_head):
    """What head_dim becomes where it is made of d_in."""
    return W.shape[0] // n_head


def _slices(head_dim):
    """A program that slices blocks of `head_dim(W, n_head)` columns, one after the other."""

    def program(W, n_head, interleaved=False):
        D = head_dim(W, n_head)
        starts = [[s * D for s in _starts(letter, n_head, interleaved)] for letter in range(3)]
        return tuple(torch.stack([W[:, s : s + D] for s in mine]) for mine in starts)

    return program


def _slices_from_each_third(W, n_head, interleaved=False):
    D, third = _share_of_a_head(W, n_head), W.shape[1] // 3
    starts = [[letter * third + h * D for h in range(n_head)] for letter in range(3)]
    return tuple(torch.stack([W[:, s : s + D] for s in mine]) for mine in starts)


def _cut(head_dim, cut):
    """A program that names `head_dim(W, n_head)` as a size when it cuts the columns."""

    def program(W, n_head, interleaved=False):
        letters_and_heads = (n_head, 3) if interleaved else (3, n_head)
        blocks = cut(W, (*letters_and_heads, head_dim(W, n_head)))
        return blocks.permute((2, 1, 0, 3) if interleaved else (1, 2, 0, 3)).unbind(0)

    return program


def _viewed(W, sizes):
    return W.view(W.shape[0], *sizes)


def _unflattened(W, sizes):
    return W.unflatten(1, sizes)


_THE_3_FORGOTTEN = (
    "head_dim is taken to be W_QKV.shape[1] // n_head. That is the share of one head in all\n"
    "three letters: its q, its k and its v are in it. How wide is one of the three?"
)
_N_HEAD_FORGOTTEN = (
    "head_dim is taken to be W_QKV.shape[1] // 3. That is how wide one letter is, with all\n"
    "of its heads. How wide is one of them?"
)
_FROM_D_IN = (
    "head_dim is made of the rows of W_QKV, as d_in // n_head. The rows are the numbers that\n"
    "come in; how wide a head is, only the columns say."
)
_MIXED = (
    "The right third of the columns, then a direct reshape to [n_head, d_in, head_dim].\n"
    "That keeps the order of the numbers and so gives a head rows of several heads. Cut\n"
    "the columns first, then move the axes."
)
_INTERLEAVED_MIXED = (
    "The interleaved matrix is reshaped to its heads in one step. That keeps the order of the\n"
    "numbers, so that a head gets whole rows of the fused matrix. Only the axis of the columns\n"
    "may be cut; move the axes after."
)
_ROWS_CUT = (
    "chunk cuts the rows where no dim is given, and so a letter gets rows of the fused matrix.\n"
    "Letters own columns: axis 1 is to be cut."
)
_ONE_BY_ONE = (
    "The columns of a letter are picked one by one, every third of them. In neither layout do\n"
    "the letters change from column to column: head_dim neighbours belong to the same head of\n"
    "the same letter. Pick whole blocks."
)

UNSTACK_FROM_FUSED_QKV = Answer(
    reference=unstack_from_fused_qkv,
    wrong=(
        Wrong(
            "always_stacked",
            lambda W, n_head, interleaved=False: unstack_from_fused_qkv(W, n_head),
            "The interleaved matrix is read as if it were stacked: the shapes are right, and\n"
            "W_Q holds blocks of all three letters. With interleaved=True the letter changes\n"
            "from block to block and the head only every third block.",
        ),
        Wrong(
            "always_interleaved",
            lambda W, n_head, interleaved=False: unstack_from_fused_qkv(W, n_head, True),
            "The stacked matrix is read as if it were interleaved: the shapes are right, and\n"
            "W_Q holds blocks of all three letters. Unless interleaved=True all of q comes\n"
            "first.",
        ),
        Wrong(
            "layouts_exchanged",
            lambda W, n_head, interleaved=False: unstack_from_fused_qkv(W, n_head, not interleaved),
            "Each layout is read as the other one. Stacked means: all heads of q, then all of k.",
        ),
        Wrong("rows_mixed", _thirds(lambda W, n_head: W.reshape(n_head, W.shape[0], -1)), _MIXED),
        Wrong(
            "rows_cut_into_thirds",
            lambda W, n_head, interleaved=False: tuple(
                third.reshape(n_head, W.shape[0], -1) for third in W.reshape(3, W.shape[0], -1)
            ),
            "Here a reshape to [3, d_in, ...] cuts between rows, so that a letter gets whole rows\n"
            "of the fused matrix, and a head as well. A letter and a head own columns, in every\n"
            "row: only the axis of the columns may be cut.",
        ),
        Wrong("stacked_rows_mixed", _stacked_by_one_reshape, _MIXED),
        Wrong("rows_cut_by_chunk", lambda W, n, interleaved=False: W.chunk(3), _ROWS_CUT),
        Wrong(
            "rows_cut_by_chunk_and_mixed",
            lambda W, n, interleaved=False: tuple(
                rows.reshape(n, W.shape[0], -1) for rows in W.chunk(3)
            ),
            _ROWS_CUT,
        ),
        Wrong(
            "interleaved_heads_by_one_reshape",
            _interleaved_heads_by_one_reshape,
            _INTERLEAVED_MIXED,
        ),
        Wrong("interleaved_rows_mixed", _interleaved_by_one_reshape, _INTERLEAVED_MIXED),
        Wrong(
            "one_tensor_for_three",
            lambda W, n_head, interleaved=False: torch.stack(
                unstack_from_fused_qkv(W, n_head, interleaved)
            ),
            "The three letters are still one tensor, [3, n_head, d_in, head_dim]. Return three.",
        ),
        Wrong(
            "blocks_in_a_tuple",
            lambda W, n_head, interleaved=False: tuple(
                tuple(letter) for letter in unstack_from_fused_qkv(W, n_head, interleaved)
            ),
            "The blocks are right, but each letter is still a list or a tuple with one matrix for\n"
            "each head. Make one tensor of each, with the heads as its first axis.",
        ),
        Wrong(
            "a_triple_for_each_head",
            lambda W, n_head, interleaved=False: list(
                zip(*unstack_from_fused_qkv(W, n_head, interleaved), strict=True)
            ),
            "This is one triple of matrices for each head. Wanted is one tensor for each letter,\n"
            "with the heads as its first axis.",
        ),
        Wrong("every_third_column", _every_third_column(_into_heads, True), _ONE_BY_ONE),
        Wrong(
            "every_third_column_and_rows_mixed",
            _every_third_column(lambda W, n_head: W.reshape(n_head, W.shape[0], -1), True),
            _ONE_BY_ONE,
        ),
        Wrong(
            "every_third_column_if_interleaved",
            _every_third_column(_into_heads, False),
            _ONE_BY_ONE,
        ),
        Wrong(
            "every_third_column_and_no_heads",
            _every_third_column(lambda W, n_head: W, True),
            _ONE_BY_ONE,
        ),
        Wrong(
            "every_third_column_and_no_heads_if_interleaved",
            _every_third_column(lambda W, n_head: W, False),
            _ONE_BY_ONE,
        ),
        Wrong("the_3_forgotten_in_slices", _slices(_share_of_a_head), _THE_3_FORGOTTEN),
        Wrong("the_3_forgotten_in_each_third", _slices_from_each_third, _THE_3_FORGOTTEN),
        Wrong("n_head_forgotten_in_slices", _slices(_width_of_a_letter), _N_HEAD_FORGOTTEN),
        Wrong("the_3_forgotten_in_a_view", _cut(_share_of_a_head, _viewed), _THE_3_FORGOTTEN),
        Wrong(
            "the_3_forgotten_in_unflatten",
            _cut(_share_of_a_head, _unflattened),
            _THE_3_FORGOTTEN,
        ),
        Wrong("n_head_forgotten_in_a_view", _cut(_width_of_a_letter, _viewed), _N_HEAD_FORGOTTEN),
        Wrong(
            "n_head_forgotten_in_unflatten",
            _cut(_width_of_a_letter, _unflattened),
            _N_HEAD_FORGOTTEN,
        ),
        Wrong(
            "split_heads_of_a_matrix",
            lambda W, n_head, interleaved=False: split_heads(W, 3 * n_head),
            "split_heads takes [batch, seq, width] and looks for three axes; W_QKV has two. Cut\n"
            "its columns here.",
        ),
        Wrong("head_dim_from_d_in_in_a_view", _cut(_share_of_the_rows, _viewed), _FROM_D_IN),
        Wrong(
            "head_dim_from_d_in_in_unflatten", _cut(_share_of_the_rows, _unflattened), _FROM_D_IN
        ),
        Wrong("head_dim_from_d_in_in_slices", _slices(_share_of_the_rows), _FROM_D_IN),
        Wrong(
            "no_answer_for_interleaved",
            lambda W, n_head, interleaved=False: (
                None if interleaved else unstack_from_fused_qkv(W, n_head)
            ),
            "With interleaved=True nothing comes back. The columns stand in another order then;\n"
            "they still have to be taken apart.",
        ),
        Wrong(
            "heads_not_in_front",
            _each(lambda W: W.transpose(0, 1)),
            "The right numbers as [d_in, n_head, head_dim]. The head axis is wanted in front, so\n"
            "that W_Q[h] is the matrix of head h.",
        ),
        Wrong(
            "thirds_only",
            _thirds(lambda W, n_head: W),
            "The fused matrix is cut into three and no further: [d_in, n_head * head_dim]. Each\n"
            "third still holds all heads; they need an axis of their own.",
        ),
        Wrong(
            "each_matrix_transposed",
            _each(lambda W: W.transpose(1, 2)),
            "Each small matrix is turned over, [n_head, head_dim, d_in]. They are used as x @\n"
            "W_Q[h], so the inputs are the rows.",
        ),
        Wrong(
            "filled_in_float32",
            _each(lambda W: W.float()),
            "The numbers are in their places, but they are float32 whatever W_QKV is: that is\n"
            "what torch.zeros makes, unless it is told dtype=W_QKV.dtype.",
        ),
        Wrong(
            "columns_innermost",
            _columns_innermost,
            "The columns are dealt out one by one, as if neighbouring columns belonged to\n"
            "different heads. In both layouts a head's head_dim columns stay together in one\n"
            "block.",
        ),
        Wrong(
            "starts_not_multiplied",
            lambda W, n_head, interleaved=False: tuple(
                torch.stack(
                    [
                        W[:, s : s + W.shape[1] // (3 * n_head)]
                        for s in _starts(letter, n_head, interleaved)
                    ]
                )
                for letter in range(3)
            ),
            "Block b begins at column b here, so that the blocks overlap. Each is head_dim\n"
            "columns wide: where does block b begin?",
        ),
        Wrong(
            "values_before_keys",
            _order("q", "v", "k"),
            "W_K and W_V are exchanged. The order of the blocks is q, k, v.",
        ),
        Wrong(
            "keys_before_queries",
            _order("k", "q", "v"),
            "W_Q and W_K are exchanged. The order of the blocks is q, k, v.",
        ),
        Wrong(
            "queries_three_times",
            _order("q", "q", "q"),
            "W_Q comes out three times. The keys and the values have blocks of their own.",
        ),
    ),
    right=(
        Right("slices", _by_slices),
        Right("unflatten", _by_unflatten),
        Right("split_and_chunk", _by_split),
        Right(
            "float64_inside",
            lambda W, n, i=False: [w.to(W.dtype) for w in unstack_from_fused_qkv(W.double(), n, i)],
        ),
        Right("copies", _each(torch.clone)),
    ),
)
