"""Lab 09: the exercises whose answers are kernels."""

from __future__ import annotations

from . import lab09_cases as cases
from . import lab09_rules as rules
from .kernels import kernel_exercise
from .kit import Tolerance

SCORES_NAIVE = kernel_exercise(
    "lab09.scores_naive",
    "scores with a thread for each",
    """%%cuda
// s[query][key] = scale * (row `query` of q) . (row `key` of k)
// q is [n_q, head_dim], k is [n_k, head_dim], s is [n_q, n_k], all in rows, one after the other.
// Blocks of (16, 16) threads: x counts keys, y queries; grid (n_k / 16, n_q / 16), rounded up.
// With q = {1, 2}, k = {3, 4} (one row each, head_dim 2) and scale 0.5: s = {5.5}
__global__ void scores_naive(const float* q, const float* k, float* s, int n_q, int n_k,
                             int head_dim, float scale) {
    // your kernel
}
""",
    cases=cases.score_cases,
    launch=cases.launch_scores,
    axes=("query", "key"),
    hints=(
        "A thread is handed nothing but its place: blockIdx, blockDim, threadIdx. Which query and\n"
        "which key are its own? And what does it do when there is no such query or key?",
        "key = blockIdx.x * blockDim.x + threadIdx.x, and the query likewise with y. Leave if one\n"
        "of them is beyond its end.",
        "Number i of row r of a matrix with rows of n numbers lies at [r * n + i]. Add up\n"
        "head_dim products in a variable that begins at 0.0f, and store it once, times scale.",
    ),
    minutes=10,
)

SCORES_TILED = kernel_exercise(
    "lab09.scores_tiled",
    "the same scores by tiles in shared memory",
    """%%cuda
// The same scores, with the same grid and blocks as scores_naive.
// A block makes 16 x 16 scores. It brings 16 columns of its 16 rows of q and of its 16 rows of k
// into shared memory at a time, and each number there is used 16 times.
// q and k are read at most 1/16 as often as by scores_naive.
__global__ void scores_tiled(const float* q, const float* k, float* s, int n_q, int n_k,
                             int head_dim, float scale) {
    // your kernel
}
""",
    cases=cases.score_cases,
    launch=cases.launch_scores,
    rules=rules.TILED,
    axes=("query", "key"),
    hints=(
        "__shared__ float q_tile[16][16], k_tile[16][16]; there are 256 threads and 256 places in\n"
        "each tile: every thread fetches one number of each.",
        "The loop over columns goes in steps of 16. In each step: fetch, wait for all, multiply\n"
        "16 numbers, wait for all again. Where head_dim, n_q or n_k end within a tile, put a zero.",
        "For the loads let threadIdx.x be the column and threadIdx.y the row, in both tiles: then\n"
        "neighbouring threads read neighbouring numbers. The row of k that a thread fetches is\n"
        "not the key of the score that it makes. No thread may leave before the last barrier.",
    ),
    minutes=20,
)

TRANSPOSE_WITHOUT_CONFLICTS = kernel_exercise(
    "lab09.transpose_without_conflicts",
    "a transposition in which nobody waits for a bank",
    """%%cuda
// b[x][y] = a[y][x]: a is [rows, cols], b is [cols, rows].
// A block of (32, 8) threads turns a tile of 32 x 32; grid (cols / 32, rows / 32), rounded up.
// Each number is read once. A warp reads 32 neighbours of a and writes 32 neighbours of b, and each
// access to shared memory takes a single pass.
// a = {1, 2, 3,  4, 5, 6} with 2 rows and 3 cols: b = {1, 4,  2, 5,  3, 6}
__global__ void transpose_without_conflicts(const float* a, float* b, int rows, int cols) {
    // your kernel
}
""",
    cases=cases.matrix_cases,
    launch=cases.launch_transpose,
    rules=rules.TRANSPOSE,
    axes=("column of a", "row of a"),
    hints=(
        "Two loops with a barrier between them: from a into a tile, from the tile into b. In\n"
        "both, threadIdx.x runs along a row of the matrix; a thread takes every eighth row of the\n"
        "tile.",
        "In the second loop the block stands at another place: its x is the y of the first. A\n"
        "thread takes what another one has put into the tile, with the two indices swapped.",
        "Number [r][c] of a tile with rows of w floats lies in bank (r * w + c) % 32. For which w\n"
        "do the 32 numbers of a column lie in 32 banks?",
    ),
    minutes=15,
)

