"""Lab 09: softmax with one block for each row."""

from __future__ import annotations

from ...exercises.lab09_rules import NEIGHBOURS_READ, SHARED_OUT
from ..kit import Answer, Right, Wrong
from .edits import bundled, edited

MOST = "    for (int i = t; i < cols; i += 256) most = fmaxf(most, s[i]);\n"
SUM = "    for (int i = t; i < cols; i += 256) sum += expf(s[i] - most);\n"
DIVIDE = "    for (int i = t; i < cols; i += 256) p[i] = expf(s[i] - most) / sum;\n"
TREE_MOST = """\
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] = fmaxf(part[t], part[t + half]);
        __syncthreads();  // max
    }
"""
TREE_SUM = """\
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();  // sum
    }
"""
BETWEEN = "    __syncthreads();  // everyone has read part[0]\n"
FULL_MOST = "    __syncthreads();  // all maxima are there\n"
FULL_SUM = "    __syncthreads();  // all sums are there\n"

SOFTMAX = f"""
__global__ void softmax_rows(const float* s, float* p, int rows, int cols) {{
    __shared__ float part[256];
    int t = threadIdx.x;
    s += blockIdx.x * cols;
    p += blockIdx.x * cols;

    float most = -INFINITY;
{MOST}    part[t] = most;
{FULL_MOST}{TREE_MOST}    most = part[0];
{BETWEEN}
    float sum = 0.0f;
{SUM}    part[t] = sum;
{FULL_SUM}{TREE_SUM}    sum = part[0];

{DIVIDE}}}
"""


def _with(*pairs: tuple[str, str]) -> str:
    return edited(SOFTMAX, *pairs)


NO_WAITING = (
    "Threads read the shared array while others write it. All have to wait before a tree begins,\n"
    "after each of its steps (the last ones too: a warp needn't move in step), and before the\n"
    "array is used anew."
)
BEYOND = (
    "Numbers behind a tensor are read or written. Have all threads of the block the same row,\n"
    "blockIdx.x? And does each loop end before cols? p[cols] belongs to the next row."
)
BEYOND_PART = (
    "The tree reaches beyond the end of the shared array. Its first step makes 128 numbers of\n"
    "256, and in each step only the threads in the lower half have work."
)
INSIDE = (
    "The barrier stands inside the if: only some threads reach it. All have to, also those\n"
    "that have nothing to add in this step."
)

OWN_SUM = (
    "Each thread divides by a sum of its own. All of a row have to divide by the same one, the\n"
    "sum that the tree leaves in its first place."
)

BARRIERS = (
    Wrong(
        "no_barrier_before_the_first_tree",
        _with((FULL_MOST, "")),
        "The tree begins before all threads have put their maximum into the shared array.",
    ),
    Wrong("no_barrier_before_the_second_tree", _with((FULL_SUM, "")), NO_WAITING),
    Wrong(
        "no_barrier_in_the_first_tree",
        _with(("        __syncthreads();  // max\n", "")),
        NO_WAITING,
    ),
    Wrong(
        "no_barrier_in_the_second_tree",
        _with(("        __syncthreads();  // sum\n", "")),
        NO_WAITING,
    ),
    Wrong("part_used_again_too_early", _with((BETWEEN, "")), NO_WAITING),
    Wrong(
        "barrier_inside_the_if",
        _with(
            (
                "        if (t < half) part[t] += part[t + half];\n"
                "        __syncthreads();  // sum\n",
                "        if (t < half) {\n            part[t] += part[t + half];\n"
                "            __syncthreads();\n        }\n",
            )
        ),
        INSIDE,
    ),
    Wrong(
        "barriers_inside_both_ifs",
        _with(
            (
                TREE_MOST,
                TREE_MOST.replace("(t < half) part", "(t < half) { part").replace(
                    "__syncthreads();  // max", "__syncthreads(); }"
                ),
            ),
            (
                TREE_SUM,
                TREE_SUM.replace("(t < half) part", "(t < half) { part").replace(
                    "__syncthreads();  // sum", "__syncthreads(); }"
                ),
            ),
        ),
        INSIDE,
    ),
    Wrong(
        "barriers_after_the_trees_only",
        _with(
            ("        __syncthreads();  // max\n    }\n", "    }\n    __syncthreads();\n"),
            ("        __syncthreads();  // sum\n    }\n", "    }\n    __syncthreads();\n"),
        ),
        NO_WAITING,
    ),
    Wrong(
        "no_barrier_in_the_last_warp",
        _with(("        __syncthreads();  // sum\n", "        if (half > 32) __syncthreads();\n")),
        NO_WAITING,
    ),
    Wrong(
        "leaves_before_the_barrier",
        _with(
            (
                "    float most = -INFINITY;\n",
                "    if (t >= cols) return;\n    float most = -INFINITY;\n",
            )
        ),
        "Threads beyond the end of the row leave, and the barrier waits for all threads of the\n"
        "block. Let them stay, with nothing to bring.",
    ),
)

