"""Answers to composition_score."""

from __future__ import annotations

import torch

from labs_lib.attention import induction

from ..kit import Answer, Right, Wrong

norm = torch.linalg.matrix_norm


def _columns(W, n_head):
    return W.unflatten(1, (n_head, -1)).transpose(0, 1)  # [n_head, d_model, head_dim]


def _rows(W_O, n_head):
    return W_O.unflatten(0, (n_head, -1))  # [n_head, head_dim, d_model]


def _pairs(W_Q, W_K, W_V, W_O, n_head):
    """A of each later head and B of each earlier one: [n_head, d_model, d_model] both."""
    asks = _columns(W_Q, n_head) @ _columns(W_K, n_head).mT
    return asks, _columns(W_V, n_head) @ _rows(W_O, n_head)


def _scores(product=None, size=norm, pairs=_pairs, divide=True):
    """A program with another product, another norm, or other matrices of the heads."""
    product = product or (lambda A, B: A @ B.mT)

    def program(W_Q, W_K, W_V, W_O, n_head):
        A, B = pairs(W_Q, W_K, W_V, W_O, n_head)
        through = size(product(A[:, None], B[None]))
        return through / (size(A)[:, None] * size(B)) if divide else through

    return program


def _spectral(A):
    return norm(A, ord=2)


def _largest(A):
    return A.abs().amax(dim=(-2, -1))


def _dealt_out(W_Q, W_K, W_V, W_O, n_head):
    def columns(W):
        return W.unflatten(1, (-1, n_head)).permute(2, 0, 1)

    asks = columns(W_Q) @ columns(W_K).mT
    return asks, columns(W_V) @ W_O.unflatten(0, (-1, n_head)).transpose(0, 1)


def _columns_of_w_o(W_Q, W_K, W_V, W_O, n_head):
    asks, keys, values, outs = (W.chunk(n_head, dim=1) for W in (W_Q, W_K, W_V, W_O))
    pairs = [(q @ k.T, v @ o.T) for q, k, v, o in zip(asks, keys, values, outs, strict=True)]
    rows = [[norm(A @ B.T) / (norm(A) * norm(B)) for _, B in pairs] for A, _ in pairs]
    return torch.stack([torch.stack(row) for row in rows])


def _reshaped(W_Q, W_K, W_V, W_O, n_head):
    """Cuts heads by a direct reshape, which takes rows for heads."""
    Q, K, V = (W.reshape(n_head, W.shape[0], -1) for W in (W_Q, W_K, W_V))
    return Q @ K.mT, V @ _rows(W_O, n_head)


def _w_o_dealt_out(W_Q, W_K, W_V, W_O, n_head):
    """Cuts W_O as if its rows went round the heads in turn."""
    asks, _ = _pairs(W_Q, W_K, W_V, W_O, n_head)
    return asks, _columns(W_V, n_head) @ W_O.unflatten(0, (-1, n_head)).transpose(0, 1)


def _divided_by_the_sum(W_Q, W_K, W_V, W_O, n_head):
    A, B = _pairs(W_Q, W_K, W_V, W_O, n_head)
    return norm(A[:, None] @ B.mT[None]) / (norm(A)[:, None] + norm(B))


def _no_brackets(W_Q, W_K, W_V, W_O, n_head):
    A, B = _pairs(W_Q, W_K, W_V, W_O, n_head)
    return norm(A[:, None] @ B.mT[None]) / norm(A)[:, None] * norm(B)


def _same_head_only(W_Q, W_K, W_V, W_O, n_head):
    return induction.composition_score(W_Q, W_K, W_V, W_O, n_head).diagonal().clone()


def _sizes_of_the_factors(W_Q, W_K, W_V, W_O, n_head):
    A, B = _pairs(W_Q, W_K, W_V, W_O, n_head)
    sizes = [norm(_columns(W, n_head)) for W in (W_Q, W_K, W_V)]
    later, earlier = sizes[0] * sizes[1], sizes[2] * norm(_rows(W_O, n_head))
    return norm(A[:, None] @ B.mT[None]) / (later[:, None] * earlier)


