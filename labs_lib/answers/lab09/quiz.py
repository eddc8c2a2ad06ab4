"""Answers to the quiz questions of lab 09."""

from __future__ import annotations

from ..kit import choice

QUIZ = {
    "lab09.quiz_warp": choice(
        "b",
        "Threads are numbered x first, then y: warp 0 holds rows y = 0 and y = 1. So neighbours\n"
        "in x are neighbours in a warp, and what they read at once should lie side by side.",
        a="That would be half a warp. Counting goes on into the next row of the block.",
        c="Which threads go together is fixed by their numbers when the block starts.",
        d="A warp never reaches across blocks; blocks needn't even run at the same time.",
    ),
    "lab09.quiz_coalesced": choice(
        "b",
        "The lanes of a warp read at the same moment, and memory hands out whole pieces of 32\n"
        "bytes. Lanes side by side share pieces.",
        a="You counted it: a thread that walks along a row alone reads the same bytes, and its\n"
        "warp touches a piece for each lane.",
        c="The block's size decides how many warps there are, not what one of them touches.",
        d="k was contiguous all the time, and the naive kernel's lanes still read a row apart.",
    ),
    "lab09.quiz_tile": choice(
        "c",
        "Each number that is fetched is used twice as often. The tile needs more shared memory,\n"
        "and four times the scores need more threads or more scores for each thread.",
        a="32 x 32 scores are four times as many: they want four times the threads, or four\n"
        "scores from each. And the tiles on the worktop are larger.",
        b="Bytes fall by the tile's width, not by its area: w x w scores need 2 w rows.",
        d="Each number is fetched once by each block that needs it, and there are fewer blocks.",
    ),
    "lab09.quiz_barrier": choice(
        "b",
        "__syncthreads counts the threads of the block. If some never come, what happens is\n"
        "undefined: on one GPU it hangs, on another it goes on with wrong numbers.",
        a="That is __syncwarp. A tile is filled by several warps.",
        c="Those that have nothing to store are waited for as well.",
        d="There is no such barrier in a kernel: blocks don't wait for one another.",
    ),
    "lab09.quiz_fill": choice(
        "b",
        "At 1,024 queries and pieces of 128 that makes 96 blocks out of 12. A query needs all\n"
        "keys, but no other query, so the pieces are independent.",
        a="A block runs on one SM, however large it is. Twelve blocks use twelve SMs at most.",
        c="More shared memory lets fewer blocks onto an SM. Here there are too few blocks already.",
        d="Only the keys of a row belong together. Rows don't need one another.",
    ),
}
