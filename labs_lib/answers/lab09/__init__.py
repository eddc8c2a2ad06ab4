"""Answers of lab 09, tiles on the GPU."""

from __future__ import annotations

from .attention import ATTENTION_PER_HEAD_BLOCKS
from .occupancy import OCCUPANCY
from .quiz import QUIZ
from .scores_naive import SCORES_NAIVE
from .scores_tiled import SCORES_TILED
from .shuffles import SOFTMAX_ROWS_BY_SHUFFLES
from .softmax_rows import SOFTMAX_ROWS
from .transpose import TRANSPOSE_WITHOUT_CONFLICTS

ANSWERS = {
    "lab09.scores_naive": SCORES_NAIVE,
    "lab09.scores_tiled": SCORES_TILED,
    "lab09.transpose_without_conflicts": TRANSPOSE_WITHOUT_CONFLICTS,
    "lab09.softmax_rows": SOFTMAX_ROWS,
    "lab09.softmax_rows_by_shuffles": SOFTMAX_ROWS_BY_SHUFFLES,
    "lab09.attention_per_head_blocks": ATTENTION_PER_HEAD_BLOCKS,
    "lab09.occupancy": OCCUPANCY,
    **QUIZ,
}
