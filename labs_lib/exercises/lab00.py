"""Lab 00, start here: what is asked."""

from __future__ import annotations

import numpy as np

from .inputs import uniform
from .kit import Case, Exercise, Lab, quiz
from .lab00_self_test import SELF_TEST

LAB = Lab(
    number=0,
    slug="start_here",
    title="Start here",
    minutes=30,
    question="How does this course tell you that you are right, and what can this machine do?",
)


def _first_tensor_cases(rng: np.random.Generator) -> list[Case]:
    return [
        Case("three rows of four", (uniform(rng, 3, 4),)),
        Case("four rows of four", (uniform(rng, 4, 4),)),
        Case("one row", (uniform(rng, 1, 5),)),
        Case("three axes: two blocks of three rows, one column", (uniform(rng, 2, 3, 1),)),
        Case("three axes: two blocks of three rows", (uniform(rng, 2, 3, 4),), grad=True),
    ]


EXERCISES = (
    Exercise(
        name="lab00.first_tensor",
        title="the mean of each row of a tensor",
        stub='''
def first_tensor(x):
    """The mean of each row: [..., rows, columns] -> [..., rows].

    first_tensor(torch.tensor([[1., 3.], [10., 20.]]))  ->  tensor([ 2., 15.])
    """
    raise NotImplementedError
''',
        cases=_first_tensor_cases,
        axes=("rows",),
        hints=(
            "A tensor knows its mean: x.mean() gives one number for all of it.",
            "x.mean(dim=...) takes the mean along one axis and removes that axis.",
            "The numbers of a row stand along the last axis. From the back axes are numbered -1, "
            "-2, -3, so one of these is the last axis however many there are.",
        ),
        minutes=5,
    ),
    quiz(
        "lab00.quiz_outcomes",
        "you run a check and haven't touched the cell above it: what does it say?",
        {"a": "PASS", "b": "FAIL", "c": "NOT ATTEMPTED", "d": "ERROR"},
    ),
    quiz(
        "lab00.quiz_last_axis",
        "x has shape [2, 3, 4]: what is the shape of x.mean(dim=-1)?",
        {"a": "[3, 4]", "b": "[2, 3]", "c": "[2, 3, 1]", "d": "[4]"},
    ),
    quiz(
        "lab00.quiz_right_shape",
        "your result has the right shape: what do you know?",
        {
            "a": "the values are right too, nearly always",
            "b": "nothing about the values",
            "c": "the values are right if the shape is not square",
        },
    ),
    *SELF_TEST,
)
