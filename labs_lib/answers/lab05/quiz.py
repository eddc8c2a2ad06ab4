"""Answers to the quiz questions of lab 05."""

from __future__ import annotations

from ..kit import choice

QUIZ = {
    "lab05.quiz_concat": choice(
        "c",
        "Swapping two axes is free; joining two that are no longer neighbours in memory makes\n"
        "reshape copy. Not one number is multiplied or added.",
        a="That holds for the swap. The join of n_head and head_dim can't be described by strides\n"
        "any more: .view refused in your measurement, and the address changed.",
        b="That would be the arithmetic of a product. Look at what data_ptr showed: the numbers\n"
        "moved and stayed what they were.",
        d="Nothing is added up: each place of the result holds one number of one head.",
    ),
    "lab05.quiz_rows": choice(
        "b",
        "Head 5 stands at the places 320 to 383 of concat, and places of concat are rows of W_O.",
        a="Columns belong to what comes out. Head 5 writes into all 768 of them.",
        c="Heads stand side by side in blocks of 64, so their rows do too.",
        d="The columns are shared, the rows are not: rows 0 to 63 never meet a number of head 5.",
    ),
    "lab05.quiz_talk": choice(
        "c",
        "A sum keeps its terms apart. Heads meet at the next step that isn't linear: the norm and\n"
        "the MLP behind this layer, and from there the next layer's heads.",
        a="Each output number is a sum over heads, but the summands don't know of each other: you\n"
        "switched one head off, and the others' parts changed by exactly 0.",
        b="Nothing in W_O measures strength: it multiplies a head's numbers by numbers that don't\n"
        "change with the text.",
        d="Training changes the numbers in W_O; it stays a product with a matrix.",
    ),
    "lab05.quiz_shared": choice(
        "b",
        "W_K and W_V are a quarter as wide, and repeat_interleave makes full-size copies of what\n"
        "they give. Lab 08 attends without the copies.",
        a="The parameters of W_K and W_V, yes. You measured what repeat_interleave does to the\n"
        "memory: the tensor it returns is as large as if nothing were shared.",
        c="Copies cost memory while a layer runs; the parameters are saved for good.",
        d="Every query head still compares with every key: the scores are as many as before.",
    ),
    "lab05.quiz_lost": choice(
        "b",
        "With W_O a head may write anywhere in the d_model numbers; without it only into its own\n"
        "head_dim. The measured loss is small, since the MLP mixes what it reads.",
        a="The first matrix of the MLP reads all d_model numbers; it can mix what W_O didn't.",
        c="The heads keep their order: they stand side by side as before.",
        d="What is folded is still there: W_V @ W_O as a wide matrix for each head. Leaving W_O\n"
        "out leaves only the head_dim columns of W_V.",
    ),
}
