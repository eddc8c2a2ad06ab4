"""Lab 10: its quiz questions."""

from __future__ import annotations

from .kit import quiz

QUIZ = (
    quiz(
        "lab10.quiz_shift",
        "what subtracting the maximum does",
        {
            "a": "it makes the weights of large scores a little smaller",
            "b": "nothing to the weights: numerator and denominator lose the same factor",
            "c": "it makes all weights more precise, whatever the scores",
            "d": "it makes the scores add up to 0",
        },
    ),
    quiz(
        "lab10.quiz_state",
        "what has to be kept of a thousand scores that have gone by",
        {
            "a": "all of them: a later maximum changes every weight",
            "b": "the sum of their exponentials",
            "c": "their maximum, and the sum of exp(score - maximum)",
            "d": "their mean and their number",
        },
    ),
    quiz(
        "lab10.quiz_how_often",
        "how often the maximum of a shuffled row grows",
        {
            "a": "64 times: with every block",
            "b": "about 32 times: half of the blocks beat the blocks before",
            "c": "about 5 times",
            "d": "once: in the first block",
        },
    ),
    quiz(
        "lab10.quiz_order",
        "what the order of the blocks changes",
        {
            "a": "nothing, not one bit: the merge is associative",
            "b": "the last digits: floating-point addition isn't associative, real addition is",
            "c": "everything: a block has to come after the blocks before it",
            "d": "m and l, but not the last digits of the output",
        },
    ),
    quiz(
        "lab10.quiz_lse",
        "why a kernel stores lse and not the weights",
        {
            "a": "one number a row brings every weight back: exp(score - lse)",
            "b": "lse is more precise than the weights",
            "c": "the weights can't be had from it, but nobody needs them",
            "d": "the next layer takes lse as an input",
        },
    ),
)
