"""Lab 11: its quiz questions."""

from __future__ import annotations

from .kit import quiz

QUIZ = (
    quiz(
        "lab11.quiz_saved",
        "what flash attention saves in the forward pass",
        {
            "a": "multiplications: fewer scores are computed",
            "b": "memory, and bytes that cross between memory and chip",
            "c": "exponentials: each block needs only one",
            "d": "reads of k and v: each key is read once altogether",
        },
    ),
    quiz(
        "lab11.quiz_tile",
        "what decides the traffic",
        {
            "a": "the tile of queries: twice as many queries, half as many readings of k and v",
            "b": "the tile of keys: twice as many keys, half as many readings of k and v",
            "c": "nothing: it is the same for all tiles",
            "d": "head_dim: a wider head needs fewer tiles",
        },
    ),
    quiz(
        "lab11.quiz_half",
        "which share of the tiles a causal mask leaves",
        {
            "a": "exactly half, for every size",
            "b": "a little more than half: the tiles on the diagonal are computed whole",
            "c": "all of them: a mask hides scores and no tiles",
            "d": "a quarter: half of the queries times half of the keys",
        },
    ),
    quiz(
        "lab11.quiz_again",
        "why the backward pass makes the weights again",
        {
            "a": "because autograd forgets them",
            "b": "because it is more precise",
            "c": "a product more is cheaper than n * n weights written, kept and read",
            "d": "because the mask may have changed in between",
        },
    ),
)