EDGES = (
    Wrong(
        "first_256_columns_only",
        _with(
            (
                MOST,
                MOST.replace(
                    "for (int i = t; i < cols; i += 256)", "int i = t;\n    if (i < cols)"
                ),
            ),
            (SUM, SUM.replace("for (int i = t; i < cols; i += 256)", "if (i < cols)")),
            (DIVIDE, DIVIDE.replace("for (int i = t; i < cols; i += 256)", "if (i < cols)")),
        ),
        "Each thread takes one number, so that 256 are served. A row may have more columns than\n"
        "the block has threads.",
    ),
    Wrong(
        "reads_beyond_the_row",
        _with((MOST, "    most = s[t];\n" + MOST)),
        "Every thread begins with s[t], also where t is beyond the row: that is the next row's\n"
        "number, or lies behind the tensor.",
    ),
    Wrong(
        "one_column_too_many",
        _with((DIVIDE, DIVIDE.replace("i < cols", "i <= cols"))),
        BEYOND,
    ),
    Wrong(
        "always_the_first_row",
        _with(("    s += blockIdx.x * cols;\n    p += blockIdx.x * cols;\n", "")),
        "Every block makes the first row. Which row is this block's?",
    ),
    Wrong(
        "another_row_for_each_thread",
        _with(
            (
                "    s += blockIdx.x * cols;\n    p += blockIdx.x * cols;\n",
                "    int row = blockIdx.x * blockDim.x + t;\n"
                "    s += row * cols;\n    p += row * cols;\n",
            )
        ),
        BEYOND,
    ),
    Wrong(
        "everyone_does_it_all",
        "\n__global__ void softmax_rows(const float* s, float* p, int rows, int cols) {\n"
        "    s += blockIdx.x * cols;\n    p += blockIdx.x * cols;\n"
        "    float most = -INFINITY, sum = 0.0f;\n"
        "    for (int i = 0; i < cols; i++) most = fmaxf(most, s[i]);\n"
        "    for (int i = 0; i < cols; i++) sum += expf(s[i] - most);\n"
        "    for (int i = threadIdx.x; i < cols; i += 256) p[i] = expf(s[i] - most) / sum;\n}\n",
        SHARED_OUT,
    ),
    Wrong(
        "rows_apart_by_rows",
        _with(
            (
                "    s += blockIdx.x * cols;\n    p += blockIdx.x * cols;\n",
                "    s += blockIdx.x * rows;\n    p += blockIdx.x * rows;\n",
            )
        ),
        "From one row to the next it is cols numbers; you step by rows.",
    ),
    Wrong(
        "a_thread_for_each_row",
        "\n__global__ void softmax_rows(const float* s, float* p, int rows, int cols) {\n"
        "    int row = blockIdx.x * blockDim.x + threadIdx.x;\n    if (row >= rows) return;\n"
        "    s += row * cols;\n    p += row * cols;\n    float most = -INFINITY, sum = 0.0f;\n"
        "    for (int i = 0; i < cols; i++) most = fmaxf(most, s[i]);\n"
        "    for (int i = 0; i < cols; i++) sum += expf(s[i] - most);\n"
        "    for (int i = 0; i < cols; i++) p[i] = expf(s[i] - most) / sum;\n}\n",
        NEIGHBOURS_READ,
    ),
    Wrong(
        "one_thread_does_it_all",
        _with(
            (
                "    float most = -INFINITY;\n",
                "    if (t > 0) return;\n    float most = -INFINITY, sum = 0.0f;\n",
            ),
            (
                f"{MOST}    part[t] = most;\n{FULL_MOST}{TREE_MOST}    most = part[0];\n{BETWEEN}\n"
                f"    float sum = 0.0f;\n{SUM}    part[t] = sum;\n{FULL_SUM}{TREE_SUM}"
                f"    sum = part[0];\n\n{DIVIDE}",
                "    for (int i = 0; i < cols; i++) most = fmaxf(most, s[i]);\n"
                "    for (int i = 0; i < cols; i++) sum += expf(s[i] - most);\n"
                "    for (int i = 0; i < cols; i++) p[i] = expf(s[i] - most) / sum;\n",
            ),
        ),
        NEIGHBOURS_READ,
    ),
)

