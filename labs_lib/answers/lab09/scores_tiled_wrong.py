"""Lab 09: wrong kernels for scores by tiles."""

from __future__ import annotations

from ...exercises.lab09_rules import NEIGHBOURS_FETCH, READ_ONCE
from ..kit import Wrong
from .scores_tiled_parts import (
    BEFORE,
    DONE,
    LOAD_K,
    LOAD_Q,
    LOOP,
    MULTIPLY,
    PLACES,
    STORE,
    WHOLE,
    with_edits,
)

NOT_WHOLE = (
    "Nothing waits for the whole block between filling the tiles and using them (__syncwarp waits\n"
    "for one warp). A thread multiplies with numbers that others have still to fetch."
)
NOT_ALL = (
    "Not all threads of the block reach the barrier: those without a score have left, or an if\n"
    "leads them past it. They are needed: each fetches a part of the tiles. Guard loads and store\n"
    "instead."
)
STORED_BEYOND = (
    "Threads store scores that don't exist, beyond the last query or the last key. Fetching and\n"
    "waiting is for all threads; a place in s is not."
)

BARRIERS = (
    Wrong(
        "no_barrier_after_the_load",
        with_edits((WHOLE, "")),
        NOT_WHOLE,
    ),
    Wrong(
        "no_barrier_before_the_next_load",
        with_edits((DONE, "")),
        "Fast threads begin with the next tiles while slow ones still multiply with these. What\n"
        "must be true before a tile may be overwritten?",
    ),
    Wrong(
        "no_barrier_at_all",
        with_edits((WHOLE, ""), (DONE, "")),
        "The threads of a block share the tiles and never wait for one another. Where must all of\n"
        "them have arrived before one may go on? There are two such places.",
    ),
    Wrong(
        "waits_for_its_warp_only",
        with_edits((WHOLE, "        __syncwarp();\n"), (DONE, "        __syncwarp();\n")),
        NOT_WHOLE,
    ),
    Wrong(
        "leaves_before_the_barrier",
        with_edits((BEFORE, "    if (query >= n_q || key >= n_k) return;\n" + BEFORE)),
        NOT_ALL,
    ),
    Wrong(
        "barriers_inside_an_if",
        with_edits(
            (LOOP, LOOP + "        if (query < n_q) {\n"),
            (DONE, DONE + "        }\n"),
        ),
        NOT_ALL,
    ),
)

EDGES = (
    Wrong(
        "reads_q_beyond_its_end",
        with_edits(("query < n_q && i < head_dim ?", "i < head_dim ?")),
        "You read q beyond its end: the tile reaches beyond the last query, or beyond the end of\n"
        "a row where head_dim is no multiple of 16. What should the tile hold in such places?",
    ),
    Wrong(
        "reads_k_beyond_its_end",
        with_edits(("row < n_k && i < head_dim ?", "i < head_dim ?")),
        "You read k beyond its end: the tile reaches beyond the last key, or beyond the end of a\n"
        "row where head_dim is no multiple of 16. What should the tile hold in such places?",
    ),
    Wrong(
        "reads_beyond_a_row",
        with_edits(
            ("query < n_q && i < head_dim ?", "query < n_q ?"),
            ("row < n_k && i < head_dim ?", "row < n_k ?"),
        ),
        "head_dim need not be a multiple of 16. In the last step the tile reaches beyond the end\n"
        "of the rows, and there you fetch the next row's first numbers.",
    ),
    Wrong(
        "no_zeros_at_the_edge",
        with_edits(
            (
                LOAD_Q,
                "        if (query < n_q && i < head_dim)\n"
                "            q_tile[y][x] = q[query * head_dim + i];\n",
            ),
            (
                LOAD_K,
                "        if (row < n_k && i < head_dim) k_tile[y][x] = k[row * head_dim + i];\n",
            ),
        ),
        "At the edges nothing is put into the tile, so that it holds what was there before:\n"
        "numbers of the last step, or nothing at all. The products there have to come out as zero.",
    ),
    Wrong(
        "last_columns_left_out",
        with_edits(("start < head_dim;", "start + TILE <= head_dim;")),
        "The loop ends before the last, narrower tile. Of a row of 72 numbers eight are left out,\n"
        "and of a row of 8 all.",
    ),
    Wrong(
        "stores_without_looking",
        with_edits((STORE, "    s[query * n_k + key] = sum * scale;\n")),
        STORED_BEYOND,
    ),
    Wrong(
        "stores_beyond_the_last_query",
        with_edits(("    if (query < n_q && key < n_k) s", "    if (key < n_k) s")),
        STORED_BEYOND,
    ),
    Wrong(
        "stores_beyond_the_last_key",
        with_edits(("    if (query < n_q && key < n_k) s", "    if (query < n_q) s")),
        STORED_BEYOND,
    ),
)

