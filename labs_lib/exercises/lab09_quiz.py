"""Lab 09: its quiz questions."""

from __future__ import annotations

from .kit import quiz

QUIZ = (
    quiz(
        "lab09.quiz_warp",
        "which threads form a warp",
        {
            "a": "threads with equal threadIdx.y: 16 of them",
            "b": "32 threads in a row, counted x first: two rows of this block",
            "c": "any 32 threads that happen to be at the same line",
            "d": "one thread of each of 32 blocks",
        },
    ),
    quiz(
        "lab09.quiz_coalesced",
        "what decides how many pieces of memory a warp touches",
        {
            "a": "how many bytes one thread reads in the course of its loop",
            "b": "how far apart the 32 lanes read at the same moment",
            "c": "how large the block is",
            "d": "whether the tensor is contiguous",
        },
    ),
    quiz(
        "lab09.quiz_tile",
        "what a tile twice as wide brings, and what it costs",
        {
            "a": "half the bytes, at no cost",
            "b": "a quarter of the bytes, for four times the shared memory",
            "c": "half the bytes, for more shared memory and threads or more work a thread",
            "d": "nothing: each number is still fetched",
        },
    ),
    quiz(
        "lab09.quiz_barrier",
        "who must reach a barrier",
        {
            "a": "all threads of the warp",
            "b": "all threads of the block, or none",
            "c": "all threads that have something to store",
            "d": "all threads of the grid",
        },
    ),
    quiz(
        "lab09.quiz_fill",
        "how to keep 128 SMs busy with twelve heads",
        {
            "a": "larger blocks: 1,024 threads for each head",
            "b": "cut the queries of a head into pieces, a block for each",
            "c": "more shared memory for each block",
            "d": "it can't be done: a head is one block's work",
        },
    ),
)
