"""Answers to the quiz questions of lab 11."""

from __future__ import annotations

from ..kit import choice

QUIZ = {
    "lab11.quiz_saved": choice(
        "b",
        "The same products and exponentials, but scores and weights live and die on the chip.",
        a="Each query still meets each key: the inner loop has all n * n products, tile by tile.",
        c="Each score has its own exponential, and each tile a few more for the factors.",
        d="k and v are read again for each tile of queries. That is what is left of the traffic.",
    ),
    "lab11.quiz_tile": choice(
        "a",
        "All queries of a tile share one walk over the keys. What stops them is the chip's memory.",
        b="The tile of keys decides how many keys wait on the chip at a time, not how often they\n"
        "are read.",
        c="Look at your io_bytes: block_q is in it.",
        d="A wider head makes each reading larger, and leaves less room for queries.",
    ),
    "lab11.quiz_half": choice(
        "b",
        "With T tiles a side, T (T + 1) / 2 of T * T are computed: 53 percent for 16.",
        a="A tile that the diagonal cuts is computed whole and then masked.",
        c="A tile above the diagonal holds hidden scores only. Nothing of it is needed.",
        d="Each query sees half of the keys on average; that is half of all pairs.",
    ),
    "lab11.quiz_again": choice(
        "c",
        "One of the five products of the backward pass repeats one of the forward pass. What is\n"
        "saved is n * n numbers for each head and layer, kept from forward to backward.",
        a="Autograd would keep them, all n * n: that is what is to be avoided.",
        b="The weights are the same up to rounding.",
        d="A mask doesn't change between the two passes.",
    ),
}
