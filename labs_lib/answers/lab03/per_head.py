"""Answers to per_head_qkv: a small matrix for each head."""

from __future__ import annotations

import functools

import torch

from labs_lib.attention import per_head

from ..kit import Answer, Right, Wrong, decorated


def _all_three(one_letter):
    """A program that does the same wrong thing to q, to k and to v."""

    def program(x, W_Q, W_K, W_V):
        return tuple(one_letter(x, W) for W in (W_Q, W_K, W_V))

    return program


def _own_slice(x, W):
    n_head, d_in = W.shape[:2]
    width = d_in // n_head
    parts = [slice(h * width, (h + 1) * width) for h in range(n_head)]
    return torch.stack([x[..., part] @ W[h, part] for h, part in enumerate(parts)], dim=1)


def _own_slice_first_rows(x, W):
    n_head, d_in = W.shape[:2]
    width = d_in // n_head
    parts = [x[..., h * width : (h + 1) * width] for h in range(n_head)]
    return torch.stack([part @ w[:width] for part, w in zip(parts, W, strict=True)], dim=1)


def _own_slice_whole_matrix(width):
    """A letter's program that multiplies `width(W)` of the token's numbers by all of a matrix."""

    def letter(x, W):
        D = width(W)
        return torch.stack([x[..., h * D : (h + 1) * D] @ w for h, w in enumerate(W)], dim=1)

    return letter


def _wide_by_one_reshape(x, W):
    wide = x @ W.reshape(x.shape[-1], -1)
    return wide.unflatten(-1, (W.shape[0], W.shape[2])).transpose(1, 2)


def _direct_reshape(x, W):
    (n_head, _, head_dim), (batch, seq, _) = W.shape, x.shape
    return torch.cat([x @ w for w in W], dim=-1).reshape(batch, n_head, seq, head_dim)


def _filled(x, W_Q, W_K, W_V, *, dtype=None):
    answers = []
    for W in (W_Q, W_K, W_V):
        out = x.new_zeros(x.shape[0], W.shape[0], x.shape[1], W.shape[2], dtype=dtype)
        for h in range(W.shape[0]):
            out[:, h] += x @ W[h]
        answers.append(out)
    return answers


def _through_the_wide_matrix(x, W_Q, W_K, W_V):
    def heads(W):
        wide = x @ W.permute(1, 0, 2).reshape(x.shape[-1], -1)
        return wide.unflatten(-1, (W.shape[0], W.shape[2])).transpose(1, 2)

    return heads(W_Q), heads(W_K), heads(W_V)


def _a_triple_for_each_head(x, *letters):
    return [tuple(x @ w for w in of_a_head) for of_a_head in zip(*letters, strict=True)]


_SLICE_OF_THE_TOKEN = (
    "Here head h takes its own slice of the token and multiplies it by its whole matrix. That\n"
    "has d_in rows, one for each number of the token: every head reads the whole token."
)
_TURNED = (
    "The small matrices were turned over before the product. They are [d_in, head_dim] and\n"
    "used as x @ W_Q[h]: the inputs are the rows already."
)

