"""Lab 09: a thread for each score."""

from __future__ import annotations

from ..kit import Answer, Right, Wrong
from .edits import bundled, edited

GUARD = "    if (query >= n_q || key >= n_k) return;\n"
LOOP = (
    "    for (int i = 0; i < head_dim; i++)\n"
    "        sum += q[query * head_dim + i] * k[key * head_dim + i];\n"
)
STORE = "    s[query * n_k + key] = sum * scale;\n"
BEYOND = (
    "A tensor is read or written beyond its end. The grid covers whole blocks, so at the edges\n"
    "threads have no score of their own (the last index is n - 1): what should they do? If yours\n"
    "leave, look at the index: how many numbers is it from one row to the next?"
)
NOTHING_STORED = (
    "s is NaN as it was before: either nothing is stored there, or the products are added to what\n"
    "s held, and nobody has promised that it held zeros. Add up in a variable, and store it once."
)
KEY = "blockIdx.x * blockDim.x + threadIdx.x"
QUERY = "blockIdx.y * blockDim.y + threadIdx.y"

NAIVE = f"""
__global__ void scores_naive(const float* q, const float* k, float* s, int n_q, int n_k,
                             int head_dim, float scale) {{
    int key = {KEY};
    int query = {QUERY};
{GUARD}    float sum = 0.0f;
{LOOP}{STORE}}}
"""


def _with(*pairs: tuple[str, str]) -> str:
    return edited(NAIVE, *pairs)


