"""Answers to sink_score."""

from __future__ import annotations

import torch

from labs_lib.attention import measures

from ..kit import Answer, Right, Wrong


def _sink_loop(weights):
    return torch.stack([head[:, 1:, 0].mean() for head in weights.unbind(1)])


SINK_SCORE = Answer(
    reference=measures.sink_score,
    wrong=(
        Wrong(
            "first_query_counts",
            lambda weights: weights[:, :, :, 0].mean(dim=(0, 2)),
            "Query 0 is in the mean. It sees nothing but key 0, so its weight there is 1 in every\n"
            "head and says nothing about any of them.",
        ),
        Wrong(
            "row_of_the_first_query",
            lambda weights: weights[:, :, 0, 1:].mean(dim=(0, 2)),
            "This is the row of query 0, what the first token looks at. Wanted is what the others\n"
            "give to it: a column.",
        ),
        Wrong(
            "last_key",
            lambda weights: weights[:, :, 1:, -1].mean(dim=(0, 2)),
            "This is the weight on the last key, which hardly any query may see.",
        ),
        Wrong(
            "second_key",
            lambda weights: weights[:, :, 1:, 1].mean(dim=(0, 2)),
            "This is the weight on key 1. Counting starts at 0.",
        ),
        Wrong(
            "token_itself",
            lambda weights: weights.diagonal(dim1=-2, dim2=-1)[:, :, 1:].mean(dim=(0, 2)),
            "This is what each token gives to itself: the diagonal.",
        ),
        Wrong(
            "largest",
            lambda weights: weights[:, :, 1:].amax(-1).mean(dim=(0, 2)),
            "This is the largest weight of each row, whoever has it. Wanted is that on key 0.",
        ),
        Wrong(
            "highest_query",
            lambda weights: weights[:, :, 1:, 0].amax(dim=(0, 2)),
            "This is the query that gives most. Wanted is the mean over queries.",
        ),
        Wrong(
            "last_query_only",
            lambda weights: weights[:, :, -1, 0].mean(0),
            "Only the last query is looked at. All but query 0 count.",
        ),
        Wrong(
            "summed",
            lambda weights: weights[:, :, 1:, 0].sum(dim=(0, 2)),
            "The weights are added up and not averaged.",
        ),
        Wrong(
            "divided_by_seq",
            lambda weights: weights[:, :, 1:, 0].sum(dim=(0, 2)) / (
                weights.shape[0] * weights.shape[2]),
            "Query 0 is left out of the sum but still counted in the number that it is divided by.",
        ),
        Wrong(
            "for_each_text",
            lambda weights: weights[:, :, 1:, 0].mean(2),
            "There is a row for each text. Wanted is one number for each head, over all texts.",
        ),
        Wrong(
            "all_heads_together",
            lambda weights: weights[:, :, 1:, 0].mean(),
            "All heads are averaged into one number. Each has its own.",
        ),
        Wrong(
            "first_row",
            lambda weights: weights[:, :, 0].mean((0, 2)),
            "This is the row of query 0, what the first token looks at: itself, and nothing else.\n"
            "Wanted is what the others give to it: a column.",
        ),
        Wrong(
            "summed_over_queries",
            lambda weights: weights[:, :, 1:, 0].sum(2).mean(0),
            "The weights are added up over the queries. Wanted is their mean.",
        ),
        Wrong(
            "a_head_left_out",
            lambda weights: weights[:, 1:, :, 0].mean((0, 2)),
            "Head 0 is left out, not query 0: the axes are [batch, n_head, query, key].",
        ),
        Wrong(
            "first_text_only",
            lambda weights: weights[0, :, 1:, 0].mean(-1),
            "Only the first text is looked at. The mean goes over all of them.",
        ),
        Wrong(
            "two_queries_left_out",
            lambda weights: weights[:, :, 2:, 0].mean((0, 2)),
            "Queries 0 and 1 are left out. Query 1 has a choice already: key 0 or itself.",
        ),
        Wrong(
            "share_of_queries",
            lambda weights: (weights[:, :, 1:, 0] > 0.5).to(weights.dtype).mean((0, 2)),
            "This is how often key 0 gets more than half. Wanted is how much it gets, on average.",
        ),
        Wrong(
            "heads_averaged",
            lambda weights: weights[:, :, 1:, 0].mean((0, 1)),
            "The heads are averaged, and there is one number for each query. It is the other way\n"
            "round: one for each head.",
        ),
    ),
    right=(
        Right("loop", _sink_loop),
        Right("mean_twice", lambda weights: weights[..., 1:, 0].mean(-1).mean(0)),
        Right("einsum", lambda weights: torch.einsum("bhq->h", weights[:, :, 1:, 0]) / (
            weights.shape[0] * (weights.shape[2] - 1))),
        Right("float64_inside", lambda weights: measures.sink_score(weights.double()).to(
            weights.dtype)),
    ),
)  # fmt: skip
