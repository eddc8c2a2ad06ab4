"""Lab 01: causal_mask."""

from __future__ import annotations

import math
from functools import partial
from textwrap import fill

import numpy as np
import torch

from ...attention.single_head import causal_mask
from ..kit import Answer, Right, Wrong


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


WIDTH = 86  # of a line of a sentence

_KINDS = {
    "zeros_and_ones": (
        lambda mask: mask.float(),
        "these are the numbers 0 and 1. A bool mask holds True and False; torch adds a mask of "
        "numbers to the scores, so that nothing is cut.",
    ),
    "integers": (
        lambda mask: mask.long(),
        "these are whole numbers. ~ turns a 1 into -2; make it bool.",
    ),
    "short_integers": (
        lambda mask: mask.int(),
        "these are whole numbers. ~ turns a 1 into -2; make it bool.",
    ),
    "lists": (lambda mask: mask.tolist(), "these are lists; wanted is a tensor."),
}
_FROM_QUERY_0 = (
    "And the pattern is right only for as many queries as keys: with more keys than queries, "
    "the queries are the newest tokens, and the last one sees every key."
)
_NEVER_EMPTY = (
    "And the pattern is wrong for more queries than keys: the last query sees every key, each "
    "one before it sees one less, and so the first see nothing."
)


def _patterns():
    """Each kind of thing that is no bool tensor, with a pattern that is right, or nearly."""
    for kind, (made, words) in _KINDS.items():
        begun = words[0].upper() + words[1:]
        pattern = partial(_of_kind, made)
        yield Wrong(
            f"{kind}_from_query_0",
            pattern(lambda n, m: _compare(n, m, 0)),
            fill(f"{begun} {_FROM_QUERY_0}", WIDTH),
        )
        yield Wrong(
            f"{kind}_never_empty",
            pattern(lambda n, m: _compare(n, m, max(m - n, 0))),
            fill(f"{begun} {_NEVER_EMPTY}", WIDTH),
        )
        yield Wrong(kind, pattern(causal_mask), fill(f"The pattern is right but {words}", WIDTH))


def _of_kind(made, rule):
    return _sized(lambda n, m: made(rule(n, m)))


_PATTERNS = tuple(_patterns())

MASK = Answer(
    reference=causal_mask,
    wrong=(
        Wrong(
            "top_left",
            _sized(lambda n, m: _compare(n, m, 0)),
            "This counts the queries from token 0, which is right only for as many queries as\n"
            "keys. One query with many keys is the newest token, yet this lets it see key 0 alone.",
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
            "upper_from_query_0",
            _sized(lambda n, m: torch.ones(n, m, dtype=torch.bool).triu()),
            "This is the other triangle: a token sees itself and what comes after it. And it\n"
            "counts the queries from token 0; with more keys they are the newest tokens.",
        ),
        Wrong(
            "inverted_from_query_0",
            _sized(lambda n, m: ~_compare(n, m, 0)),
            "True and False have changed places: a token sees only what comes after it. And it\n"
            "counts the queries from token 0; with more keys they are the newest tokens.",
        ),
        Wrong(
            "additive",
            _sized(_additive),
            "This is the additive form, 0 and -inf, which is added to the scores. A mask in this\n"
            "course is bool and says True or False.",
        ),
        *_PATTERNS,
        Wrong(
            "keys_in_rows",
            _sized(lambda n, m: torch.arange(n)[None, :] <= torch.arange(m)[:, None]),
            "Rows and columns have changed places: a row belongs to a query, and there are seq_q\n"
            "of them. Which of the two aranges should be the column?",
        ),
        Wrong(
            "one_row",
            _sized(lambda n, m: torch.arange(m) <= torch.arange(n).max() + m - n),
            "One row is all there is. A column of queries has to meet a row of keys: one of the\n"
            "two aranges needs a second axis.",
        ),
        Wrong(
            "never_empty",
            _sized(lambda n, m: _compare(n, m, max(m - n, 0))),
            "Right, except for more queries than keys: there this begins at query 0. The last\n"
            "query sees every key, each one before it sees one less, and so the first see nothing.",
        ),
        Wrong(
            "seq_k_not_given",
            lambda seq_q, seq_k=None: torch.tril(torch.ones(seq_q, seq_k)).bool(),
            "seq_k is None where it is not given, and None is no size. First say what it is then.",
        ),
        Wrong(
            "shift_without_sign",
            _sized(lambda n, m: torch.ones(n, m).tril(abs(m - n)).bool()),
            "Right, except for more queries than keys: there the shift has lost its sign, and the\n"
            "first queries see keys of their future. The fewer the keys, the fewer a query sees.",
        ),
        Wrong(
            "five_by_five",
            _five_by_five,
            "This is a fixed 5 × 5 triangle. The mask has to follow seq_q and seq_k.",
        ),
        Wrong(
            "square_of_queries",
            lambda seq_q, seq_k=None: causal_mask(seq_q),
            "This is a square of seq_q by seq_q; seq_k is never read. A model that writes word by\n"
            "word has one query and many keys.",
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
            "all_keys_unless_square",
            _sized(lambda n, m: causal_mask(n) if n == m else torch.ones(n, m, dtype=torch.bool)),
            "Where there are not as many keys as queries, all is True here. That is right for one\n"
            "query, the last; each query before it sees one key less.",
        ),
        Wrong(
            "open_block_beside_a_triangle",
            _sized(lambda n, m: torch.cat([torch.ones(n, m - n), causal_mask(n)], dim=1).bool()),
            "An open block of keys is put beside a triangle. With more queries than keys there is\n"
            "no such block: then the first queries see nothing at all.",
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

ANSWERS = {"lab01.causal_mask": MASK}
