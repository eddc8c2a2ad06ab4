"""Answers to the exercises that read numbers from weights."""

from __future__ import annotations

import torch

from labs_lib.attention import measures

from ..kit import Answer, Right, Wrong


def _entropy_loop(weights):
    flat = weights.reshape(-1, weights.shape[-1])
    rows = [-(row[row > 0] * row[row > 0].log()).sum() for row in flat]
    return torch.stack(rows).view(weights.shape[:-1])


def _entropy_where(weights):
    safe = torch.where(weights > 0, weights, torch.ones_like(weights))
    return -(weights * safe.log()).sum(-1)


ATTENTION_ENTROPY = Answer(
    reference=measures.attention_entropy,
    wrong=(
        Wrong(
            "nan_at_zero",
            lambda weights: -(weights * weights.log()).sum(-1),
            "Rows without a zero are right, rows with one are NaN: log(0) is -inf, and 0 times\n"
            "-inf is NaN. A key without weight adds nothing.",
        ),
        Wrong(
            "in_bits",
            lambda weights: torch.special.entr(weights).sum(-1) / 0.6931471805599453,
            "These are bits, from the logarithm to base 2. Wanted are nats: the natural logarithm.",
        ),
        Wrong(
            "sign_lost",
            lambda weights: torch.xlogy(weights, weights).sum(-1),
            "The sign is turned: log of a weight below 1 is negative, and entropy is not.",
        ),
        Wrong(
            "over_queries",
            lambda weights: torch.special.entr(weights).sum(-2),
            "The sum goes over the queries. A row belongs to a query and its keys add up to 1:\n"
            "the sum goes over the keys.",
        ),
        Wrong(
            "mean_over_keys",
            lambda weights: torch.special.entr(weights).mean(-1),
            "The keys are averaged, so the entropy is divided by their number. It is a sum.",
        ),
        Wrong(
            "mean_over_rows",
            lambda weights: torch.special.entr(weights).sum(-1).mean(-1),
            "The rows are averaged already: one number for each head. Wanted is one for each\n"
            "query.",
        ),
        Wrong(
            "log_only",
            lambda weights: -torch.where(weights > 0, weights, 1.0).log().sum(-1),
            "The logarithms are added up without their weights. Each counts as much as its key\n"
            "is looked at.",
        ),
        Wrong(
            "large_epsilon",
            lambda weights: -(weights * (weights + 1e-3).log()).sum(-1),
            "Something like 1e-3 is added inside the logarithm, and it shows in the values.\n"
            "Take something far smaller, or a function that knows the limit at 0.",
        ),
        Wrong(
            "softmaxed_again",
            lambda weights: torch.special.entr(weights.softmax(-1)).sum(-1),
            "The weights went through a softmax once more, which flattens them. They add up to 1\n"
            "already.",
        ),
        Wrong(
            "share_of_the_most",
            lambda weights: torch.special.entr(weights).sum(-1) / torch.tensor(
                float(weights.shape[-1]), dtype=weights.dtype).log(),
            "The entropy is divided by log(seq_k), the most that it could be. Wanted are nats.",
        ),
        Wrong(
            "perplexity",
            lambda weights: torch.special.entr(weights).sum(-1).exp(),
            "This is e to the entropy: the number of keys that an even row would have.",
        ),
        Wrong(
            "largest_weight",
            lambda weights: weights.amax(-1),
            "This is the largest weight of each row. It says how sharp a row is, but is not its\n"
            "entropy.",
        ),
        *(
            Wrong(
                f"a_little_added_{little:g}",
                lambda weights, little=little: -(weights * (weights + little).log()).sum(-1),
                "Nearly right: a small number stands inside the logarithm, so that it never meets\n"
                "0, and it moves every other weight as well. Keep the zeros away instead.",
            )
            for little in (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
        ),
        Wrong(
            "rows_divided_by_their_sum",
            lambda weights: torch.special.entr(weights / weights.sum(-1, keepdim=True)).sum(-1),
            "The values are right, and each row is divided by its sum first (as torch's\n"
            "Categorical does), so that its gradient is another one. Weights add up to 1 already.",
        ),
        Wrong(
            "all_in_one_number",
            lambda weights: torch.special.entr(weights).sum(),
            "All rows of all heads are added up into one number. Each query has its own.",
        ),
    ),
    right=(
        Right("xlogy", lambda weights: -torch.xlogy(weights, weights).sum(-1)),
        Right("row_by_row", _entropy_loop),
        Right("where", _entropy_where),
        Right("tiny_epsilon", lambda weights, eps=1e-20: -(weights * (weights + eps).log()).sum(
            dim=-1)),
        Right("float64_inside", lambda weights: torch.special.entr(weights.double()).sum(-1).to(
            weights.dtype)),
        Right("clamped", lambda weights: -(weights * weights.clamp_min(1e-30).log()).sum(-1)),
    ),
)  # fmt: skip


def _pick(weights, offset, real=None):
    """The mean along a diagonal, key - query = offset, as the reference does."""
    along = weights.diagonal(offset, dim1=-2, dim2=-1)
    if real is None:
        return along.mean(dim=(0, 2))
    counts = real[:, None, weights.shape[-1] - along.shape[-1] :].to(weights)
    return (along * counts).sum(dim=(0, 2)) / counts.sum()


def _previous_padding_counts(weights, real=None):
    return measures.previous_token_score(weights)


def _previous_divided_by_all(weights, real=None):
    before = weights.diagonal(-1, dim1=-2, dim2=-1)
    if real is not None:
        before = before * real[:, None, 1:]
    return before.mean(dim=(0, 2))


def _previous_first_counts(weights, real=None):
    batch, _, seq, _ = weights.shape
    before = weights.diagonal(-1, dim1=-2, dim2=-1)
    if real is None:
        return before.sum(dim=(0, 2)) / (batch * seq)
    return (before * real[:, None, 1:]).sum(dim=(0, 2)) / real.sum()


def _previous_mean_of_means(weights, real=None):
    before = weights.diagonal(-1, dim1=-2, dim2=-1)
    if real is None:
        return before.mean(dim=(0, 2))
    counts = real[:, None, 1:].to(weights)
    return ((before * counts).sum(2) / counts.sum(2)).mean(0)


def _previous_key_real(weights, real=None):
    if real is None:
        return measures.previous_token_score(weights)
    counts = real[:, None, :-1].to(weights)
    return (weights.diagonal(-1, dim1=-2, dim2=-1) * counts).sum(dim=(0, 2)) / counts.sum()


def _previous_loop(weights, real=None):
    batch, n_head, seq, _ = weights.shape
    scores = []
    for head in range(n_head):
        found = [
            weights[b, head, i, i - 1]
            for b in range(batch)
            for i in range(1, seq)
            if real is None or real[b, i]
        ]
        scores.append(torch.stack(found).mean())
    return torch.stack(scores)


def _previous_indexed(weights, real=None):
    i = torch.arange(1, weights.shape[-1])
    before = weights[:, :, i, i - 1].transpose(1, 2)  # [batch, seq - 1, n_head]
    if real is None:
        return before.flatten(0, 1).mean(0)
    return before[real[:, 1:]].mean(0)


def _previous_by_mask(weights, real=None):
    seq = weights.shape[-1]
    mask = torch.zeros(seq, seq, dtype=torch.bool)
    mask[torch.arange(1, seq), torch.arange(seq - 1)] = True
    real = torch.ones(weights.shape[0], seq, dtype=torch.bool) if real is None else real
    each = (weights * mask).sum(-1) * real[:, None]
    return each.sum(dim=(0, 2)) / real[:, 1:].sum()


PREVIOUS_TOKEN_SCORE = Answer(
    reference=measures.previous_token_score,
    wrong=(
        Wrong(
            "token_itself",
            lambda weights, real=None: _pick(weights, 0, real),
            "These are the weights of each token on itself: the main diagonal. The token before\n"
            "is one column further left.",
        ),
        Wrong(
            "next_token",
            lambda weights, real=None: _pick(weights, 1) if real is None else (
                weights.diagonal(1, dim1=-2, dim2=-1) * real[:, None, 1:]).sum(
                dim=(0, 2)) / real[:, 1:].sum(),
            "This is the weight on the next token: the diagonal above the main one. Rows are\n"
            "queries; the token before the query has a smaller number, so look below.",
        ),
        Wrong(
            "two_back",
            lambda weights, real=None: _pick(weights, -2, real) if weights.shape[-1] > 2
            else weights[:, :, 1, 1].mean(0),
            "This looks two tokens back. The offset is one too far.",
        ),
        Wrong(
            "first_query_counts",
            _previous_first_counts,
            "The sum is right and divided by one query too many for each text: the first has no\n"
            "token before it.",
        ),
        Wrong(
            "padding_counts",
            _previous_padding_counts,
            "Without padding it is right; with it, the queries of the padding count as well.\n"
            "What a head does with tokens that aren't there says nothing.",
        ),
        Wrong(
            "padding_divides",
            _previous_divided_by_all,
            "The padded queries are left out of the sum and still counted in the number that it\n"
            "is divided by.",
        ),
        Wrong(
            "first_text_only",
            lambda weights, real=None: weights[0].diagonal(-1, dim1=-2, dim2=-1).mean(-1),
            "Only the first text is looked at. The mean goes over all of them.",
        ),
        Wrong(
            "second_query_only",
            lambda weights, real=None: weights[:, :, 1, 0].mean(0),
            "Only the second query is looked at. All that have a token before them count.",
        ),
        Wrong(
            "mean_of_means",
            _previous_mean_of_means,
            "Each text has its own mean here, and then the texts are averaged, so a query of a\n"
            "short text counts more. All queries of all texts count the same.",
        ),
        Wrong(
            "real_shifted",
            _previous_key_real,
            "What counts is shifted by one: you ask whether the key is real, not the query. The\n"
            "first padded query gets in.",
        ),
        Wrong(
            "softmaxed_again",
            lambda weights, real=None: measures.previous_token_score(weights.softmax(-1), real),
            "The weights went through a softmax once more. They add up to 1 already.",
        ),
        Wrong(
            "summed",
            lambda weights, real=None: (weights.diagonal(-1, dim1=-2, dim2=-1) * (
                1.0 if real is None else real[:, None, 1:])).sum(dim=(0, 2)),
            "The weights are added up and not averaged: longer texts would give larger scores.",
        ),
        Wrong(
            "for_each_text",
            lambda weights, real=None: weights.diagonal(-1, dim1=-2, dim2=-1).mean(2),
            "There is a row for each text. Wanted is one number for each head, over all texts.",
        ),
        Wrong(
            "how_often_the_largest",
            lambda weights, real=None: measures.previous_token_score(
                torch.nn.functional.one_hot(weights.argmax(-1), weights.shape[-1]).to(
                    weights), real) + 0.0 * weights.sum(),
            "You count how often the token before has the largest weight. Wanted is the weight\n"
            "itself, on average.",
        ),
        Wrong(
            "one_number_for_all_heads",
            lambda weights, real=None: weights.diagonal(-1, dim1=-2, dim2=-1).mean(),
            "All heads are averaged into one number. Each has its own.",
        ),
        Wrong(
            "diagonal_of_the_first_axes",
            lambda weights, real=None: weights.diagonal(-1).mean((0, 2)),
            "This diagonal lies between texts and heads: torch.diagonal takes the first two axes\n"
            "unless dim1 and dim2 say otherwise. Queries and keys are the last two.",
        ),
        Wrong(
            "all_keys_but_the_last",
            lambda weights, real=None: weights[:, :, 1:, :-1].mean((0, 2, 3)),
            "This is the mean of a whole block of weights. Of each row only one number counts,\n"
            "that of the token before: together they are a diagonal.",
        ),
        Wrong(
            "how_often_above_a_half",
            lambda weights, real=None: (weights.diagonal(-1, dim1=-2, dim2=-1) > 0.5).to(
                weights.dtype).mean((0, 2)),
            "This is how often the weight is above a half. Wanted is how large it is, on average.",
        ),
    ),
    right=(
        Right("loop", _previous_loop),
        Right("indexed", _previous_indexed),
        Right("by_a_mask", _previous_by_mask),
        Right("float64_inside", lambda weights, real=None: measures.previous_token_score(
            weights.double(), real).to(weights.dtype)),
    ),
)  # fmt: skip
