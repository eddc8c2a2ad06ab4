"""Lab 00: references, wrong programs and right programs."""

from __future__ import annotations

import numpy as np
import torch

from .kit import Answer, Right, Wrong
from .lab00_self_test import SELF_TEST


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
                "This is the mean of each column. dim=-2 runs down the rows; the numbers of one\n"
                "row stand along the last axis.",
            ),
            Wrong(
                "mean_along_axis_0",
                lambda x: x.mean(dim=0),
                "This is the mean of each column. dim=0 (with two axes the same as dim=-2) runs\n"
                "down the rows; the numbers of one row stand along the last axis.",
            ),
            Wrong(
                "axis_one",
                lambda x: x.mean(dim=1),
                "dim=1 is the last axis only where there are two. In a tensor of three axes it is\n"
                "the one in the middle; count from the back.",
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
                "divided_by_rows",
                lambda x: x.sum(dim=-1) / len(x),
                "The sum is divided by len(x), the length of the first axis, which with two axes\n"
                "is how many rows there are. Divide by how many numbers stand in one row.",
            ),
            Wrong(
                "divided_by_three",
                lambda x: x.sum(dim=-1) / 3,
                "The sum is divided by 3, whatever comes in. Rows can have any length; read it\n"
                "from x.",
            ),
            Wrong(
                "divided_by_axis_one",
                lambda x: x.sum(dim=-1) / x.shape[1],
                "The sum is divided by x.shape[1], which is how many numbers a row has only where\n"
                "there are two axes; count from the back.",
            ),
            Wrong(
                "loop_over_two_axes",
                lambda x: torch.tensor([sum(map(float, row.reshape(-1))) / len(row) for row in x]),
                "Right for two axes. With three, a loop over x runs over blocks of rows, and this\n"
                "gives one number per block; wanted is one number per row.",
            ),
            Wrong(
                "returned_in_the_loop",
                lambda x: sum(map(float, x[0].reshape(-1))) / len(x[0]),
                "This is one number, the mean of the first row. A return inside the loop ends the\n"
                "function in its first turn; wanted is one number for every row.",
            ),
            Wrong(
                "list_of_numbers",
                lambda x: x.mean(dim=-1).tolist(),
                "The numbers are right but they come as a list; wanted is a tensor.",
            ),
            Wrong(
                "nothing_returned",
                lambda x: None,
                "Nothing comes back from your function. To print a result shows it; to hand it on\n"
                "takes a return.",
            ),
            Wrong(
                "only_the_last_row",
                lambda x: x[-1].mean(-1),
                "This is the mean of the last row alone. A loop that writes each result to the\n"
                "same name keeps the last one; wanted is one number for every row.",
            ),
            Wrong(
                "whole_numbers",
                lambda x: x.sum(dim=-1) // x.shape[-1],
                "The means are cut to whole numbers: // leaves out what stands behind the point.",
            ),
            Wrong(
                "mean_of_numpy",
                lambda x: np.mean(x, axis=-1),
                "np.mean is numpy's and is made for numpy's arrays. A tensor has a mean of its\n"
                "own, x.mean(...).",
            ),
            Wrong(
                "through_numpy",
                lambda x: torch.from_numpy(np.mean(x.numpy(), axis=-1)),
                "In training torch follows every step of a function, and it can't follow numpy's.\n"
                "Don't take torch's advice here: detach() only hides the step. Stay with torch's\n"
                "own operations.",
            ),
            Wrong(
                "largest_of_rows",
                lambda x: x.amax(dim=-1),
                "This is the largest number of each row, not its mean.",
            ),
            Wrong(
                "middle_of_rows",
                lambda x: x.median(dim=-1).values,
                "This is the median of each row, the number in the middle, not its mean.",
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
    "lab00.quiz_outcomes": Answer(
        reference="c",
        wrong=(
            Wrong("a", "a", "A check that passes before any work would tell you nothing."),
            Wrong(
                "b",
                "b",
                "FAIL means: it ran, and the values are not right. A cell that you haven't\n"
                "touched is not wrong, only not begun.",
            ),
            Wrong(
                "d",
                "d",
                "ERROR means that your code raised an error. The line that stands in an untouched\n"
                "cell, raise NotImplementedError, is known to the check and isn't counted as one.",
            ),
        ),
        because="An exercise that you haven't begun never reads as wrong.",
    ),
    "lab00.quiz_last_axis": Answer(
        reference="b",
        wrong=(
            Wrong(
                "a",
                "a",
                "Here the first axis is gone, which is what dim=0 does. dim=-1 counts from the\n"
                "end.",
            ),
            Wrong(
                "c",
                "c",
                "That is what keepdim=True gives: the axis stays, with length 1. Without it, it\n"
                "goes.",
            ),
            Wrong(
                "d",
                "d",
                "Here the first two axes are gone and the last is left; it is the other way round.",
            ),
        ),
        because="The mean takes away the axis along which it runs, and -1 is the last one.",
    ),
    "lab00.quiz_right_shape": Answer(
        reference="b",
        wrong=(
            Wrong(
                "a",
                "a",
                "Look at the cell where three programs give the same shape; none of them is\n"
                "right. In later labs nearly every mistake has the right shape.",
            ),
            Wrong(
                "c",
                "c",
                "A shape that is not square does show some mistakes. But the sum of each row has\n"
                "the shape of its mean, square or not.",
            ),
        ),
        because="That is why checks compare values, on inputs that are all different.",
    ),
} | SELF_TEST
