"""Lab 09, tiles on the GPU: what is asked."""

from __future__ import annotations

from . import lab09_cases as cases
from . import lab09_kernels as kernels
from .kit import Exercise, Lab
from .lab09_quiz import QUIZ

LAB = Lab(
    number=9,
    slug="tiles_on_the_gpu",
    title="Tiles on the GPU",
    minutes=210,
    question=(
        "A GPU multiplies far faster than it fetches. How is attention cut up so that a number is "
        "fetched once and used often, and what have heads to do with it?"
    ),
)

OCCUPANCY = Exercise(
    name="lab09.occupancy",
    title="how many blocks fit on a multiprocessor, and what allows no more",
    stub='''
def occupancy(threads, registers, shared_bytes, sm):
    """How many blocks fit on an SM at a time: (blocks, warps, limit).

    A block has `threads` threads with `registers` registers each, and `shared_bytes` of shared
    memory. `sm` says what there is: sm.warps, sm.blocks, sm.registers, sm.register_piece,
    sm.shared, sm.shared_piece, sm.reserved. `limit` is what allows no more blocks, the first of
    "warps", "blocks", "registers", "shared memory" that allows so few.

    256 threads, 64 registers, no shared memory, sm_80  ->  (4, 32, "registers")
    """
    raise NotImplementedError
''',
    cases=cases.occupancy_cases,
    hints=(
        "Four numbers: how many blocks would fit if only warps counted, only blocks, only\n"
        "registers, only shared memory. The smallest of them decides.",
        "All that is handed out is rounded up to whole pieces first: threads to warps of 32, the\n"
        "registers of a warp to pieces of register_piece, the shared memory of a block (what it\n"
        "asks for plus sm.reserved) to pieces of shared_piece.",
        "Registers lie in four quarters of sm.registers // 4, and a warp gets all of its own from\n"
        "one: count the warps that fit into a quarter, times four, and from these the blocks. A\n"
        "block may need no shared memory at all.",
    ),
    minutes=10,
)

_BY_NAME = {item.short: item for item in QUIZ}

EXERCISES = (
    kernels.SCORES_NAIVE,
    _BY_NAME["quiz_warp"],
    _BY_NAME["quiz_coalesced"],
    kernels.SCORES_TILED,
    _BY_NAME["quiz_barrier"],
    _BY_NAME["quiz_tile"],
    kernels.TRANSPOSE_WITHOUT_CONFLICTS,
    kernels.SOFTMAX_ROWS,
    kernels.SOFTMAX_ROWS_BY_SHUFFLES,
    kernels.ATTENTION_PER_HEAD_BLOCKS,
    _BY_NAME["quiz_fill"],
    OCCUPANCY,
)
