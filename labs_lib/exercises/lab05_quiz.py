"""Lab 05: its quiz questions."""

from __future__ import annotations

from .kit import Exercise


def _question(topic: str, title: str, **choices: str) -> Exercise:
    letters = [f'"{letter}"' for letter in choices]
    allowed = ", ".join(letters[:-1]) + f" or {letters[-1]}"
    return Exercise(
        name=f"lab05.quiz_{topic}",
        title=f"quiz: {title}",
        kind="choice",
        points=0,
        stub=f"quiz_{topic} = None  # {allowed}\n",
        choices=choices,
        minutes=1,
    )


QUIZ = (
    _question(
        "concat",
        "what it costs to put heads side by side",
        a="nothing at all: only sizes and strides change",
        b="n_head * head_dim multiplications for each token",
        c="no multiplication, and one copy of all numbers",
        d="one addition for each number",
    ),
    _question(
        "rows",
        "which part of W_O belongs to a head",
        a="columns 320 to 383",
        b="rows 320 to 383",
        c="rows 5, 17, 29, ...: every twelfth",
        d="all of it: the heads share W_O",
    ),
    _question(
        "talk",
        "what a head learns of another through W_O",
        a="what the other found: W_O mixes all heads",
        b="how strong the other is, but not what it found",
        c="nothing: what it adds is the same whatever the others do",
        d="nothing until W_O is trained, then everything",
    ),
    _question(
        "shared",
        "what sharing key/value heads saves in this class",
        a="parameters and the memory of K and V, both by a factor of four",
        b="parameters; K and V are copied for every query head before they are used",
        c="nothing: the copies cost as much as they save",
        d="half of the multiplications in the scores",
    ),
    _question(
        "lost",
        "what is lost with W_O",
        a="the only place where numbers of two heads meet",
        b="the choice of where a head writes, and d_model * d_model weights",
        c="the order of the heads",
        d="nothing: it can always be folded away",
    ),
)
