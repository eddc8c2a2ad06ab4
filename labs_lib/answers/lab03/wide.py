"""Answers about the wide matrix: small ones stacked into it, and taken out of it again."""

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
            "These are Python lists, as in the loop above. One tensor is asked.",
        ),
        Wrong(
            "unchanged",
            lambda W: W.transpose(0, 1),
            "The three axes are in the right order and still three. Join the last two into one.",
        ),
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
        Wrong(
            "rows_mixed",
            _thirds(lambda W, n_head: W.reshape(n_head, W.shape[0], -1)),
            "The right third of the columns, then a direct reshape to [n_head, d_in, head_dim].\n"
            "That keeps the order of the numbers and so gives a head rows of several heads. Cut\n"
            "the columns first, then move the axes.",
        ),
        Wrong(
            "rows_cut_into_thirds",
            lambda W, n_head, interleaved=False: tuple(
                third.reshape(n_head, W.shape[0], -1) for third in W.reshape(3, W.shape[0], -1)
            ),
            "Here a reshape to [3, d_in, ...] cuts between rows, so that a letter gets whole rows\n"
            "of the fused matrix, and a head as well. A letter and a head own columns, in every\n"
            "row: only the axis of the columns may be cut.",
        ),
        Wrong(
            "interleaved_rows_mixed",
            _interleaved_by_one_reshape,
            "The interleaved matrix is reshaped straight to [n_head, 3, d_in, head_dim]. That\n"
            "keeps the order of the numbers, so that a head gets whole rows of the fused matrix.\n"
            "Only the axis of the columns may be cut; move the axes after.",
        ),
        Wrong(
            "one_tensor_for_three",
            lambda W, n_head, interleaved=False: torch.stack(
                unstack_from_fused_qkv(W, n_head, interleaved)
            ),
            "The three letters are still one tensor, [3, n_head, d_in, head_dim]. Return three.",
        ),
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
            "The right numbers as [d_in, n_head, head_dim]. The head axis is asked in front, so\n"
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
