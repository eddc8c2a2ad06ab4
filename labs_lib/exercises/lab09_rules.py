"""Lab 09: what a kernel may cost, counted by a trace."""

from __future__ import annotations

from typing import Any

from . import lab09_cases as cases
from .kernel_rules import bank_rule, sectors_rule, trace_rule, traffic_rule
from .kernels import Launch, case_launch

N_Q, N_K, HEAD_DIM = 64, 48, 32  # of whole tiles, where counts are plain fractions
NAIVE = 4 * N_Q * N_K * HEAD_DIM
READ_ONCE = "Is each product made from the tiles, and each number fetched by one thread of a block?"
NEIGHBOURS_FETCH = (
    "Neighbouring threads should fetch neighbouring numbers of a row: let x run along it."
)
NEIGHBOURS_MOVE = (
    "In both matrices a warp should touch neighbours; the tile is where the turn happens."
)
MOVED_ONCE = (
    "A block has 8 rows of threads: each of them moves every eighth row of the tile, not all rows."
)
ONE_BANK = (
    "Numbers that a warp wants at once should lie in 32 banks. How long is a row of your tile?"
)
NEIGHBOURS_READ = "A block shares out its row: neighbouring threads take neighbouring numbers."
SHARED_OUT = "Is the row shared out? A thread of the block has every 256th number to look at."
LANES_SHARE = "Is the row shared out? A lane has every 32nd number to look at."
REGISTERS = "Lanes of a warp can hand each other a register, without shared memory."
BYTES = (
    f"The scores are right. But your kernel reads {{k}} bytes of k where scores_naive reads\n"
    f"{{k_naive}} and tiles of 16 read {{k_most}}.\n{READ_ONCE}"
)


SCORES = case_launch("lab09.scores_tiled", cases.score_cases, cases.launch_scores, "whole tiles")
MATRIX = case_launch(
    "lab09.transpose_without_conflicts", cases.matrix_cases, cases.launch_transpose, "64 x 96"
)
# Rows long enough for every thread of a block.
ROWS = case_launch("lab09.softmax_rows", cases.row_cases, cases.launch_rows, "3 rows of 600")
ROWS_BY_WARPS = case_launch(
    "lab09.softmax_rows_by_shuffles", cases.row_cases, cases.launch_rows_by_warps, "3 rows of 600"
)


def _waits(trace: Any, planned: Launch) -> dict[str, float]:
    shared = trace.shared
    return {"bytes": shared.read + shared.written + shared.atomic, "barriers": trace.barriers}


TILED = (
    traffic_rule(
        "bytes_of_k",
        "k is read 1/16 as often",
        BYTES,
        SCORES,
        {"k": 1 / 16},
        naive={"k": NAIVE},
    ),
    traffic_rule(
        "bytes_of_q",
        "q is read 1/16 as often",
        BYTES.replace("{k", "{q").replace("of k ", "of q "),
        SCORES,
        {"q": 1 / 16},
        naive={"q": NAIVE},
    ),
    sectors_rule(
        "neighbours",
        "neighbours fetch neighbours",
        "For each byte that your kernel asks for, memory moves {q} where it is one of q, and {k}\n"
        "where it is one of k.\n" + NEIGHBOURS_FETCH,
        SCORES,
        {"q": 2.0, "k": 2.0},
    ),
)

TRANSPOSE = (
    traffic_rule(
        "bytes_of_a",
        "each number is read once",
        "Each number is in its place. But your kernel reads {a} bytes of a, which has {a_most}.\n"
        + MOVED_ONCE,
        MATRIX,
        {"a": 4 * 64 * 96},
    ),
    sectors_rule(
        "neighbours",
        "a warp reads and writes neighbours",
        "Each number is in its place. But for each byte that your kernel reads, memory moves {a},\n"
        "and for each that it writes {b}.\n" + NEIGHBOURS_MOVE,
        MATRIX,
        {"a": 1.0, "b": 1.0},
    ),
    bank_rule(
        "banks",
        "no two lanes wait for one bank",
        "Each number is where it belongs. But line {worst} takes {passes} passes through shared\n"
        "memory where one would do.\n" + ONE_BANK,
        MATRIX,
    ),
)

# Three walks over the row, or four; 4 bytes a number.
ROW_BYTES = 4 * 4 * 3 * 600
TOO_OFTEN = (
    "The weights are right. But your kernel reads {s} bytes of s. Three walks over each row are\n"
    "enough; at most four are allowed, {s_most} bytes.\n"
)

SOFTMAX = (
    traffic_rule(
        "bytes_of_s",
        "threads share out the row",
        TOO_OFTEN + SHARED_OUT,
        ROWS,
        {"s": ROW_BYTES},
    ),
    sectors_rule(
        "neighbours",
        "neighbours read neighbours",
        "The weights are right. But for each byte that your kernel reads, memory moves {s}.\n"
        + NEIGHBOURS_READ,
        ROWS,
        {"s": 2.0, "p": 2.0},
    ),
)

SHUFFLES = (
    traffic_rule(
        "bytes_of_s",
        "lanes share out the row",
        TOO_OFTEN + LANES_SHARE,
        ROWS_BY_WARPS,
        {"s": ROW_BYTES},
    ),
    trace_rule(
        "registers_only",
        "no shared memory, no barrier",
        "The weights are right. But they went through shared memory ({bytes} bytes) or barriers\n"
        "({barriers}).\n" + REGISTERS,
        ROWS_BY_WARPS,
        _waits,
        {"bytes": 0, "barriers": 0},
    ),
    sectors_rule(
        "neighbours",
        "neighbours read neighbours",
        "The weights are right. But for each byte that your kernel reads, memory moves {s}.\n"
        + NEIGHBOURS_READ,
        ROWS_BY_WARPS,
        {"s": 2.0, "p": 2.0},
    ),
)
