"""Lab 01: the quiz, with why each wrong choice is wrong."""

from __future__ import annotations

from ..kit import Answer, Wrong

ANSWERS = {
    "lab01.quiz_scale": Answer(
        reference="b",
        wrong=(
            Wrong(
                "a",
                "a",
                "√768 is the root of the whole width. One head's dot product adds up only its own\n"
                "64 products, so this divides by 3.5 times too much and the rows become too even.",
            ),
            Wrong(
                "c",
                "c",
                "64 is the factor by which the variance grows. A score is measured by its\n"
                "standard deviation, and that is the root of the variance.",
            ),
            Wrong(
                "d",
                "d",
                "1,024 is how many keys there are. More keys mean more scores, not larger ones:\n"
                "each score is still a sum over the width of one head.",
            ),
        ),
        because="A score is a sum of head_dim = 64 products: its standard deviation grows as √64.",
    ),
    "lab01.quiz_no_scale": Answer(
        reference="c",
        wrong=(
            Wrong(
                "a",
                "a",
                "It is the other way round. The scores spread more and more as head_dim grows,\n"
                "and e to their power spreads far more; look at the picture of the entropy again.",
            ),
            Wrong(
                "b",
                "b",
                "The rows do add up to 1, always. That says nothing about how the 1 is shared out.",
            ),
            Wrong(
                "d",
                "d",
                "A softmax row adds up to 1 whatever the scores are; only its shape changes.",
            ),
        ),
        because="Scores of standard deviation 16 leave one key nearly all of the weight. A weight\n"
        "moves by w (1 - w) times what its score does: neither that one nor the others move.",
    ),
    "lab01.quiz_mask_place": Answer(
        reference="a",
        wrong=(
            Wrong(
                "b",
                "b",
                "The softmax has then already given weight to the keys that are cut, so what is\n"
                "left adds up to less than 1: later tokens have still had a say.",
            ),
            Wrong(
                "c",
                "c",
                "A score of 0 is an ordinary score: e⁰ = 1. The key still gets a weight, and\n"
                "often a large one.",
            ),
            Wrong(
                "d",
                "d",
                "A zero value is still averaged in with its weight. The other values get a\n"
                "smaller share than they should.",
            ),
        ),
        because="e^(-inf) is exactly 0, and the softmax shares out all 100 percent among the rest.",
    ),
    "lab01.quiz_two_targets": Answer(
        reference="b",
        wrong=(
            Wrong(
                "a",
                "a",
                "It can: equal weight on both. The recorded head does just that, with 39 percent\n"
                "each.",
            ),
            Wrong(
                "c",
                "c",
                "That is what it gives best: half of each value is their sum, halved.",
            ),
            Wrong(
                "d",
                "d",
                "It may, and the head that had to keep the order for a linear read-out learned to\n"
                "do so. But it need not: two keys with equal weight are one legal row, and both\n"
                "values can be named from it, as a set.",
            ),
        ),
        because="The head hands on one mixture, and with equal weights a + b is b + a. Unequal\n"
        "weights would keep the order, but a linear read-out can't use that. Two heads keep the\n"
        "two apart. The limit is binding, not seeing.",
    ),
}
