"""Lab 00: references, wrong programs and right programs."""

from __future__ import annotations

import torch

from .kit import Answer, Right, Wrong


def first_tensor(x):
    """The mean of each row: [..., rows, columns] -> [..., rows]."""
    return x.mean(dim=-1)


ANSWERS = {
    "lab00.first_tensor": Answer(
        reference=first_tensor,
        wrong=(
            Wrong(
                "mean_of_columns",
                lambda x: x.mean(dim=-2),
                "This is the mean of each column. dim=-2 runs down the rows; the numbers of one row\n"
                "stand along the last axis.",
            ),
            Wrong(
                "mean_of_all",
                lambda x: x.mean(),
                "This is one mean over everything. Say along which axis the mean is to be taken.",
            ),
            Wrong(
                "sum_of_rows",
                lambda x: x.sum(dim=-1),
                "This is the sum of each row. A mean divides by how many numbers there are.",
            ),
            Wrong(
                "keeps_the_axis",
                lambda x: x.mean(dim=-1, keepdim=True),
                "The values are right but the last axis is still there, with length 1.\n"
                "keepdim=True keeps it; here it has to go.",
            ),
        ),
        right=(
            Right("sum_over_count", lambda x: x.sum(-1) / x.shape[-1]),
            Right("einsum", lambda x: torch.einsum("...c->...", x) / x.shape[-1]),
            Right("product", lambda x: x @ torch.full((x.shape[-1],), 1 / x.shape[-1])),
            Right("float64_inside", lambda x: x.double().mean(-1).to(x.dtype)),
        ),
    ),
}