ARITHMETIC = (
    Wrong(
        "no_maximum",
        _with(
            (SUM, SUM.replace("s[i] - most", "s[i]")),
            (DIVIDE, DIVIDE.replace("s[i] - most", "s[i]")),
        ),
        "exp is taken of the scores themselves: exp(89) is more than a float can hold. The\n"
        "maximum has to be subtracted first, in both places.",
    ),
    Wrong(
        "maximum_over_half_the_row",
        _with((MOST, MOST.replace("i < cols", "i < (cols + 1) / 2"))),
        "The maximum is that of the row's first half. Most rows come out right all the same;\n"
        "where a score of the second half is far larger, exp overflows.",
    ),
    Wrong(
        "each_thread_its_own_maximum",
        _with(("    most = part[0];\n", "")),
        "Each thread subtracts the largest number that it has seen itself. All of a row have to\n"
        "subtract the same one.",
    ),
    Wrong(
        "maximum_begins_at_zero",
        _with(("float most = -INFINITY", "float most = 0.0f")),
        "The maximum begins at 0, so that it is 0 where all scores are negative. With scores of\n"
        "-200 every exp is 0 then, and 0 / 0 is NaN.",
    ),
    Wrong(
        "maximum_begins_at_a_finite_number",
        _with(("float most = -INFINITY", "float most = -10000.0f")),
        "The maximum begins at a number that looks small enough. Scores can lie below it; below\n"
        "minus infinity there is nothing.",
    ),
    Wrong(
        "sum_of_the_first_thread",
        _with((TREE_SUM, "")),
        "You divide by the sum of the first thread alone. The 256 sums have to be added up.",
    ),
    Wrong(
        "each_thread_its_own_sum",
        _with(("    sum = part[0];\n", "")),
        OWN_SUM,
    ),
    Wrong("each_thread_its_own_place", _with((" / sum;", " / part[t];")), OWN_SUM),
    Wrong(
        "sum_over_half_the_threads",
        _with((TREE_SUM, TREE_SUM.replace("half = 128", "half = 64"))),
        "The tree for the sum begins at 64: half of the threads' sums are never added.",
    ),
    Wrong(
        "tree_begins_at_256",
        SOFTMAX.replace("half = 128", "half = 256"),
        BEYOND_PART,
    ),
    Wrong(
        "tree_over_the_columns",
        SOFTMAX.replace("half = 128", "half = cols / 2"),
        "Where the tree begins depends on cols. What it goes over are the 256 numbers in the\n"
        "shared array, however many columns there are.",
    ),
    Wrong(
        "an_array_for_each_thread",
        _with(("__shared__ float part", "float part")),
        "Without __shared__ every thread has an array of its own. One for the block is meant.",
    ),
    Wrong(
        "everyone_takes_part_in_each_step",
        SOFTMAX.replace("        if (t < half) part", "        part"),
        BEYOND_PART,
    ),
    Wrong(
        "sum_begins_with_the_maximum",
        _with(
            (FULL_MOST, "    float own = most;\n" + FULL_MOST),
            ("float sum = 0.0f;", "float sum = own;"),
        ),
        "The sum goes on from the thread's own maximum, which the variable held before. It has to\n"
        "begin at 0.",
    ),
    Wrong(
        "scores_divided",
        _with((DIVIDE, DIVIDE.replace("expf(s[i] - most) / sum", "s[i] / sum"))),
        "In the end the score itself is divided by the sum. It is its exponential that counts.",
    ),
    Wrong(
        "tree_stops_early",
        _with((TREE_SUM, TREE_SUM.replace("half > 0", "half > 1"))),
        "The tree for the sum stops one step early: the second place is left out.",
    ),
    Wrong(
        "not_divided",
        _with((" / sum;", ";")),
        "Nothing is divided: the rows don't add up to 1.",
    ),
    Wrong(
        "divided_by_the_number_of_columns",
        _with((" / sum;", " / cols;")),
        "You divide by the number of columns. Divide by the sum of the exponentials.",
    ),
    Wrong(
        "power_of_two",
        _with((SUM, SUM.replace("expf", "exp2f")), (DIVIDE, DIVIDE.replace("expf", "exp2f"))),
        "These are powers of two. exp(x) is exp2(x * log2(e)); without the factor the weights are\n"
        "too even.",
    ),
    Wrong(
        "logarithm_of_the_weights",
        _with((DIVIDE, DIVIDE.replace("expf(s[i] - most) / sum", "s[i] - most - logf(sum)"))),
        "These are the logarithms of the weights.",
    ),
    Wrong(
        "adds_to_the_output",
        _with((DIVIDE, DIVIDE.replace("p[i] =", "p[i] +="))),
        "p is NaN everywhere. Are the weights added to what p held before? Nobody has promised\n"
        "zeros. Or is what you subtract not the row's largest score? Then 0 is divided by 0.",
    ),
)

