"""Lab 05: its quiz questions."""

from __future__ import annotations

from .kit import quiz

QUIZ = (
    quiz(
        "lab05.quiz_concat",
        "what it costs to put heads side by side",
        {
            "a": "nothing at all: only sizes and strides change",
            "b": "n_head * head_dim multiplications for each token",
            "c": "no multiplication, and one copy of all numbers",
            "d": "one addition for each number",
        },
    ),
    quiz(
        "lab05.quiz_rows",
        "which part of W_O belongs to a head",
        {
            "a": "columns 320 to 383",
            "b": "rows 320 to 383",
            "c": "rows 5, 17, 29, ...: every twelfth",
            "d": "all of it: the heads share W_O",
        },
    ),
    quiz(
        "lab05.quiz_talk",
        "what a head learns of another through W_O",
        {
            "a": "what the other found: W_O mixes all heads",
            "b": "how strong the other is, but not what it found",
            "c": "nothing: what it adds is the same whatever the others do",
            "d": "nothing until W_O is trained, then everything",
        },
    ),
    quiz(
        "lab05.quiz_shared",
        "what sharing key/value heads saves in this class",
        {
            "a": "parameters and the memory of K and V, both by a factor of four",
            "b": "parameters; K and V are copied for every query head before they are used",
            "c": "nothing: the copies cost as much as they save",
            "d": "half of the multiplications in the scores",
        },
    ),
    quiz(
        "lab05.quiz_lost",
        "what is lost with W_O",
        {
            "a": "the only place where numbers of two heads meet",
            "b": "the choice of where a head writes, and d_model * d_model weights",
            "c": "the order of the heads",
            "d": "nothing: it can always be folded away",
        },
    ),
)
