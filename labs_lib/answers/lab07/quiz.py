"""Answers to the quiz questions of lab 07."""

from __future__ import annotations

from ..kit import choice

QUIZ = {
    "lab07.quiz_same_token": choice(
        "b",
        "It hands on the value of an equal token, and that tells which token this is. To predict,\n"
        "a head must look one place further.",
        a="It has found the right neighbourhood. What does the value at that place say?",
        c="The token before is always one place back; the earlier copy may be anywhere.",
        d="A mask takes keys away. It moves none.",
    ),
    "lab07.quiz_two_layers": choice(
        "c",
        "Somebody has to carry each token one place on before keys are made: a head of a layer\n"
        "below, or smeared keys.",
        a="More parameters in one layer don't help here: two small layers learn it, and so does\n"
        "one with smeared keys, which has four numbers more.",
        b="It has positions; they were added before the first layer.",
        d="It could look at many. It lacks a reason to look at the right one.",
    ),
    "lab07.quiz_control": choice(
        "c",
        "Some random sets hurt as well, so several are drawn; and a loss that rises on every text\n"
        "says that the model is broken, not that it can't copy.",
        a="Perhaps any seven heads would do as much harm. Only other sets of seven can tell.",
        b="Half of it. What if other heads did as much harm on both?",
        d="Then nothing works any more, whoever copies.",
    ),
    "lab07.quiz_cannot": choice(
        "b",
        "A copying head hands on what stands in the text. A word that isn't there has to come\n"
        "from somewhere else.",
        a="That is what it is good at: the name has stood there whole.",
        c="The list has stood there once: each number is followed by the same one again.",
        d="One earlier place, one token after it: the plain case.",
    ),
}