SCORES_NAIVE = Answer(
    reference=bundled("scores_naive"),
    wrong=(
        Wrong(
            "no_guard",
            _with((GUARD, "")),
            BEYOND,
        ),
        Wrong(
            "guards_only_the_query",
            _with((" || key >= n_k", "")),
            "Only the query is compared with its end. A thread whose key is beyond n_k writes\n"
            "into the next query's row.",
        ),
        Wrong(
            "guards_only_the_key",
            _with(("query >= n_q || ", "")),
            "Only the key is compared with its end. A thread whose query is beyond n_q reads and\n"
            "writes behind the tensors.",
        ),
        Wrong(
            "guard_one_too_far",
            _with(("query >= n_q", "query > n_q"), ("key >= n_k", "key > n_k")),
            BEYOND,
        ),
        Wrong(
            "guard_has_the_ends_swapped",
            _with(("query >= n_q", "query >= n_k"), ("key >= n_k", "key >= n_q")),
            "Query and key are exchanged in one place: in the guard (the query is compared with\n"
            "n_k, the key with n_q), or in the rows that you read. With as many queries as keys a\n"
            "guard like that would do.",
        ),
        Wrong(
            "scale_missing",
            _with(("sum * scale", "sum")),
            "The scores are right but for the scale: each is too large by a constant factor.",
        ),
        Wrong(
            "scale_by_head_dim",
            _with(("sum * scale", "sum / head_dim")),
            "The sum is divided by head_dim, or the scale comes in twice, which is the same. The\n"
            "kernel is handed the factor that it should use, once.",
        ),
        Wrong(
            "divides_by_the_scale",
            _with(("sum * scale", "sum / scale")),
            "You divide by the scale. It is a factor: 1 / sqrt(head_dim) already.",
        ),
        Wrong(
            "x_and_y_swapped",
            _with((f"key = {KEY}", f"key = {QUERY}"), (f"query = {QUERY}", f"query = {KEY}")),
            "Your x counts queries and your y counts keys; the grid is laid out the other way\n"
            "round. Where there are more of one than of the other, scores are missing.",
        ),
        Wrong(
            "no_block_index",
            _with((KEY, "threadIdx.x"), (QUERY, "threadIdx.y")),
            "Every block makes the same 16 x 16 scores: the index leaves out which block it is.",
        ),
        Wrong(
            "stored_transposed",
            _with(("s[query * n_k + key]", "s[key * n_q + query]")),
            "The scores are stored with the key first. A row of s belongs to a query and has n_k\n"
            "numbers.",
        ),
        Wrong(
            "row_of_s_has_n_q",
            _with(("s[query * n_k + key]", "s[query * n_q + key]")),
            "A row of s is n_k numbers long, one for each key; you step by n_q.",
        ),
        Wrong(
            "row_of_s_has_head_dim",
            _with(("s[query * n_k + key]", "s[query * head_dim + key]")),
            "A row of s is n_k numbers long, one for each key; you step by head_dim, as in q.",
        ),
        Wrong(
            "only_the_last_product",
            _with(("sum += q", "sum = q")),
            "Each product takes the place of the one before, so that only the last is left. A\n"
            "score is the sum of all.",
        ),
        Wrong(
            "k_read_by_columns",
            _with(("k[key * head_dim + i]", "k[i * n_k + key]")),
            "You read k as if it were [head_dim, n_k]. It is [n_k, head_dim]: the numbers of one\n"
            "key lie side by side.",
        ),
        Wrong(
            "row_of_q_has_n_q",
            _with(("q[query * head_dim + i]", "q[query * n_q + i]")),
            "From one row of q to the next it is head_dim numbers; you step by n_q.",
        ),
        Wrong(
            "row_of_k_has_n_k",
            _with(("k[key * head_dim + i]", "k[key * n_k + i]")),
            "From one row of k to the next it is head_dim numbers, and a score has head_dim\n"
            "products. In yours n_k stands for one of them.",
        ),
        Wrong(
            "rows_as_long_as_there_are_many",
            _with(("q[query * head_dim + i]", "q[query * n_q + i]"),
                  ("k[key * head_dim + i]", "k[key * n_k + i]")),
            "From one row to the next it is head_dim numbers, in q and in k. You step by the\n"
            "number of rows.",
        ),
        Wrong(
            "a_thread_for_each_query",
            _with(
                (f"    int key = {KEY};\n    int query = {QUERY};\n{GUARD}    float sum = 0.0f;\n",
                 f"    int query = {KEY};\n    if (query >= n_q) return;\n"
                 "    for (int key = 0; key < n_k; key++) {\n    float sum = 0.0f;\n"),
                (STORE, STORE + "    }\n"),
            ),
            "Each thread makes a whole row of scores, and x counts queries. There is a thread for\n"
            "each single score: x says which key is its own, y which query.",
        ),
        Wrong(
            "whole_numbers",
            _with(("float sum = 0.0f;", "int sum = 0;")),
            "The sum is an int: whatever comes after the point is dropped in each step.",
        ),
        Wrong(
            "sum_not_started",
            _with(("float sum = 0.0f;", "float sum;")),
            "The sum begins with whatever was in its register. A variable without a value isn't\n"
            "zero on a GPU, though it often looks so.",
        ),
        Wrong(
            "adds_to_the_output",
            _with(
                (LOOP, LOOP.replace("sum +=", "s[query * n_k + key] += scale *")),
                (STORE, ""),
                ("    float sum = 0.0f;\n", ""),
            ),
            NOTHING_STORED,
        ),
        Wrong(
            "last_number_left_out",
            _with(("i < head_dim", "i < head_dim - 1")),
            "The last number of each row is left out: the loop ends one step early.",
        ),
        Wrong(
            "always_64",
            _with(("i < head_dim", "i < 64")),
            "The loop takes 64 numbers whatever head_dim is.",
        ),
        Wrong(
            "a_product_of_sums",
            _with(
                (LOOP, "    float other = 0.0f;\n    for (int i = 0; i < head_dim; i++) {\n"
                       "        sum += q[query * head_dim + i];\n"
                       "        other += k[key * head_dim + i];\n    }\n"),
                ("sum * scale", "sum * other * scale"),
            ),
            "You add up the row of q, add up the row of k, and multiply the two sums. A score is\n"
            "the sum of the products.",
        ),
        Wrong(
            "writes_nothing",
            _with((STORE, "")),
            NOTHING_STORED,
        ),
    ),
    right=(
        Right("plain", NAIVE),
        Right(
            "inside_an_if",
            _with(
                (GUARD, "    if (query < n_q && key < n_k) {\n"),
                (STORE, STORE + "    }\n"),
            ),
        ),
        Right("unrolled", _with((LOOP, "#pragma unroll 4\n" + LOOP))),
        Right("fmaf", _with(("sum += q[query * head_dim + i] * k[key * head_dim + i]",
                             "sum = fmaf(q[query * head_dim + i], k[key * head_dim + i], sum)"))),
        Right("double", _with(("float sum = 0.0f;", "double sum = 0.0;"),
                              ("sum * scale", "(float)(sum * scale)"))),
        Right("scaled_first", _with(("sum += q", "sum += scale * q"), ("sum * scale", "sum"))),
        Right("backwards", _with(("int i = 0; i < head_dim; i++", "int i = head_dim; i-- > 0;"))),
        Right(
            "float4",
            _with(
                (LOOP, "    const float4* a = (const float4*)(q + query * head_dim);\n"
                       "    const float4* b = (const float4*)(k + key * head_dim);\n"
                       "    for (int i = 0; i < head_dim / 4; i++) {\n"
                       "        float4 x = a[i], y = b[i];\n"
                       "        sum += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;\n    }\n"),
            ),
        ),
        Right(
            "device_function",
            "__device__ float dot(const float* a, const float* b, int n) {\n"
            "    float sum = 0.0f;\n    while (n-- > 0) sum += *a++ * *b++;\n    return sum;\n}\n"
            + _with((LOOP, "    sum = dot(q + query * head_dim, k + key * head_dim, head_dim);\n")),
        ),
        Right(
            "grid_stride",
            _with(
                (GUARD, ""),
                (f"    int key = {KEY};\n    int query = {QUERY};\n    float sum = 0.0f;\n",
                 "    for (int query = blockIdx.y * blockDim.y + threadIdx.y; query < n_q;\n"
                 "         query += gridDim.y * blockDim.y)\n"
                 "    for (int key = blockIdx.x * blockDim.x + threadIdx.x; key < n_k;\n"
                 "         key += gridDim.x * blockDim.x) {\n    float sum = 0.0f;\n"),
                (STORE, STORE + "    }\n"),
            ),
        ),
    ),
)  # fmt: skip
