"""Lab 00, start here: what is asked."""

from __future__ import annotations

import numpy as np

from .inputs import uniform
from .kit import Case, Exercise, Lab

LAB = Lab(
    number=0,
    slug="start_here",
    title="Start here",
    minutes=20,
    question="How does this course tell you that you are right, and what can this machine do?",
)


def _first_tensor_cases(rng: np.random.Generator) -> list[Case]:
    return [
        Case("three rows of four", (uniform(rng, 3, 4),)),
        Case("four rows of four", (uniform(rng, 4, 4),)),
        Case("one row", (uniform(rng, 1, 5),)),
        Case("two batches", (uniform(rng, 2, 3, 4),), grad=True),
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
            "The columns are the last axis, and dim=-1 is always the last one.",
        ),
        minutes=5,
    ),
)