def _mean_sizes_of_all_heads(W_Q, W_K, W_V, W_O, n_head):
    A, B = _pairs(W_Q, W_K, W_V, W_O, n_head)
    return norm(A[:, None] @ B.mT[None]) / (norm(A).mean() * norm(B).mean())


def _divided_by_the_size_of_a(W_Q, W_K, W_V, W_O, n_head):
    A, B = _pairs(W_Q, W_K, W_V, W_O, n_head)
    return norm(A[:, None] @ B.mT[None]) / norm(A)[:, None]


def _baseline_taken_off(W_Q, W_K, W_V, W_O, n_head):
    found = induction.composition_score(W_Q, W_K, W_V, W_O, n_head)
    return found - found.mean()


def _keys_and_values_only(W_Q, W_K, W_V, W_O, n_head):
    K, B = _columns(W_K, n_head), _columns(W_V, n_head) @ _rows(W_O, n_head)
    return norm(K.mT[:, None] @ B.mT[None]) / (norm(K)[:, None] * norm(B))


def _loop(W_Q, W_K, W_V, W_O, n_head):
    width, out = W_O.shape[0] // n_head, torch.zeros(n_head, n_head, dtype=W_O.dtype)
    for a in range(n_head):
        later = slice(a * width, (a + 1) * width)
        for b in range(n_head):
            earlier = slice(b * width, (b + 1) * width)
            A = W_Q[:, later] @ W_K[:, later].T
            B = W_V[:, earlier] @ W_O[earlier]
            size = A.square().sum().sqrt() * B.square().sum().sqrt()
            out[a, b] = (A @ B.T).square().sum().sqrt() / size
    return out


def _by_chunks(W_Q, W_K, W_V, W_O, n_head):
    asks = [q @ k.T for q, k in zip(W_Q.chunk(n_head, 1), W_K.chunk(n_head, 1), strict=True)]
    writes = [v @ o for v, o in zip(W_V.chunk(n_head, 1), W_O.chunk(n_head, 0), strict=True)]
    return torch.stack(
        [torch.stack([(A @ B.T).norm() / (A.norm() * B.norm()) for B in writes]) for A in asks]
    )


def _einsum(W_Q, W_K, W_V, W_O, n_head):
    A, B = _pairs(W_Q, W_K, W_V, W_O, n_head)
    through = torch.einsum("aqk,bsk->abqs", A, B)
    return through.flatten(2).norm(dim=-1) / torch.outer(A.flatten(1).norm(dim=1), norm(B))


def _turned_inside(W_Q, W_K, W_V, W_O, n_head):
    """Takes the transpose of the product, which is as large."""
    A, B = _pairs(W_Q, W_K, W_V, W_O, n_head)
    return norm(B[None] @ A.mT[:, None]) / (norm(A)[:, None] * norm(B)[None])


