"""Answers to the quiz questions of lab 12."""

from __future__ import annotations

from ..kit import choice

QUIZ = {
    "lab12.quiz_products": choice(
        "b",
        "Three touch the input, one the merged heads, and scores and weighted sums are two more:\n"
        "they are hidden in the kernel, and they grow with the square of the text.",
        a="What is inside the kernel is work as well: scores and weighted sums.",
        c="A kernel is one launch. It may hold any number of products.",
        d="All heads share one product of each kind; their number doesn't change the work.",
    ),
    "lab12.quiz_pairs": choice(
        "a",
        "A score is a sum over the numbers of a head. In which order they are added changes\n"
        "nothing, if q and k have the same and each pair is turned by its own angle.",
        b="Scores are sums, and a sum stays the same when both sides change their order alike.",
        c="Then number 1 of q meets number 2 of k, and the score is another one.",
        d="The values never meet q or k number by number.",
    ),
    "lab12.quiz_repeat": choice(
        "b",
        "Torch's attention and the plain one want a key head for every query head. The kernel of\n"
        "lab 11 shares by itself and gets each head once; so does the cache.",
        a="The cache holds n_kv_head heads. That is what sharing them is for.",
        c="A copy holds nothing new.",
        d="All heads of a layer are turned alike, by the position.",
    ),
    "lab12.quiz_step": choice(
        "a",
        "In the prompt's pass a key that is fetched serves up to 64 queries of a block. A step\n"
        "fetches all keys for one query: the time goes into reading.",
        b="Every query has its softmax, also a single one.",
        c="The prompt is read with a causal mask; a single new token is what needs none.",
        d="Every new token needs its query, once.",
    ),
    "lab12.quiz_equal": choice(
        "b",
        "On this text a mistake in any of thirty layers would change the logits. What the text\n"
        "doesn't hold (several texts in a batch, more than 64 queries, an early end) only other\n"
        "cases can show.",
        a="One text has one length, one batch, one split into steps.",
        c="49,152 numbers don't agree by chance.",
        d="Sums in another order differ in the last bits, and so do these logits.",
    ),
}
