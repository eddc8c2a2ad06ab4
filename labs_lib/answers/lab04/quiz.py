"""Lab 04: the quiz."""

from __future__ import annotations

from ..kit import Answer, Right, Wrong

QUIZ = {
    "lab04.quiz_reading": Answer(
        reference="b",
        wrong=(
            Wrong("a", "a", "It is what the table says, and it can be built. W_O stands between "
                  "the heads and the token: what are its two sides?"),
            Wrong("c", "c", "Nothing is thrown away. W_O has a row for every number that the "
                  "heads give it."),
            Wrong("d", "d", "All 24 are used. The heads needn't be as wide together as the "
                  "token."),
        ),
        right=(Right("upper_case", "B"), Right("with_a_space", " b")),
        because="Every one of the four matrices has 3,072 on one side and 2,048 on the other, so "
        "each is 1.5 times a square.",
    ),
    "lab04.quiz_bound": Answer(
        reference="c",
        wrong=(
            Wrong("a", "a", "The embeddings do fade with many layers, but each layer brings its "
                  "MLP along. How large is that beside the four squares?"),
            Wrong("b", "b", "The two are not equal: the MLP has two matrices of d_model by "
                  "4 * d_model."),
            Wrong("d", "d", "The lesson's own model has 28.7 %, so it isn't always a quarter."),
        ),
        right=(Right("upper_case", "C"),),
        because="Four squares against eight: a third of a layer. Every row of a table makes it "
        "less.",
    ),
    "lab04.quiz_grows": Answer(
        reference="d",
        wrong=(
            Wrong("a", "a", "The matrices are cut into more pieces, and their size stays."),
            Wrong("b", "b", "More heads, each with shorter vectors: the same multiplications."),
            Wrong("c", "c", "A token has n_head * head_dim numbers of keys and as many of "
                  "values; that product stays."),
        ),
        right=(Right("upper_case", "D"),),
        because="Each head has seq by seq scores of its own, so their bytes and their softmax grow "
        "with n_head.",
    ),
    "lab04.quiz_twice_as_long": Answer(
        reference="b",
        wrong=(
            Wrong("a", "a", "The matrices are the same for every token, so a longer text needs no "
                  "more of them."),
            Wrong("c", "c", "A projection handles each token by itself: twice the tokens, twice "
                  "the work."),
            Wrong("d", "d", "There is a score for each pair of tokens. How many pairs has a text "
                  "of twice the length?"),
        ),
        right=(Right("upper_case", "B"),),
        because="Projections go with the tokens, scores with the pairs of tokens, parameters with "
        "neither.",
    ),
    "lab04.quiz_narrow": Answer(
        reference="a",
        wrong=(
            Wrong("b", "b", "The softmax gives every token a weight, and all 64 may get one."),
            Wrong("c", "c", "A head reads the whole token; W_Q has a row for each of its numbers. "
                  "What is narrow is what comes out."),
            Wrong("d", "d", "The operations are the same and the scores are not: compare how many "
                  "rows of them are independent."),
        ),
        right=(Right("upper_case", "A"),),
        because="Scores are a product of [64, 8] and [8, 64], and such a product has a rank of at "
        "most 8.",
    ),
}  # fmt: skip