COMPOSITION_SCORE = Answer(
    reference=induction.composition_score,
    wrong=(
        Wrong(
            "b_not_turned",
            _scores(lambda A, B: A @ B),
            "The product is A B. B turns what the earlier head reads into what it writes; keys\n"
            "read what is written, and that is B's second axis: B^T.",
        ),
        Wrong(
            "other_way_round",
            _scores(lambda A, B: B @ A),
            "The product is B A (or A^T B^T, which is as large): what the later head's *queries*\n"
            "read of what the earlier one writes. Wanted are its keys.",
        ),
        Wrong(
            "a_turned",
            _scores(lambda A, B: A.mT @ B),
            "The product is A^T B (or B^T A, which is as large). It is B that has to be turned:\n"
            "its second axis is what is written, and A's second axis is what keys read.",
        ),
        Wrong(
            "divided_by_the_sum",
            _divided_by_the_sum,
            "It is divided by the sum of the two sizes. Wanted is their product.",
        ),
        Wrong(
            "no_brackets",
            _no_brackets,
            "It is divided by the size of A and then multiplied by that of B: in a / b * c only b\n"
            "divides. Put brackets around the two.",
        ),
        Wrong(
            "rows_and_columns",
            lambda *args: induction.composition_score(*args).T.clone(),
            "All numbers are right and the table is turned over: rows are later heads, columns\n"
            "earlier ones.",
        ),
        Wrong(
            "not_divided",
            _scores(divide=False),
            "The norm of the product isn't divided by anything: a head with large matrices would\n"
            "seem to compose with everyone.",
        ),
        Wrong(
            "divided_by_one",
            _divided_by_the_size_of_a,
            "It is divided by the size of A, but not by that of B.",
        ),
        Wrong(
            "divided_by_the_mean",
            _mean_sizes_of_all_heads,
            "It is divided by the mean size of all heads. Each pair has its own two sizes.",
        ),
        Wrong(
            "divided_by_the_factors",
            _sizes_of_the_factors,
            "It is divided by the sizes of W_Q, W_K, W_V and W_O one by one. Wanted are those of\n"
            "the products A and B.",
        ),
        Wrong(
            "squared",
            lambda *args: induction.composition_score(*args).square(),
            "The root is missing: these are the squares of the scores.",
        ),
        Wrong(
            "largest_stretch",
            _scores(size=_spectral),
            "This takes the largest singular value as a matrix's size (torch.linalg.norm with\n"
            "ord=2, or matrix_norm with 2). Wanted is the Frobenius norm, the default.",
        ),
        Wrong(
            "sum_of_sizes",
            _scores(size=lambda A: A.abs().sum(dim=(-2, -1))),
            "This adds up absolute values. The Frobenius norm is the root of the sum of squares.",
        ),
        Wrong(
            "largest_number",
            _scores(size=_largest),
            "This takes the largest number as a matrix's size. The Frobenius norm is the root of\n"
            "the sum of squares.",
        ),
        Wrong(
            "columns_of_w_o",
            _columns_of_w_o,
            "W_O is cut into columns. A head's numbers go into W_O, so its part of it are rows:\n"
            "[head_dim, d_model].",
        ),
        Wrong(
            "rows_of_w_o_dealt_out",
            _scores(pairs=_w_o_dealt_out),
            "Every n_head-th row of W_O went to a head. A head's rows stand together, head_dim of\n"
            "them.",
        ),
        Wrong(
            "columns_dealt_out",
            _scores(pairs=_dealt_out),
            "Every n_head-th column went to a head. A head's columns stand together, head_dim of\n"
            "them.",
        ),
        Wrong(
            "reshaped_into_heads",
            _scores(pairs=_reshaped),
            "W_Q, W_K or W_V is reshaped to [n_head, d_model, head_dim] at once, which takes rows\n"
            "for heads. A head has all rows and its own columns.",
        ),
        Wrong(
            "keys_alone",
            _keys_and_values_only,
            "W_Q has no part in this. What counts is the comparison of queries with keys,\n"
            "A = W_Q W_K^T.",
        ),
        Wrong(
            "each_with_its_number",
            _same_head_only,
            "Only later head 0 with earlier head 0, 1 with 1 and so on. Every later head may read\n"
            "every earlier one: a table.",
        ),
        Wrong(
            "baseline_taken_off",
            _baseline_taken_off,
            "The mean of the table is taken off. A baseline is a good idea, and comes below; here\n"
            "the plain score is wanted.",
        ),
        Wrong(
            "layers_as_one",
            lambda W_Q, W_K, W_V, W_O, n_head: induction.composition_score(
                W_Q, W_K, W_V, W_O, 1).expand(n_head, n_head).clone(),
            "All heads are taken together as one: the same number everywhere.",
        ),
    ),
    right=(
        Right("loop", _loop),
        Right("chunks", _by_chunks),
        Right("einsum", _einsum),
        Right("turned_inside", _turned_inside),
        Right("float64_inside", lambda W_Q, W_K, W_V, W_O, n_head: induction.composition_score(
            *(W.double() for W in (W_Q, W_K, W_V, W_O)), n_head).to(W_O.dtype)),
    ),
)  # fmt: skip
