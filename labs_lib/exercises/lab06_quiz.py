"""Lab 06: its quiz questions."""

from __future__ import annotations

from .kit import quiz

QUIZ = (
    quiz(
        "lab06.quiz_baseline",
        "what a score is worth without a baseline",
        {
            "a": "it is a specialist: it is right in two of three cases",
            "b": "nothing yet: always looking one token back may be right as often",
            "c": "it is useless: a third of its answers are wrong",
            "d": "it shows that the model knows grammar",
        },
    ),
    quiz(
        "lab06.quiz_clones",
        "what becomes of two heads with equal weights",
        {
            "a": "they drift apart: training finds two niches",
            "b": "both fade: redundant heads get smaller gradients",
            "c": "they stay equal for ever: equal weights get equal gradients",
            "d": "one grows and the other fades",
        },
    ),
    quiz(
        "lab06.quiz_sink",
        "why the first token gets so much",
        {
            "a": "it holds the meaning of the text",
            "b": "a row has to add up to 1, and its value adds next to nothing",
            "c": "the number of its place, 0, makes its scores largest",
            "d": "it is a start mark, and models learn to obey it",
        },
    ),
    quiz(
        "lab06.quiz_outlier",
        "which scales save int8 from one huge token",
        {
            "a": "one scale for all",
            "b": "one scale for each channel",
            "c": "one scale for each token",
            "d": "none: int8 can't hold it",
        },
    ),
    quiz(
        "lab06.quiz_published",
        "who pruned what",
        {
            "a": "80 % of BERT's heads for almost nothing",
            "b": "38 of 48 encoder heads of a translation model for 0.15 BLEU",
            "c": "88 of 96 heads of any Transformer without a loss",
            "d": "all heads but one of every layer of BERT",
        },
    ),
)