PER_HEAD_QKV = Answer(
    reference=per_head.per_head_qkv,
    wrong=(
        Wrong(
            "reads_a_slice",
            _all_three(_own_slice),
            "Here head h reads only its own slice of the token. That is what many pictures\n"
            "show, and it is another layer: a head's matrix has d_in rows, so it reads the\n"
            "whole token.",
        ),
        Wrong(
            "reads_a_slice_with_the_first_rows",
            _all_three(_own_slice_first_rows),
            "Here head h reads only its own slice of the token, with the first rows of its\n"
            "matrix. A head's matrix has d_in rows, one for each number of the token: it reads\n"
            "the whole token.",
        ),
        Wrong(
            "a_slice_of_d_in_meets_the_whole_matrix",
            _all_three(_own_slice_whole_matrix(lambda W: W.shape[1] // W.shape[0])),
            _SLICE_OF_THE_TOKEN,
        ),
        Wrong(
            "a_slice_of_head_dim_meets_the_whole_matrix",
            _all_three(_own_slice_whole_matrix(lambda W: W.shape[2])),
            _SLICE_OF_THE_TOKEN,
        ),
        Wrong(
            "wide_matrix_by_one_reshape",
            _all_three(_wide_by_one_reshape),
            "[n_head, d_in, head_dim] was reshaped straight to [d_in, n_head * head_dim]. That\n"
            "keeps the order of the numbers, so that rows of one head come to stand side by side\n"
            "in one row. To lay matrices side by side, d_in has to become the first axis before.",
        ),
        Wrong(
            "lists_of_heads",
            lambda x, *letters: tuple([x @ w for w in W] for W in letters),
            "The products are right, but each letter is still a Python list with one tensor for\n"
            "each head. Make one tensor of each list, with an axis for the heads.",
        ),
        Wrong(
            "a_triple_for_each_head",
            _a_triple_for_each_head,
            "This is one triple (q, k, v) for each head; wanted is one tensor for each letter.\n"
            "Its heads are an axis: collect the products of one letter, and make one tensor of\n"
            "them.",
        ),
        Wrong(
            "a_tensor_for_each_head",
            lambda x, *letters: [torch.stack(t) for t in _a_triple_for_each_head(x, *letters)],
            "This is one tensor for each head, with the three letters in it; wanted is one tensor\n"
            "for each letter, with the heads in it. Collect the products of one letter, and make\n"
            "one tensor of them.",
        ),
        Wrong(
            "only_the_queries",
            lambda x, W_Q, W_K, W_V: x[:, None] @ W_Q,
            "Only the queries come back. Three tensors are wanted: return q, k, v.",
        ),
        Wrong(
            "one_tensor_for_three",
            lambda x, *letters: torch.stack([x[:, None] @ W for W in letters]),
            "q, k and v are joined to one tensor. They are wanted as three: return q, k, v.",
        ),
        Wrong(
            "direct_reshape",
            _all_three(_direct_reshape),
            "The shape is right and the numbers stand in the wrong heads: heads side by side\n"
            "were reshaped to [batch, n_head, seq, head_dim], which puts several tokens into\n"
            "one head. A reshape keeps the order of the numbers; give each head its own axis\n"
            "instead.",
        ),
        Wrong(
            "heads_after_seq",
            _all_three(lambda x, W: torch.stack([x @ w for w in W], dim=2)),
            "The head axis stands behind seq, [batch, seq, n_head, head_dim]. It is wanted right\n"
            "behind batch, so that the last two axes are one head's matrix [seq, head_dim].",
        ),
        Wrong(
            "heads_first",
            _all_three(lambda x, W: torch.stack([x @ w for w in W])),
            "The head axis stands in front of batch: [n_head, batch, seq, head_dim]. Without\n"
            "dim= torch.stack puts its new axis first; it is wanted right behind batch.",
        ),
        Wrong(
            "side_by_side",
            _all_three(lambda x, W: torch.cat([x @ w for w in W], dim=-1)),
            "The heads are side by side in one axis, [batch, seq, n_head * head_dim]: torch.cat\n"
            "joins along an axis that is there. Here the heads need an axis of their own.",
        ),
        Wrong(
            "heads_in_the_batch",
            _all_three(lambda x, W: torch.stack([x @ w for w in W], 1).flatten(0, 1)),
            "Batch and heads are joined into one axis, [batch * n_head, seq, head_dim]. Some\n"
            "programs keep it so; here the two axes stay apart.",
        ),
        Wrong(
            "one_head_for_all",
            _all_three(lambda x, W: torch.stack([x @ W[0] for _ in W], dim=1)),
            "Every head says the same: all of them use the matrix of head 0. Head h needs W_Q[h].",
        ),
        Wrong(
            "only_the_last_head",
            _all_three(lambda x, W: x @ W[-1]),
            "One head's result comes back for each letter: a loop that writes each product to the\n"
            "same name keeps the last one. Collect the products of all heads.",
        ),
        Wrong(
            "only_the_first_head",
            _all_three(lambda x, W: x @ W[0]),
            "Only head 0 comes back for each letter. Each head has a matrix of its own: go\n"
            "through all of W_Q, and let `return` come after the loop, which ends there.",
        ),
        Wrong(
            "batch_meets_heads",
            _all_three(lambda x, W: x @ W),
            "x is [batch, seq, d_in] and W is [n_head, d_in, head_dim]: @ lines up the batch with\n"
            "the heads, which have nothing to do with each other. Each sequence meets each head.",
        ),
        Wrong(
            "heads_in_front_of_the_batch",
            _all_three(lambda x, W: x[None] @ W),
            "x needs an axis for the heads to meet W, right behind batch. Here the new axis\n"
            "stands in front of it, and @ lines up the batch with the heads.",
        ),
        Wrong(
            "heads_along_seq",
            _all_three(lambda x, W: torch.cat([x @ w for w in W], dim=1)),
            "The heads stand one after the other along seq, as more tokens: torch.cat joins along\n"
            "an axis that is there. Here the heads need an axis of their own.",
        ),
        Wrong(
            "heads_added_up",
            _all_three(lambda x, W: sum(x @ w for w in W)),
            "The products of the heads were added up. Each head keeps its own result, in an axis\n"
            "for the heads.",
        ),
        Wrong(
            "heads_on_their_side",
            _all_three(lambda x, W: (x[:, None] @ W).mT),
            "Each head is [head_dim, seq] here: it lies on its side. All three are wanted as\n"
            "[batch, n_head, seq, head_dim].",
        ),
        Wrong(
            "heads_last",
            _all_three(lambda x, W: torch.stack([x @ w for w in W], dim=-1)),
            "The head axis stands last, [batch, seq, head_dim, n_head]. It is wanted right behind\n"
            "batch, so that the last two axes are one head's matrix [seq, head_dim].",
        ),
        Wrong(
            "weights_turned_over",
            _all_three(lambda x, W: torch.stack([x @ w.T for w in W], dim=1)),
            _TURNED,
        ),
        Wrong(
            "weights_turned_over_all_at_once",
            _all_three(lambda x, W: x[:, None] @ W.mT),
            _TURNED,
        ),
        Wrong(
            "filled_in_float32",
            functools.partial(_filled, dtype=torch.float32),
            "The numbers are in their places, but they are float32 whatever x is: that is what\n"
            "torch.zeros makes, unless it is told dtype=x.dtype.",
        ),
        Wrong(
            "keys_first",
            lambda x, W_Q, W_K, W_V: per_head.per_head_qkv(x, W_K, W_Q, W_V),
            "What you return first are the keys, and the queries come second. The order is q, k,\n"
            "v.",
        ),
        Wrong(
            "values_first",
            lambda x, W_Q, W_K, W_V: per_head.per_head_qkv(x, W_V, W_K, W_Q),
            "What you return first are the values, and the queries come last. The order is q, k,\n"
            "v.",
        ),
        Wrong(
            "a_dictionary",
            lambda x, *letters: dict(zip("qkv", per_head.per_head_qkv(x, *letters), strict=True)),
            "q, k and v come in a dictionary. Three tensors are wanted: return q, k, v.",
        ),
        Wrong(
            "queries_three_times",
            lambda x, W_Q, W_K, W_V: per_head.per_head_qkv(x, W_Q, W_Q, W_Q),
            "q, k and v are equal: all three are made with W_Q. Each letter has its own matrices.",
        ),
        Wrong(
            "keys_from_the_queries_matrices",
            lambda x, W_Q, W_K, W_V: per_head.per_head_qkv(x, W_Q, W_Q, W_V),
            "The keys are made with W_Q, as the queries are. Each letter has its own matrices.",
        ),
        Wrong(
            "values_from_the_keys_matrices",
            lambda x, W_Q, W_K, W_V: per_head.per_head_qkv(x, W_Q, W_K, W_K),
            "The values are made with W_K, as the keys are. Each letter has its own matrices.",
        ),
        Wrong(
            "values_from_the_queries_matrices",
            lambda x, W_Q, W_K, W_V: per_head.per_head_qkv(x, W_Q, W_K, W_Q),
            "The values are made with W_Q, as the queries are. Each letter has its own matrices.",
        ),
        Wrong(
            "keys_and_values_swapped",
            lambda x, W_Q, W_K, W_V: per_head.per_head_qkv(x, W_Q, W_V, W_K),
            "What you return as keys are the values, and the other way round. The order is q,\n"
            "k, v.",
        ),
        Wrong(
            "scaled_queries",
            lambda x, W_Q, W_K, W_V: per_head.per_head_qkv(x, W_Q / W_Q.shape[-1] ** 0.5, W_K, W_V),
            "q is divided by sqrt(head_dim) already. The scale belongs to the scores; here only\n"
            "the projections are wanted.",
        ),
        Wrong(
            "keys_transposed",
            lambda x, W_Q, W_K, W_V: (
                (o := per_head.per_head_qkv(x, W_Q, W_K, W_V))[0],
                o[1].mT,
                o[2],
            ),
            "k is turned over for the product with q already. All three are wanted in the same\n"
            "shape, [batch, n_head, seq, head_dim].",
        ),
    ),
    right=(
        Right("broadcast", _all_three(lambda x, W: x.unsqueeze(1) @ W)),
        Right("einsum", _all_three(lambda x, W: torch.einsum("bid,hdk->bhik", x, W))),
        Right(
            "tensordot", _all_three(lambda x, W: torch.tensordot(x, W, ([2], [1])).movedim(2, 1))
        ),
        Right("filled_in_place", _filled),
        Right("decorated", decorated(_filled)),
        Right("wide_matrix", _through_the_wide_matrix),
        Right(
            "float64_inside",
            _all_three(lambda x, W: (x.double()[:, None] @ W.double()).to(x.dtype)),
        ),
        Right("a_list_of_three", lambda x, q, k, v: [x[:, None] @ W for W in (q, k, v)]),
        Right(
            "one_stack_of_nine",
            lambda x, q, k, v: (x[:, None] @ torch.cat([q, k, v])).chunk(3, dim=1),
        ),
    ),
)
