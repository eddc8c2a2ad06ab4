"""Lab 09: scores by tiles in shared memory."""

from __future__ import annotations

from ..kit import Answer, Right
from .edits import bundled
from .scores_tiled_parts import TILED, deeper, float4_loads, swizzled, two_buffers, with_edits
from .scores_tiled_wrong import WRONG

SCORES_TILED = Answer(
    reference=bundled("scores_tiled"),
    wrong=WRONG,
    right=(
        Right("row_by_row", TILED),
        Right("padded", with_edits(("k_tile[TILE][TILE]", "k_tile[TILE][TILE + 1]"))),
        Right("eight_columns_at_a_time", deeper(8)),
        Right("thirty_two_columns_at_a_time", deeper(32)),
        Right("swizzled", swizzled()),
        Right("float4_loads", float4_loads()),
        Right("two_buffers", two_buffers()),
        Right("unrolled", with_edits(("        for (int j", "#pragma unroll\n        for (int j"))),
        Right("double", with_edits(("float sum = 0.0f;", "double sum = 0.0;"))),
        Right(
            "q_scaled_when_it_is_fetched",
            with_edits(("? q[query", "? scale * q[query"), ("sum * scale", "sum")),
        ),
        Right(
            "barriers_the_other_way_round",
            with_edits(
                ("        __syncthreads();  // nobody needs them any more\n", ""),
                ("        int i = start + x;\n",
                 "        int i = start + x;\n        __syncthreads();\n"),
            ),
        ),
    ),
)  # fmt: skip
