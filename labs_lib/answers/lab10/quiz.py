"""Answers to the quiz questions of lab 10."""

from __future__ import annotations

from ..kit import choice

QUIZ = {
    "lab10.quiz_shift": choice(
        "b",
        "exp(s - m) = exp(s) / exp(m), above and below the line. What changes is only whether the\n"
        "numbers on the way fit into the format.",
        a="Every exponential is divided by the same exp(m), the sum too. No ratio changes.",
        c="For scores near 0 it changes nothing but the last digit. What it prevents is overflow,\n"
        "and sums that are 0.",
        d="The largest score becomes 0. Their sum is whatever it is.",
    ),
    "lab10.quiz_state": choice(
        "c",
        "Two numbers a row. A later maximum multiplies all old terms by one factor, and so their\n"
        "sum.",
        a="It changes every weight by the same factor, so one sum can stand for them all. Which\n"
        "other number says by what factor?",
        b="Without the maximum beside it the sum overflows, and nobody knows what it is relative\n"
        "to.",
        d="exp isn't linear: rows with the same mean have different sums of exponentials.",
    ),
    "lab10.quiz_how_often": choice(
        "c",
        "Block i beats all before it with probability 1/i, and 1 + 1/2 + ... + 1/64 is 4.7. Some\n"
        "kernels make use of it and skip the multiplication by 1.",
        a="It is multiplied with every block, but mostly by exp(0) = 1.",
        b="Half of the blocks beat the one just before them. To count, a block has to beat all.",
        d="That holds where the row falls. In random order a later block may well be larger.",
    ),
    "lab10.quiz_order": choice(
        "b",
        "You measured it: a hundred orders gave more than one result, all of them within 1e-6.",
        a="Over the real numbers, yes. Each sum in floating point is rounded, and another order\n"
        "rounds otherwise.",
        c="A state doesn't know where its scores stood. That is why blocks can be shared out over\n"
        "processors.",
        d="m is a maximum: no order changes a bit of it. l, o and the output are rounded sums.",
    ),
    "lab10.quiz_lse": choice(
        "a",
        "The weights are n numbers a row, lse is one. With q, k and lse any tile of weights is\n"
        "made again when the gradient needs it (lab 11).",
        b="It comes from the same numbers. What it saves is memory.",
        c="They can: exp(score - lse), and the gradient needs them.",
        d="The next layer takes the output. lse stays for the way back.",
    ),
}
