"""The notebook of lab 01 in a student's hands, and a list of what students do with it.

`SUBMISSIONS` maps a student to a function that changes the solved notebook in place, and may return
other bytes to hand in.
"""

from __future__ import annotations

import json

import nbformat

from labs_lib.exercises import lab
from labs_lib.grading.course import Course, stub_of
from labs_lib.notebook.cells import exercise_name, role

COURSE = Course(lab(1))
SCORES, MASK, SDPA, STD, BUDGET = (
    f"lab01.{name}"
    for name in (
        "attention_scores",
        "causal_mask",
        "scaled_dot_product_attention",
        "dot_product_std",
        "budget",
    )
)
POINTS = (SCORES, MASK, SDPA, STD, BUDGET)
SUBMISSIONS = {}


def released():
    """The student's notebook, untouched."""
    return stub_of(COURSE)


def solved():
    """The student's notebook with the course's own answers in it."""
    whole = released()
    solution = COURSE.solution()
    for cell, ours in zip(whole.cells, solution.cells, strict=True):
        if role(cell) == "answer":
            cell.source = ours.source.strip()
    return whole


def find(whole, name, kind="answer"):
    """The index of an exercise's cell."""
    return next(
        n for n, c in enumerate(whole.cells) if role(c) == kind and exercise_name(c) == name
    )


def write(whole, name, text):
    """Put another answer into an exercise's cell."""
    whole.cells[find(whole, name)].source = text


def new_cell(text, kind="code"):
    """A cell as an editor makes it."""
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}[kind]
    return make(text)


def pupil(function):
    """Register what a student does; the function's name is the student's."""
    SUBMISSIONS[function.__name__] = function
    return function


def dump(whole):
    return json.dumps(whole, ensure_ascii=False, indent=1).encode("utf-8")