SOFTMAX_ROWS = kernel_exercise(
    "lab09.softmax_rows",
    "softmax with a block for each row",
    """%%cuda
// p[row][i] = exp(s[row][i] - most) / sum: s and p are [rows, cols], most is the row's maximum.
// A block of 256 threads takes one row, grid (rows); cols may be larger or smaller than 256.
// s = {0, 0, -INFINITY} in one row: p = {0.5, 0.5, 0}
__global__ void softmax_rows(const float* s, float* p, int rows, int cols) {
    // your kernel
}
""",
    cases=cases.row_cases,
    launch=cases.launch_rows,
    rules=rules.SOFTMAX,
    axes=("row", "column"),
    hints=(
        "A thread takes every 256th number of the row and keeps the largest in a variable. Then\n"
        "256 maxima in shared memory become one, and the same happens to the sums of exp.",
        "The tree: for (int half = 128; half > 0; half /= 2) half of the threads take in\n"
        "what stands half further on. A barrier after each step, for all threads.",
        "The maximum begins at -INFINITY and the sum at 0.0f, so that threads without a number\n"
        "don't count. If you use the shared array twice, all must have read its first result\n"
        "before anyone puts something new there.",
    ),
    minutes=15,
)

SOFTMAX_ROWS_BY_SHUFFLES = kernel_exercise(
    "lab09.softmax_rows_by_shuffles",
    "softmax with a warp for each row, without shared memory",
    """%%cuda
// The same softmax with one warp for each row: no shared memory and no barrier.
// Blocks of (32, 4) threads: x is the lane, y the row in the block; grid (rows / 4), rounded up.
__global__ void softmax_rows_by_shuffles(const float* s, float* p, int rows, int cols) {
    // your kernel
}
""",
    cases=cases.row_cases,
    launch=cases.launch_rows_by_warps,
    rules=rules.SHUFFLES,
    axes=("row", "column"),
    hints=(
        "A lane takes every 32nd number of the row. Then 32 maxima become one in five exchanges.",
        "__shfl_xor_sync(0xffffffff, x, d) hands a lane the x of the lane (its number ^ d). With\n"
        "d = 16, 8, 4, 2, 1 and fmaxf, all 32 lanes hold the maximum in the end.",
        "A warp whose row is beyond the end may leave, since all of its lanes leave together. A\n"
        "lane without a column may not: the mask names it, and the others wait.",
    ),
    minutes=10,
)

ATTENTION_PER_HEAD_BLOCKS = kernel_exercise(
    "lab09.attention_per_head_blocks",
    "attention with a block for each text and head",
    """%%cuda
// o = softmax(scale * q k^T) v for each head of each text, in one launch.
// q and o are [batch, n_head, n_q, head_dim], k and v [batch, n_head, n_k, head_dim];
// head_dim is at most 128. A block of 256 threads takes one head of one text: grid (n_head, batch).
// With causal, query i sees key j where j <= i + n_k - n_q; a query that sees no key gives zeros.
__global__ void attention_per_head_blocks(const float* q, const float* k, const float* v, float* o,
                                          int n_head, int n_q, int n_k, int head_dim, float scale,
                                          int causal) {
    // your kernel
}
""",
    cases=cases.attention_cases,
    launch=cases.launch_attention,
    axes=("batch", "n_head", "query", "head_dim"),
    tolerances={"float32": Tolerance(5e-4, 2e-4)},  # large scores are exact to 1e-5 or so
    hints=(
        "Which rows are this block's? Pairs of a text and a head lie one behind the other: pair\n"
        "blockIdx.y * n_head + blockIdx.x. Move the four pointers there, and then it is one head.",
        "A thread may take a query all by itself, and then the query 256 further on. Three walks\n"
        "over the keys: the largest score; the sum of exp; the sum of exp times value. The last\n"
        "two can be one. A row of up to 128 sums fits in float out[128].",
        "There is no place for n_k scores in a thread, so compute a score again when you need it.\n"
        "causal decides nothing but how many keys to walk over. Where that is zero or less, store\n"
        "zeros and don't divide.",
    ),
    minutes=20,
)
