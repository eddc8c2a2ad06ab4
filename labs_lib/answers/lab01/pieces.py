"""Lab 01: attention_scores and causal_mask."""

from __future__ import annotations

import math

import numpy as np
import torch

from ...attention.single_head import attention_scores, causal_mask
from ..kit import Answer, Right, Wrong


def _dots(q, k):
    return q @ k.transpose(-2, -1)


def _n_head(q):
    return q.shape[-3] if q.ndim > 2 else 1


def _cosine(q, k):
    return _dots(torch.nn.functional.normalize(q, dim=-1), torch.nn.functional.normalize(k, dim=-1))


def _loops(q, k):
    rows = []
    for i in range(q.shape[-2]):
        row = [(q[..., i, :] * k[..., j, :]).sum(-1) for j in range(k.shape[-2])]
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2) * q.shape[-1] ** -0.5


def _in_place(q, k):
    scores = torch.matmul(q, k.mT)
    scores /= math.sqrt(k.size(-1))
    return scores


def _double_inside(q, k):
    return (_dots(q.double(), k.double()) / q.shape[-1] ** 0.5).to(q.dtype)


class _Head:
    def scores(self, q: torch.Tensor, k: torch.Tensor, *, scale: float | None = None):
        scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        return (q * scale) @ k.transpose(-1, -2)


SCORES = Answer(
    reference=attention_scores,
    wrong=(
        Wrong(
            "no_scale",
            _dots,
            "These are the bare dot products, which is what you get when the scale is left out.\n"
            "Their spread grows with the width of the head; look at what q·k is divided by.",
        ),
        Wrong(
            "scale_by_d_model",
            lambda q, k: _dots(q, k) / math.sqrt(_n_head(q) * q.shape[-1]),
            "This is what you get when the scale is 1/√d_model. A dot product here runs over one\n"
            "head's own numbers only; look at the last axis of q.",
        ),
        Wrong(
            "scale_without_root",
            lambda q, k: _dots(q, k) / q.shape[-1],
            "The scores are divided by head_dim itself: the root is missing, or the scale was\n"
            "applied twice. Look at what a variance and a standard deviation are.",
        ),
        Wrong(
            "scale_by_keys",
            lambda q, k: _dots(q, k) / math.sqrt(k.shape[-2]),
            "This is divided by the root of the number of keys. What counts is how many products\n"
            "stand in one sum; look at which axis of k disappears in the product.",
        ),
        Wrong(
            "scale_by_queries",
            lambda q, k: _dots(q, k) / math.sqrt(q.shape[-2]),
            "This is divided by the root of the number of queries. The scale has nothing to do\n"
            "with how many tokens there are; look at which axis disappears in the product.",
        ),
        Wrong(
            "multiplied",
            lambda q, k: _dots(q, k) * math.sqrt(q.shape[-1]),
            "This is multiplied by the root where it should be divided; the scores spread even\n"
            "more than without any scale.",
        ),
        Wrong(
            "scale_of_64",
            lambda q, k: _dots(q, k) / 8.0,
            "This is divided by 8 whatever the width is, which is right for head_dim 64 alone.\n"
            "Take the width from the tensor.",
        ),
        Wrong(
            "keys_ask",
            lambda q, k: _dots(k, q) / math.sqrt(q.shape[-1]),
            "Rows and columns have changed places, which is what happens when the keys ask and\n"
            "the queries answer. Row i belongs to query i.",
        ),
        Wrong(
            "queries_only",
            lambda q, k: _dots(q, q) / math.sqrt(q.shape[-1]),
            "The queries are compared with themselves; k takes no part. It goes unnoticed only\n"
            "where k equals q.",
        ),
        Wrong(
            "softmax_already",
            lambda q, k: attention_scores(q, k).softmax(dim=-1),
            "These are the weights already. The scores come one step before the softmax, and can\n"
            "be negative.",
        ),
        Wrong(
            "cosine",
            _cosine,
            "These are cosines, which is what happens when q and k are brought to length 1. In\n"
            "this attention the lengths count; only the spread is taken back, by one fixed\n"
            "factor.",
        ),
        Wrong(
            "always_float32",
            lambda q, k: attention_scores(q, k).float(),
            "The values are float32 whatever comes in. A result has the dtype of its inputs; look\n"
            "for a .float() or a tensor made without dtype.",
        ),
    ),
    right=(
        Right("loops", _loops),
        Right("in_place", _in_place),
        Right("double_inside", _double_inside),
        Right("scaled_query_method", _Head().scores),
        Right(
            "einsum",
            lambda q, k: torch.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1]),
        ),
        Right("products_summed", lambda q, k: (q[..., :, None, :] * k[..., None, :, :]).sum(-1)
              / q.shape[-1] ** 0.5),
        Right("root_on_both", lambda q, k: _dots(q / q.shape[-1] ** 0.25, k / k.shape[-1] ** 0.25)),
        Right("scale_as_tensor", lambda q, k: _dots(q, k) / torch.tensor(q.shape[-1]).sqrt()),
    ),
)  # fmt: skip


def _compare(seq_q, seq_k, shift):
    queries, keys = torch.arange(seq_q)[:, None], torch.arange(seq_k)[None, :]
    return keys <= queries + shift