SOFTMAX_ROWS = Answer(
    reference=bundled("softmax_rows"),
    wrong=(*BARRIERS, *EDGES, *ARITHMETIC),
    right=(
        Right("plain", SOFTMAX),
        Right("block_dim", SOFTMAX.replace("i += 256", "i += blockDim.x").replace(
            "half = 128", "half = blockDim.x / 2")),
        Right("exp2_of_scaled", SOFTMAX.replace(
            "expf(s[i] - most)", "exp2f((s[i] - most) * 1.44269504f)")),
        Right("kept_in_p", _with(
            (SUM, "    for (int i = t; i < cols; i += 256) sum += p[i] = expf(s[i] - most);\n"),
            (DIVIDE, "    for (int i = t; i < cols; i += 256) p[i] /= sum;\n"))),
        Right("rounded_exp", SOFTMAX.replace("expf", "__expf")),
        Right("a_tree_by_shuffles", _with(
            (TREE_MOST, "    if (t < 32) {\n"
                        "        for (int i = t; i < 256; i += 32) most = fmaxf(most, part[i]);\n"
                        "        for (int d = 16; d > 0; d /= 2)\n"
                        "            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));\n"
                        "        __syncwarp();\n        part[t] = most;\n    }\n"
                        "    __syncthreads();\n"))),
        Right("two_arrays", _with(
            ("__shared__ float part[256];", "__shared__ float part[256], other[256];"),
            (BETWEEN, ""), ("    part[t] = sum;\n", "    other[t] = sum;\n"),
            (TREE_SUM, TREE_SUM.replace("part", "other")),
            ("    sum = part[0];", "    sum = other[0];"))),
        Right("first_thread_adds", _with((TREE_SUM, """\
    if (t == 0)
        for (int j = 1; j < 256; j++) part[0] += part[j];
    __syncthreads();
"""))),
        Right("empty_rows_too", _with(
            ("    most = part[0];\n", "    most = part[0] == -INFINITY ? 0.0f : part[0];\n"),
            (" / sum;", " / (sum > 0.0f ? sum : 1.0f);"))),
    ),
)  # fmt: skip
