"""Lab 12: its quiz questions."""

from __future__ import annotations

from .kit import quiz

QUIZ = (
    quiz(
        "lab12.quiz_products",
        "how many matrix products one layer's attention has",
        {
            "a": "four: Q, K, V and W_O; the rest is one kernel",
            "b": "six: Q, K, V and W_O, and two inside of the kernel",
            "c": "one: a fused kernel does it all",
            "d": "six for each head",
        },
    ),
    quiz(
        "lab12.quiz_pairs",
        "rows of W_Q and W_K in another order",
        {
            "a": "nothing, as long as both are reordered alike and rotate turns the same pairs",
            "b": "the logits, always",
            "c": "nothing, even if only W_Q is reordered",
            "d": "the values, so W_V has to be reordered as well",
        },
    ),
    quiz(
        "lab12.quiz_repeat",
        "what the repeated keys are for",
        {
            "a": "the cache, which needs a key for every query head",
            "b": "an attend that knows no groups; what is kept stays small",
            "c": "the model's quality: more keys, better answers",
            "d": "the rotary turn, which differs from head to head",
        },
    ),
    quiz(
        "lab12.quiz_step",
        "why prompt and next token are two kinds of work",
        {
            "a": "the prompt's pass has many queries that share what is read; a step has one",
            "b": "a step has no softmax",
            "c": "the prompt is read without a mask",
            "d": "a step leaves out W_Q, because queries are not kept",
        },
    ),
    quiz(
        "lab12.quiz_equal",
        "what equal logits prove",
        {
            "a": "that your attention is right for every input",
            "b": "that all layers together are right on this text; other shapes still count",
            "c": "nothing, since the text could be luck",
            "d": "that every layer's attention is right to the last bit",
        },
    ),
)