def _five_by_five(seq_q, seq_k=None):
    lower = [[True] * (i + 1) + [False] * (4 - i) for i in range(5)]
    return torch.tensor(lower)


def _sized(rule):
    """A mask program with an optional seq_k from a rule that takes both sizes."""
    return lambda seq_q, seq_k=None: rule(seq_q, seq_q if seq_k is None else seq_k)


def _additive(seq_q, seq_k):
    return torch.zeros(seq_q, seq_k).masked_fill(~causal_mask(seq_q, seq_k), -math.inf)


def _mask_by_loops(seq_q, seq_k=None):
    seq_k = seq_k or seq_q
    mask = torch.zeros((seq_q, seq_k), dtype=torch.bool)
    for i in range(seq_q):
        for j in range(seq_k):
            mask[i, j] = j <= i + seq_k - seq_q
    return mask


def _mask_by_rows(seq_q: int, seq_k: int | None = None, device=None) -> torch.Tensor:
    seq_k = seq_q if seq_k is None else seq_k
    seen = [max(0, i + 1 + seq_k - seq_q) for i in range(seq_q)]
    return torch.tensor([[True] * n + [False] * (seq_k - n) for n in seen], device=device)


MASK = Answer(
    reference=causal_mask,
    wrong=(
        Wrong(
            "top_left",
            _sized(lambda n, m: _compare(n, m, 0)),
            "This counts the queries from token 0, which is right only for as many queries as\n"
            "keys. A query that comes with a cache is the newest token, yet this lets it see key\n"
            "0 alone.",
        ),
        Wrong(
            "inverted",
            _sized(lambda n, m: ~causal_mask(n, m)),
            "True and False have changed places: this lets a token see only what comes after it.\n"
            "In this course True means: may attend. (Some libraries mean the opposite.)",
        ),
        Wrong(
            "not_itself",
            _sized(lambda n, m: _compare(n, m, m - n - 1)),
            "Here a token may not see itself, and the first one sees nothing. Look at the\n"
            "diagonal.",
        ),
        Wrong(
            "one_ahead",
            _sized(lambda n, m: _compare(n, m, m - n + 1)),
            "Here each token sees one token of the future: the diagonal is off by one.",
        ),
        Wrong(
            "upper",
            _sized(lambda n, m: torch.ones(n, m, dtype=torch.bool).triu(m - n)),
            "This is the other triangle: a token sees itself and what comes after it. Look at row\n"
            "0, the oldest query; it should have the fewest keys.",
        ),
        Wrong(
            "additive",
            _sized(_additive),
            "This is the additive form, 0 and -inf, which is added to the scores. A mask in this\n"
            "course is bool and says True or False.",
        ),
        Wrong(
            "zeros_and_ones",
            _sized(lambda n, m: causal_mask(n, m).float()),
            "The pattern is right but these are the numbers 0 and 1. A bool mask holds True and\n"
            "False; torch adds a mask of numbers to the scores, so that nothing is cut.",
        ),
        Wrong(
            "integers",
            _sized(lambda n, m: causal_mask(n, m).long()),
            "The pattern is right but these are whole numbers. ~ turns a 1 into -2; make it bool.",
        ),
        Wrong(
            "five_by_five",
            _five_by_five,
            "This is a fixed 5 × 5 triangle. The mask has to follow seq_q and seq_k.",
        ),
        Wrong(
            "square_of_queries",
            lambda seq_q, seq_k=None: causal_mask(seq_q),
            "This is a square of seq_q by seq_q; seq_k is never read. With a cache there are more\n"
            "keys than queries.",
        ),
        Wrong(
            "square_of_keys",
            _sized(lambda n, m: causal_mask(m)),
            "This is a square of seq_k by seq_k: it has a row for each key. Rows belong to\n"
            "queries, and there are seq_q of them.",
        ),
        Wrong(
            "shift_reversed",
            _sized(lambda n, m: _compare(n, m, n - m)),
            "The shift has the wrong sign: with more keys than queries each query sees fewer keys\n"
            "than its number, not more. Try one query and four keys: it should see all four.",
        ),
        Wrong(
            "everything",
            _sized(lambda n, m: torch.ones(n, m, dtype=torch.bool)),
            "Everybody may see everything here; this mask masks nothing.",
        ),
    ),
    right=(
        Right("loops", _mask_by_loops),
        Right("rows", _mask_by_rows),
        Right("compare", _sized(lambda n, m: _compare(n, m, m - n))),
        Right(
            "not_upper",
            _sized(lambda n, m: ~torch.triu(torch.ones(n, m), diagonal=m - n + 1).bool()),
        ),
        Right(
            "last_rows_of_a_square",
            lambda seq_q, seq_k=None: torch.tril(
                torch.ones(max(seq_q, seq_k or seq_q), max(seq_q, seq_k or seq_q))
            ).bool()[-seq_q:, -(seq_k or seq_q):],
        ),
        Right(
            "numpy",
            _sized(lambda n, m: torch.from_numpy(np.tril(np.ones((n, m)), m - n) > 0)),
        ),
        Right("additive_compared", _sized(lambda n, m: _additive(n, m) == 0)),
    ),
)  # fmt: skip

ANSWERS = {"lab01.attention_scores": SCORES, "lab01.causal_mask": MASK}
