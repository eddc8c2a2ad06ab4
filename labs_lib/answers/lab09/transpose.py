"""Lab 09: a transposition through shared memory."""

from __future__ import annotations

from ...exercises.lab09_rules import MOVED_ONCE, NEIGHBOURS_MOVE, ONE_BANK
from ..kit import Answer, Right, Wrong
from .edits import bundled, edited

TILE = "    __shared__ float tile[32][33];\n"
FROM = "    int x = blockIdx.x * 32 + threadIdx.x;  // column of a\n"
LOAD = """\
    for (int j = threadIdx.y; j < 32; j += 8) {
        int y = blockIdx.y * 32 + j;  // row of a
        if (x < cols && y < rows) tile[j][threadIdx.x] = a[y * cols + x];
    }
"""
BARRIER = "    __syncthreads();\n"
TO = "    x = blockIdx.y * 32 + threadIdx.x;  // column of b\n"
STORE = """\
    for (int j = threadIdx.y; j < 32; j += 8) {
        int y = blockIdx.x * 32 + j;  // row of b
        if (x < rows && y < cols) b[y * rows + x] = tile[threadIdx.x][j];
    }
"""

TRANSPOSE = f"""
__global__ void transpose_without_conflicts(const float* a, float* b, int rows, int cols) {{
{TILE}{FROM}{LOAD}{BARRIER}{TO}{STORE}}}
"""


def _with(*pairs: tuple[str, str]) -> str:
    return edited(TRANSPOSE, *pairs)


def _stored(*pairs: tuple[str, str]) -> str:
    """Only the second loop changed."""
    return _with((STORE, edited(STORE, *pairs)))


def _loaded(*pairs: tuple[str, str]) -> str:
    """Only the first loop changed."""
    return _with((LOAD, edited(LOAD, *pairs)))


def _turned_when_stored() -> str:
    """Numbers are put into the tile turned round, and taken out straight."""
    return _with(
        (LOAD, LOAD.replace("tile[j][threadIdx.x]", "tile[threadIdx.x][j]")),
        (STORE, STORE.replace("tile[threadIdx.x][j]", "tile[j][threadIdx.x]")),
    )


def _swizzled(mixed: str, straight: str) -> str:
    """A square tile whose rows are shifted against each other."""
    return edited(
        _with((TILE, TILE.replace("33", "32"))),
        ("tile[j][threadIdx.x]", f"tile[j][{mixed}]"),
        ("tile[threadIdx.x][j]", f"tile[threadIdx.x][{straight}]"),
    )


NAIVE = """
__global__ void transpose_without_conflicts(const float* a, float* b, int rows, int cols) {
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int j = threadIdx.y; j < 32; j += 8) {
        int y = blockIdx.y * 32 + j;
        if (x < cols && y < rows) b[x * rows + y] = a[y * cols + x];
    }
}
"""

BANKS = (
    Wrong(
        "a_square_tile",
        _with((TILE, TILE.replace("[33]", "[32]"))),
        ONE_BANK,
    ),
    Wrong(
        "a_row_too_many",
        _with((TILE, TILE.replace("[32][33]", "[33][32]"))),
        ONE_BANK,
    ),
    Wrong(
        "rows_of_34",
        _with((TILE, TILE.replace("33", "34"))),
        ONE_BANK,
    ),
    Wrong(
        "rows_of_36",
        _with((TILE, TILE.replace("33", "36"))),
        ONE_BANK,
    ),
    Wrong(
        "without_a_tile",
        NAIVE,
        NEIGHBOURS_MOVE,
    ),
    Wrong(
        "written_across_the_rows",
        _with(
            (TO, "    x = blockIdx.x * 32 + threadIdx.x;  // row of b\n"),
            (
                STORE,
                STORE.replace("blockIdx.x * 32 + j;  // row of b", "blockIdx.y * 32 + j;").replace(
                    "if (x < rows && y < cols) b[y * rows + x] = tile[threadIdx.x][j]",
                    "if (x < cols && y < rows) b[x * rows + y] = tile[j][threadIdx.x]",
                ),
            ),
        ),
        NEIGHBOURS_MOVE,
    ),
)

BARRIERS = (
    Wrong(
        "no_barrier",
        _with((BARRIER, "")),
        "A thread takes from the tile what another one was to put there, and no barrier stands\n"
        "between the two loops.",
    ),
    Wrong(
        "waits_for_its_warp_only",
        _with((BARRIER, "    __syncwarp();\n")),
        "__syncwarp waits for the 32 threads of a warp. A column of the tile was filled by all\n"
        "eight warps of the block.",
    ),
    Wrong(
        "leaves_before_the_barrier",
        _with((FROM, FROM + "    if (x >= cols) return;\n")),
        "Threads beyond the last column of a leave before the barrier. Each of them may have a\n"
        "column of b to write.",
    ),
    Wrong(
        "barrier_inside_the_if",
        _loaded(
            (
                "        if (x < cols && y < rows) tile[j][threadIdx.x] = a[y * cols + x];\n",
                "        if (x < cols && y < rows) {\n"
                "            tile[j][threadIdx.x] = a[y * cols + x];\n"
                "            __syncthreads();\n        }\n",
            )
        ),
        "The barrier stands inside an if that some threads of the block don't enter. A barrier\n"
        "has to be reached by all of them, or by none.",
    ),
)

EIGHT_ROWS = (
    "A block has 8 rows of threads, and a tile has 32 rows: each thread has four numbers to move,\n"
    "and the next tile begins 32 rows further on."
)

