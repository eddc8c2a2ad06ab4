"""Lab 04: the two numbers that are asked, and the quiz."""

from __future__ import annotations

from .kit import Exercise, quiz

VALUES = {
    "quarter_vocab": Exercise(
        name="lab04.quarter_vocab",
        title="the vocabulary at which attention is exactly a quarter",
        kind="number",
        stub="quarter_vocab = None  # how many tokens, a whole number\n",
        unit="tokens",
        hints=(
            "A quarter means: everything else together is three times the attention. Which of the "
            "parts do you know already?",
            "With d_ff = 4 * d_model the MLP is twice the attention. So embeddings and places "
            "together have to be as large as attention itself.",
            "Divide that by d_model and you have the number of rows of the table. Some of these "
            "rows are places, not tokens.",
        ),
        minutes=6,
    ),
    "weights_gib": Exercise(
        name="lab04.weights_gib",
        title="the weights of a model in GiB, not in GB",
        kind="number",
        decimals=2,
        unit="GiB",
        stub="weights_gib = None  # GiB, to two decimals\n",
        hints=(
            "First the bytes: parameters times bytes for each of them.",
            "GB counts in steps of 1,000, GiB in steps of 1,024; both are three steps from a byte.",
            "One GiB is 1,024 to the third power bytes. Divide by that, and by no 1,000.",
        ),
        minutes=4,
    ),
}


QUIZ = {
    "reading": quiz(
        "lab04.quiz_reading",
        "what a line of a table says about W_O",
        {
            "a": "It can't be right: 24 times 128 is 3,072, which is not 2,048.",
            "b": "W_O is [3072, 2048], and attention has 1.5 times 4 * 2048 * 2048 weights.",
            "c": "W_O is [2048, 2048], and 1,024 of the heads' numbers are thrown away.",
            "d": "Only 16 of the 24 heads are used, since 16 times 128 is 2,048.",
        },
        minutes=2,
    ),
    "bound": quiz(
        "lab04.quiz_bound",
        "how large the share of attention can become",
        {
            "a": "nearly everything: with many layers the embeddings no longer count",
            "b": "a half, as with two equal parts",
            "c": "a third, and only as the tables vanish",
            "d": "a quarter, which is where it always lies",
        },
        minutes=2,
    ),
    "grows": quiz(
        "lab04.quiz_grows",
        "what grows with the number of heads",
        {
            "a": "the parameters of W_Q, W_K and W_V",
            "b": "the operations of the product of queries and keys",
            "c": "the numbers of a token's keys and values",
            "d": "the bytes of the scores",
        },
        minutes=2,
    ),
    "twice_as_long": quiz(
        "lab04.quiz_twice_as_long",
        "what a text of twice the length costs",
        {
            "a": "parameters 2 times, projections 2 times, products with the scores 4 times",
            "b": "parameters as before, projections 2 times, products with the scores 4 times",
            "c": "parameters as before, projections 4 times, products with the scores 4 times",
            "d": "parameters as before, everything else 2 times",
        },
        minutes=2,
    ),
    "narrow": quiz(
        "lab04.quiz_narrow",
        "what a head loses by being narrow",
        {
            "a": "its 64 by 64 scores have a rank of at most 8",
            "b": "it can attend to at most 8 of the 64 tokens",
            "c": "it reads only 8 numbers of each token",
            "d": "nothing, since the operations are the same",
        },
        minutes=2,
    ),
}
