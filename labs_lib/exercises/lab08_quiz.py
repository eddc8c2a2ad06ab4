"""Lab 08: its quiz questions."""

from __future__ import annotations

from .kit import quiz

QUIZ = (
    quiz(
        "lab08.quiz_queries",
        "why queries are not kept",
        {
            "a": "they are smaller than keys and values",
            "b": "a query is used in its own token's step and never again",
            "c": "they would change with every token that follows",
            "d": "they are kept, in the same buffer as the keys",
        },
    ),
    quiz(
        "lab08.quiz_saved",
        "what a cache saves, and what grows all the same",
        {
            "a": "projections of old tokens; a step still reads all keys and values",
            "b": "everything: a step costs the same for a short and for a long text",
            "c": "memory: keys and values are shared by all steps",
            "d": "the softmax over old tokens, which is kept too",
        },
    ),
    quiz(
        "lab08.quiz_units",
        "where 10.2 GB came from",
        {
            "a": "2.62 MB * 4,096, rounded",
            "b": "2.5 MiB * 4,096, divided by 1,000 and called GB",
            "c": "10 GiB written in decimal units",
            "d": "4,096 tokens of 2,621,440 bits",
        },
    ),
    quiz(
        "lab08.quiz_total",
        "what one shared head saves",
        {
            "a": "all memory of the model falls to one part in n_head",
            "b": "the cache falls to one part in n_head, W_K and W_V too; all the rest stays",
            "c": "nothing while the model runs, only parameters",
            "d": "n_head times fewer multiplications in the scores",
        },
    ),
    quiz(
        "lab08.quiz_latent",
        "what 93.3 % is measured against",
        {
            "a": "ordinary attention with the same 128 heads, both in 16 bits",
            "b": "a model with 8 shared heads, in 16 bits, and the latents in 6 bits",
            "c": "multi-query attention with the same layers",
            "d": "a model with 8 shared heads, number for number",
        },
    ),
)
