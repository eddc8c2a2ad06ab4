"""Answers to the quiz questions of lab 08."""

from __future__ import annotations

from ..kit import choice

QUIZ = {
    "lab08.quiz_queries": choice(
        "b",
        "A token asks once, when it comes. Its key and value are looked at by all tokens after it.",
        a="They have as many heads as the keys, or more: queries would be the larger part.",
        c="Nothing of an old token changes when new ones follow: with a causal mask it can't see\n"
        "them. That is why keys can be kept at all.",
        d="Look at your decode_step: the pair that it returns holds keys and values.",
    ),
    "lab08.quiz_saved": choice(
        "a",
        "Old tokens are never projected again. The new query still meets every key, so a step\n"
        "reads the whole cache, and that grows with the text.",
        b="Your count of operations rises with the length: the new token's query is compared with\n"
        "every kept key.",
        c="It is the other way round: the cache is memory spent to save work.",
        d="The weights belong to one query and are thrown away with it.",
    ),
    "lab08.quiz_units": choice(
        "b",
        "2.5 MiB * 4,096 are 10,240 MiB. Divided by 1,000 that looks like 10.2, but it is 10 GiB\n"
        "and 10.74 GB.",
        a="2.62 MB * 4,096 is 10.74 GB. That is right, and it isn't 10.2.",
        c="10 GiB in decimal units are 10.74 GB.",
        d="Bits would be off by a factor of eight.",
    ),
    "lab08.quiz_total": choice(
        "b",
        "Only keys and values are shared, and what is kept of them is the cache. In the model of\n"
        "32 heads the cache fell to 1/32, and the parameters from 13.5 to 11.4 GB.",
        a="Of the parameters only W_K and W_V shrink; the queries and the scores stay as they are.",
        c="Parameters fall a little; the cache, which exists only while the model runs, falls to\n"
        "one part in n_head.",
        d="Every query head still has scores of its own with every key.",
    ),
    "lab08.quiz_latent": choice(
        "b",
        "The comparison is with DeepSeek 67B, which shares 8 key/value heads and stores 16 bits;\n"
        "the latents are counted with 6. Number for number 17.8 % are left.",
        a="Against the same 128 heads in equal precision 1.8 % are left, one part in 57.",
        c="With one shared head of 128 the ordinary cache would be smaller than the latents.",
        d="Number for number 17.8 % are left, a saving of 82.2 %.",
    ),
}
