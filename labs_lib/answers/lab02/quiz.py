"""Lab 02: the quiz."""

from __future__ import annotations

from ..kit import Answer, Right, Wrong

QUIZ = {
    "lab02.quiz_palm": Answer(
        reference="b",
        wrong=(
            Wrong("a", "a", "The heads' output isn't what is added. W_O stands between: what does "
                  "it read, and what does it write?"),
            Wrong("c", "c", "Nothing is filled up. W_O is a matrix, and a matrix needn't be "
                  "square."),
            Wrong("d", "d", "Heads share no columns: 48 heads of 256 are 12,288 separate ones."),
        ),
        right=(Right("upper_case", "B"), Right("with_a_space", " b")),
        because="W_O maps n_head * head_dim to d_model, whatever the two are. That head_dim is "
        "d_model / n_head is a habit, not a law.",
    ),
    "lab02.quiz_wrong_reshape": Answer(
        reference="d",
        wrong=(
            Wrong("a", "a", "The wrong reshape has the same shape; that is why it goes unseen."),
            Wrong("b", "b", "Both hold the same numbers in another order, so every sum agrees."),
            Wrong("c", "c", "Where all numbers are equal, no order can be wrong."),
        ),
        right=(Right("upper_case", "D"),),
        because="Only different numbers show where each of them went: head 5 begins at 5 * 64 = "
        "320.",
    ),
    "lab02.quiz_bytes_moved": Answer(
        reference="c",
        wrong=(
            Wrong("a", "a", "That is what .contiguous() writes afterwards, if you ask for it."),
            Wrong("b", "b", "That is the traffic of a copy. Compare data_ptr() before and after."),
            Wrong("d", "d", "No number changes its place, neither one at a time nor all at once."),
        ),
        right=(Right("upper_case", "C"),),
        because="A transpose makes a new description of the same memory; the copy, if one is ever "
        "made, comes with .contiguous() or reshape.",
    ),
    "lab02.quiz_strided_heads": Answer(
        reference="c",
        wrong=(
            Wrong("a", "a", "The numbers come out equal, copied or not. You can measure it above."),
            Wrong("b", "b", "torch takes the strided heads as they are. You can try it above."),
            Wrong("d", "d", "A transpose moves nothing, so it can't have put anything in one "
                  "piece."),
        ),
        right=(Right("upper_case", "C"),),
        because="A matrix product takes the distance between rows (its leading dimension) as an "
        "argument; only the numbers within a row have to be neighbours.",
    ),
}  # fmt: skip