PLACES = (
    Wrong(
        "not_turned",
        _stored(("tile[threadIdx.x][j]", "tile[j][threadIdx.x]")),
        "Each tile is at its right place, but what is in it isn't turned round.",
    ),
    Wrong(
        "tiles_stay_where_they_were",
        _with(
            (TO, "    x = blockIdx.x * 32 + threadIdx.x;\n"),
            (STORE, STORE.replace("blockIdx.x", "blockIdx.y")),
        ),
        "Each tile is turned round and put back to where it came from. Tiles change places too:\n"
        "what was right of the diagonal goes below it.",
    ),
    Wrong(
        "row_of_b_has_cols",
        _stored(("b[y * rows + x]", "b[y * cols + x]")),
        "A row of b is as long as a column of a: rows numbers. You step by cols.",
    ),
    Wrong(
        "row_of_a_has_rows",
        _loaded(("a[y * cols + x]", "a[y * rows + x]")),
        "A row of a has cols numbers; you step by rows.",
    ),
    Wrong(
        "ends_not_swapped",
        _stored(("x < rows && y < cols", "x < cols && y < rows")),
        "In the second loop x and y count columns and rows of b, and b has as many rows as a has\n"
        "columns. Where it begins or where it ends is still as in a.",
    ),
    Wrong(
        "eight_rows_of_a_tile",
        _with(
            (
                LOAD,
                LOAD.replace(
                    "for (int j = threadIdx.y; j < 32; j += 8) {", "{\n        int j = threadIdx.y;"
                ),
            ),
            (
                STORE,
                STORE.replace(
                    "for (int j = threadIdx.y; j < 32; j += 8) {", "{\n        int j = threadIdx.y;"
                ),
            ),
        ),
        EIGHT_ROWS,
    ),
    Wrong(
        "tiles_eight_rows_apart",
        _loaded(("blockIdx.y * 32", "blockIdx.y * blockDim.y")),
        EIGHT_ROWS,
    ),
    Wrong(
        "the_same_number_four_times",
        _stored(("tile[threadIdx.x][j]", "tile[threadIdx.x][threadIdx.y]")),
        EIGHT_ROWS,
    ),
    Wrong(
        "each_number_many_times",
        TRANSPOSE.replace("j += 8", "j++"),
        MOVED_ONCE,
    ),
    Wrong(
        "a_thread_for_each_number",
        "\n__global__ void transpose_without_conflicts(const float* a, float* b, int rows,"
        " int cols) {\n"
        "    int x = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    int y = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "    if (x < cols && y < rows) b[x * rows + y] = a[y * cols + x];\n}\n",
        EIGHT_ROWS,
    ),
    Wrong(
        "a_number_a_thread_in_blocks_of_32",
        edited(
            NAIVE,
            (
                "for (int j = threadIdx.y; j < 32; j += 8) {\n        int y = blockIdx.y * 32 + j",
                "{\n        int y = blockIdx.y * 32 + threadIdx.y",
            ),
        ),
        EIGHT_ROWS,
    ),
    Wrong(
        "a_number_of_b_a_thread",
        edited(
            NAIVE,
            (
                "for (int j = threadIdx.y; j < 32; j += 8) {\n        int y = blockIdx.y * 32 + j",
                "{\n        int y = blockIdx.y * 32 + threadIdx.y",
            ),
            ("blockIdx.x * 32 + threadIdx.x", "blockIdx.x * 32 + threadIdx.x, t = threadIdx.y"),
            ("int y = blockIdx.y * 32 + threadIdx.y", "int y = blockIdx.y * blockDim.y + t"),
            (
                "if (x < cols && y < rows) b[x * rows + y] = a[y * cols + x]",
                "if (x < rows && y < cols) b[y * rows + x] = a[x * cols + y]",
            ),
        ),
        EIGHT_ROWS,
    ),
    Wrong(
        "reads_without_looking",
        _loaded(("if (x < cols && y < rows) tile", "tile")),
        "At the edges the tile reaches beyond the matrix, and you read there.",
    ),
    Wrong(
        "writes_without_looking",
        _stored(("if (x < rows && y < cols) b", "b")),
        "At the edges the tile reaches beyond the matrix, and you write there.",
    ),
    Wrong(
        "copied",
        _with(
            (TO, "    x = blockIdx.x * 32 + threadIdx.x;\n"),
            (
                STORE,
                STORE.replace("blockIdx.x", "blockIdx.y")
                .replace("tile[threadIdx.x][j]", "tile[j][threadIdx.x]")
                .replace("x < rows && y < cols", "x < cols && y < rows")
                .replace("* rows", "* cols"),
            ),
        ),
        "b is a copy of a: nothing is turned round.",
    ),
)

TRANSPOSE_WITHOUT_CONFLICTS = Answer(
    reference=bundled("transpose_without_conflicts"),
    wrong=(*BANKS, *BARRIERS, *PLACES),
    right=(
        Right("plain", TRANSPOSE),
        Right("rows_of_37", _with((TILE, TILE.replace("33", "37")))),
        Right("turned_when_it_is_stored", _turned_when_stored()),
        Right("xor", _swizzled("threadIdx.x ^ j", "j ^ threadIdx.x")),
        Right("shifted", _swizzled("(threadIdx.x + j) % 32", "(j + threadIdx.x) % 32")),
        Right("one_long_array", TRANSPOSE.replace("tile[32][33]", "tile[32 * 33]")
              .replace("tile[j][threadIdx.x]", "tile[j * 33 + threadIdx.x]")
              .replace("tile[threadIdx.x][j]", "tile[threadIdx.x * 33 + j]")),
        Right("unrolled", TRANSPOSE.replace("    for (int j", "#pragma unroll\n    for (int j")),
        Right("zeros_at_the_edge", _loaded(
            ("if (x < cols && y < rows) tile[j][threadIdx.x] = a[y * cols + x]",
             "tile[j][threadIdx.x] = x < cols && y < rows ? a[y * cols + x] : 0.0f"))),
    ),
)  # fmt: skip
