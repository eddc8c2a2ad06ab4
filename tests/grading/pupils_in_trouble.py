"""Students whose answers are half done or do harm, and files that nobody asked for."""

from __future__ import annotations

import nbformat
from pupil_cells import (
    BUDGET,
    MASK,
    SCORES,
    SDPA,
    STD,
    dump,
    find,
    new_cell,
    pupil,
    released,
    write,
)

from labs_lib.exercises import lab
from labs_lib.grading.course import Course, stub_of


@pupil
def half_done(whole):
    for name in (SDPA, BUDGET):
        write(whole, name, released().cells[find(released(), name)].source)


@pupil
def untouched(whole):
    whole.cells = released().cells


@pupil
def does_not_parse(whole):
    write(whole, SCORES, "def attention_scores(q, k):\n    return q @ (k\n")
    write(whole, MASK, "def causal_mask(seq_q, seq_k=None):\n\tif seq_k:\n        return 3\n")


@pupil
def raises(whole):
    write(whole, SCORES, "def attention_scores(q, k):\n    return q @ undefined_name")
    write(whole, STD, "def dot_product_std(head_dim, q_std, k_std):\n    raise SystemExit")
    write(whole, BUDGET, "def budget(n_key, n_wanted, gap):\n    return input('?')")


@pupil
def loops(whole):
    write(whole, MASK, "while True:\n    pass")


@pupil
def loops_inside(whole):
    write(
        whole,
        SCORES,
        "def attention_scores(q, k):\n    while True:\n        try:\n            q = q + 1\n"
        "        except BaseException:\n            pass",
    )


@pupil
def leaves(whole):
    write(whole, SCORES, "import os\ndef attention_scores(q, k):\n    os._exit(0)")


@pupil
def eats_memory(whole):
    write(
        whole,
        MASK,
        "def causal_mask(seq_q, seq_k=None):\n    kept = []\n    while True:\n"
        "        kept.append(torch.ones(30_000_000))",
    )


@pupil
def floods(whole):
    write(whole, STD, "while True:\n    print('x' * 1000)")


@pupil
def not_json(whole):
    return b"import torch\nprint('hello')\n"


@pupil
def empty(whole):
    return b""


@pupil
def cut_off(whole):
    return dump(whole)[:2000]


@pupil
def in_conflict(whole):
    lines = dump(whole).split(b"\n")
    return b"\n".join([*lines[:4], b"<<<<<<< HEAD", *lines[4:]])


@pupil
def of_another_lab(whole):
    return dump(stub_of(Course(lab(0))))


@pupil
def of_no_lab(whole):
    return dump(nbformat.v4.new_notebook(cells=[new_cell("print(1)")]))
