"""Lab 07: its quiz questions."""

from __future__ import annotations

from .kit import quiz

QUIZ = (
    quiz(
        "lab07.quiz_same_token",
        "what a head is that looks at the earlier copy itself",
        {
            "a": "an induction head: it has found the place",
            "b": "a head for equal tokens: it fetches which token this is, not what came next",
            "c": "a previous-token head",
            "d": "an induction head that is one place off because of the mask",
        },
    ),
    quiz(
        "lab07.quiz_two_layers",
        "why one ordinary layer can't do it",
        {
            "a": "one layer has too few parameters",
            "b": "one layer has no positions",
            "c": "a key must know which token stood before its own, and in layer one it doesn't",
            "d": "softmax can look at one key only",
        },
    ),
    quiz(
        "lab07.quiz_control",
        "what silencing the best heads needs beside it",
        {
            "a": "nothing: the loss on copies rises, so they are what copies",
            "b": "the same heads silent on another text",
            "c": "as many other heads silent, in several draws, and a text without copies",
            "d": "all heads silent",
        },
    ),
    quiz(
        "lab07.quiz_cannot",
        "which of these copying cannot give",
        {
            "a": "the second half of a name that stood two lines above",
            "b": "the translation of a word whose translation isn't in the text",
            "c": "the next number of a list that has stood there once and comes again",
            "d": "the word after a rare word that stood once before",
        },
    ),
)
