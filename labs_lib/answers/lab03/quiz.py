"""Answers to the quiz questions of lab 03."""

from __future__ import annotations

from ..kit import Answer, Wrong

QUIZ = {
    "lab03.quiz_inputs": Answer(
        reference="b",
        wrong=(
            Wrong(
                "a",
                "a",
                "320 to 383 are the numbers that head 5 writes into q. To make them it reads\n"
                "every row of its matrix, and that has 768 rows.",
            ),
            Wrong(
                "c",
                "c",
                "Training may make some of its numbers small, but nothing is picked: the matrix\n"
                "keeps all of its 768 rows.",
            ),
            Wrong(
                "d",
                "d",
                "Inside a layer no head sees another one. All of them read the same tokens.",
            ),
        ),
        because="A head's matrix is [768, 64]: 768 numbers in, 64 out. Only the outputs are split.",
    ),
    "lab03.quiz_columns": Answer(
        reference="c",
        wrong=(
            Wrong(
                "a",
                "a",
                "Rows are inputs, and every head reads all of them. The outputs of x @ W are\n"
                "columns.",
            ),
            Wrong(
                "b",
                "b",
                "There the columns would be dealt out one by one. With blocks side by side a\n"
                "head's 64 columns stand together.",
            ),
            Wrong(
                "d",
                "d",
                "That is one block on the diagonal: a head that reads only a slice of the token.",
            ),
        ),
        because="Head h has columns h * 64 to h * 64 + 63, and 5 * 64 = 320.",
    ),
    "lab03.quiz_products": Answer(
        reference="d",
        wrong=(
            Wrong(
                "a",
                "a",
                "The counts of products are right. Each number of q, k and v still takes 768\n"
                "multiplications, whoever asks for it, so the arithmetic stays the same.",
            ),
            Wrong(
                "b",
                "b",
                "A product of x with several matrices side by side is one product. You counted\n"
                "it.",
            ),
            Wrong(
                "c",
                "c",
                "12 is the count for one letter. q, k and v each need their own.",
            ),
        ),
        because="3 letters times 12 heads, then one product per letter, then one for all three.\n"
        "The multiplications are the same, in fewer calls.",
    ),
    "lab03.quiz_speed": Answer(
        reference="b",
        wrong=(
            Wrong(
                "a",
                "a",
                "Each of the twelve has a twelfth of the arithmetic. What is paid twelve times\n"
                "is the fixed cost of a call; look at your curve where that cost no longer\n"
                "shows.",
            ),
            Wrong(
                "c",
                "c",
                "It is the other way round: the larger each product, the less its fixed cost\n"
                "weighs.",
            ),
        ),
        because="Every call has a fixed cost, and a small product can't hide it. Your curve falls\n"
        "towards 1 as the products grow.",
    ),
    "lab03.quiz_layout": Answer(
        reference="c",
        wrong=(
            Wrong(
                "a",
                "a",
                "Both are [d_in, 3 * n_head * head_dim]. No shape tells them apart.",
            ),
            Wrong(
                "b",
                "b",
                "Renumbered heads would do no harm, but here queries are taken for keys and for\n"
                "values. You saw how far the outputs were off.",
            ),
            Wrong(
                "d",
                "d",
                "The outputs are wrong, yes. But from scratch the columns mean nothing yet:\n"
                "either reading is a fresh random start, and training goes on from there.",
            ),
        ),
        because="The layout is part of a checkpoint's format. Only trained matrices, once loaded,\n"
        "can show a mistake, and only in the values.",
    ),
}