PLACE = (
    Wrong(
        "tile_read_transposed",
        with_edits(("k_tile[x][j]", "k_tile[j][x]")),
        "The k tile is read turned round: you stored a key in each row of it, and you take column\n"
        "x where row x is meant.",
    ),
    Wrong(
        "q_tile_read_transposed",
        with_edits(("q_tile[y][j]", "q_tile[j][y]")),
        "The q tile is read turned round: row y of it is this thread's query.",
    ),
    Wrong(
        "x_for_y",
        with_edits(
            (
                PLACES,
                PLACES.replace("blockIdx.y * TILE", "blockIdx.q * TILE")
                .replace("blockIdx.x * TILE", "blockIdx.y * TILE")
                .replace("blockIdx.q * TILE", "blockIdx.x * TILE"),
            )
        ),
        "Blocks are counted the wrong way round: x runs over the keys and y over the queries.\n"
        "With as many of one as of the other it would look right.",
    ),
    Wrong(
        "keys_of_another_block",
        with_edits(("row = blockIdx.x * TILE + y", "row = blockIdx.y * TILE + y")),
        "The keys that you fetch are another block's: the x of this block tells which are its own.",
    ),
    Wrong(
        "fetches_its_own_key",
        with_edits(("row = blockIdx.x * TILE + y", "row = blockIdx.x * TILE + x")),
        "All threads of a column fetch numbers of one key, so each row of the tile holds the\n"
        "first number of one key, the second of the next, and so on. Who fetches row y of the k\n"
        "tile?",
    ),
    Wrong(
        "a_tile_for_each_thread",
        with_edits(
            ("__shared__ float q_tile", "float q_tile"), ("__shared__ float k_tile", "float k_tile")
        ),
        "Without __shared__ every thread has tiles of its own, and fills one place of each. One\n"
        "tile for the whole block is meant.",
    ),
    Wrong(
        "a_tile_wider_than_the_block",
        with_edits(("#define TILE 16", "#define TILE 32")),
        "The tile has more places than the block has threads, and each thread fills one: the rest\n"
        "holds nothing. With 16 x 16 threads and a number from each, a tile is 16 x 16.",
    ),
    Wrong(
        "always_the_first_tile",
        with_edits(("int i = start + x;", "int i = x;")),
        "Each step fetches the first 16 columns again. The place in the row has to move on.",
    ),
    Wrong(
        "sum_begins_anew",
        with_edits((BEFORE, "    float sum;\n"), (LOOP, LOOP + "        sum = 0.0f;\n")),
        "The sum begins anew with each tile, and only the last tile is left. A score is the sum\n"
        "over all of them.",
    ),
    Wrong(
        "adds_to_the_output",
        with_edits((STORE, STORE.replace("] = sum", "] += sum"))),
        "s is NaN everywhere. Is the sum added to what s held before? Nobody has promised that it\n"
        "held zeros. Or is there something in a tile that is no number?",
    ),
)

ARITHMETIC = (
    Wrong(
        "scale_missing",
        with_edits(("sum * scale", "sum")),
        "The scores are right but for the scale: each is too large by a constant factor.",
    ),
    Wrong(
        "scale_by_head_dim",
        with_edits(("sum * scale", "sum / head_dim")),
        "The sum is divided by head_dim. The kernel is handed the factor that it should use.",
    ),
    Wrong(
        "scaled_in_each_step",
        with_edits((DONE, DONE + "        sum *= scale;\n"), ("sum * scale", "sum")),
        "The sum is scaled after each tile, so that what came first is scaled many times.",
    ),
    Wrong(
        "half_a_tile",
        with_edits(("j < TILE", "j < TILE / 2")),
        "You multiply with half of each tile only.",
    ),
)

TRAFFIC = (
    Wrong(
        "fetches_tiles_and_reads_the_tensors",
        with_edits(
            (
                MULTIPLY,
                """\
        for (int j = 0; j < TILE && start + j < head_dim; j++)
            if (query < n_q && key < n_k)
                sum += q[query * head_dim + start + j] * k[key * head_dim + start + j];
""",
            )
        ),
        READ_ONCE,
    ),
    Wrong(
        "k_is_read_from_the_tensor",
        with_edits(
            (
                MULTIPLY,
                """\
        for (int j = 0; j < TILE && start + j < head_dim; j++)
            if (key < n_k) sum += q_tile[y][j] * k[key * head_dim + start + j];
""",
            )
        ),
        READ_ONCE,
    ),
    Wrong(
        "q_is_read_from_the_tensor",
        with_edits(
            (
                MULTIPLY,
                """\
        for (int j = 0; j < TILE && start + j < head_dim; j++)
            if (query < n_q) sum += q[query * head_dim + start + j] * k_tile[x][j];
""",
            )
        ),
        READ_ONCE,
    ),
    Wrong(
        "each_thread_fills_a_row_of_the_tile",
        with_edits(
            (
                LOAD_Q + LOAD_K,
                """\
        for (int j = 0; j < TILE; j++) {
            int c = start + j, mine = blockIdx.x * TILE + x;
            if (x == 0) q_tile[y][j] = query < n_q && c < head_dim ? q[query * head_dim + c] : 0.0f;
            if (y == 0) k_tile[x][j] = mine < n_k && c < head_dim ? k[mine * head_dim + c] : 0.0f;
        }
""",
            ),
            ("        int i = start + x;\n", ""),
        ),
        NEIGHBOURS_FETCH,
    ),
    Wrong(
        "k_fetched_across_its_rows",
        with_edits(
            (
                LOAD_K,
                """\
        int mine = blockIdx.x * TILE + x, c = start + y;
        k_tile[x][y] = mine < n_k && c < head_dim ? k[mine * head_dim + c] : 0.0f;
""",
            ),
            (
                "    int row = blockIdx.x * TILE + y;  // the key that it fetches\n",
                "",
            ),
        ),
        NEIGHBOURS_FETCH,
    ),
)

WRONG = (*BARRIERS, *EDGES, *PLACE, *ARITHMETIC, *TRAFFIC)  # fmt: skip
