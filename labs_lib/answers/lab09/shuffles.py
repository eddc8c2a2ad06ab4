"""Lab 09: softmax with one warp for each row, by shuffles."""

from __future__ import annotations

from ...exercises.lab09_rules import LANES_SHARE, REGISTERS
from ..kit import Answer, Right, Wrong
from .edits import bundled, edited

ROW = "    int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;\n"
GUARD = "    if (row >= rows) return;\n"
MOST = "    for (int i = lane; i < cols; i += 32) most = fmaxf(most, s[i]);\n"
SUM = "    for (int i = lane; i < cols; i += 32) sum += expf(s[i] - most);\n"
DIVIDE = "    for (int i = lane; i < cols; i += 32) p[i] = expf(s[i] - most) / sum;\n"
ALL_MOST = """\
    for (int d = 16; d > 0; d /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
"""
ALL_SUM = """\
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);
"""

SHUFFLES = f"""
__global__ void softmax_rows_by_shuffles(const float* s, float* p, int rows, int cols) {{
{ROW}{GUARD}    s += row * cols;
    p += row * cols;
    float most = -INFINITY;
{MOST}{ALL_MOST}    float sum = 0.0f;
{SUM}{ALL_SUM}{DIVIDE}}}
"""


def _with(*pairs: tuple[str, str]) -> str:
    return edited(SHUFFLES, *pairs)


def _both(old: str, new: str) -> str:
    """Both reductions changed alike."""
    changed = [(part, part.replace(old, new)) for part in (ALL_MOST, ALL_SUM)]
    if any(a == b for a, b in changed):
        raise ValueError(f"{old!r} is not in both reductions")
    return _with(*changed)


IN_SHARED = """
__global__ void softmax_rows_by_shuffles(const float* s, float* p, int rows, int cols) {
    __shared__ float part[4][32];
    int lane = threadIdx.x, y = threadIdx.y, row = blockIdx.x * blockDim.y + y;
    bool mine = row < rows;
    float most = -INFINITY, sum = 0.0f;
    if (mine) for (int i = lane; i < cols; i += 32) most = fmaxf(most, s[row * cols + i]);
    part[y][lane] = most;
    __syncthreads();
    for (int half = 16; half > 0; half /= 2) {
        if (lane < half) part[y][lane] = fmaxf(part[y][lane], part[y][lane + half]);
        __syncthreads();
    }
    most = part[y][0];
    __syncthreads();
    if (mine) for (int i = lane; i < cols; i += 32) sum += expf(s[row * cols + i] - most);
    part[y][lane] = sum;
    __syncthreads();
    for (int half = 16; half > 0; half /= 2) {
        if (lane < half) part[y][lane] += part[y][lane + half];
        __syncthreads();
    }
    sum = part[y][0];
    if (mine) for (int i = lane; i < cols; i += 32)
        p[row * cols + i] = expf(s[row * cols + i] - most) / sum;
}
"""

ONLINE = """
__global__ void softmax_rows_by_shuffles(const float* s, float* p, int rows, int cols) {
    int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    s += row * cols;
    p += row * cols;
    float m = -INFINITY, l = 0.0f;
    for (int i = lane; i < cols; i += 32) {
        float bigger = fmaxf(m, s[i]);
        if (bigger == -INFINITY) continue;
        l = l * expf(m - bigger) + expf(s[i] - bigger);
        m = bigger;
    }
    for (int d = 16; d > 0; d /= 2) {
        float m2 = __shfl_xor_sync(0xffffffffu, m, d), l2 = __shfl_xor_sync(0xffffffffu, l, d);
        float bigger = fmaxf(m, m2);
        if (bigger == -INFINITY) continue;
        l = l * expf(m - bigger) + l2 * expf(m2 - bigger);
        m = bigger;
    }
    for (int i = lane; i < cols; i += 32) p[i] = expf(s[i] - m) / l;
}
"""

HELPERS = """
__device__ float largest(float x) {
    for (int d = 1; d < 32; d *= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, d, 32));
    return x;
}
__device__ float total(float x) {
    for (int d = 1; d < 32; d *= 2) x += __shfl_xor_sync(~0u, x, d, 32);
    return x;
}
"""

LANES_MISSING = (
    "Lanes without a column don't come to the shuffle: they have left, or an if leads them past\n"
    "it. Its mask names all 32. Let them stay, with nothing to bring."
)
BEYOND = (
    "Numbers beyond the end are read: by warps that have no row (5 rows make two blocks of four),\n"
    "by lanes that have no column, or by a loop that takes one column too many."
)

LANES = (
    Wrong(
        "lanes_without_a_column_leave",
        _with((GUARD, GUARD + "    if (lane >= cols) return;\n")),
        LANES_MISSING,
    ),
    Wrong(
        "shuffles_inside_an_if",
        _with((ALL_SUM, f"    if (lane < cols) {{\n{ALL_SUM}    }}\n")),
        LANES_MISSING,
    ),
    Wrong(
        "half_a_mask",
        _both("0xffffffffu", "0xffffu"),
        "Each bit of the mask names a lane, and yours doesn't name all that take part. Each lane\n"
        "that calls must be in its own mask.",
    ),
    Wrong(
        "width_16",
        _both(", d)", ", d, 16)"),
        "With a width of 16 the warp falls apart into two halves that know nothing of each other.",
    ),
    Wrong(
        "partner_named_twice",
        _both(", d)", ", lane ^ d)"),
        "You hand the shuffle lane ^ d, and it takes that for the bits to flip: lane ^ (lane ^ d)\n"
        "is d, for all lanes the same. It is handed d alone.",
    ),
    Wrong(
        "begins_at_eight",
        _both("d = 16", "d = 8"),
        "The first step is 8, so that lanes 0 to 15 never meet lanes 16 to 31. Half of 32 is 16.",
    ),
    Wrong(
        "begins_at_four",
        _both("d = 16", "d = 4"),
        "The first step is 4: that is for eight lanes, as in the example. Half of 32 is 16.",
    ),
    Wrong(
        "begins_at_32",
        _both("d = 16", "d = 32"),
        "The first step is 32. No lane of this warp has such a number; what comes is the lane's\n"
        "own, and it is counted twice.",
    ),
    Wrong(
        "stops_at_two",
        _both("d > 0", "d > 1"),
        "The last step is missing: neighbouring lanes never exchange what they have.",
    ),
    Wrong(
        "only_the_first_lane_knows",
        _both("xor", "down"),
        "After __shfl_down_sync only lane 0 holds the result; the others have parts of it. Either\n"
        "it tells the others, or every lane takes part in a way that leaves all with the result.",
    ),
    Wrong(
        "upwards",
        _both("xor", "up"),
        "__shfl_up_sync hands values upwards: only lane 31 has the result of all in the end.",
    ),
)

EDGES = (
    Wrong(
        "no_guard",
        _with((GUARD, "")),
        BEYOND,
    ),
    Wrong(
        "first_32_columns_only",
        _with(
            (
                MOST,
                MOST.replace(
                    "for (int i = lane; i < cols; i += 32)", "int i = lane;\n    if (i < cols)"
                ),
            ),
            (SUM, SUM.replace("for (int i = lane; i < cols; i += 32)", "if (i < cols)")),
            (DIVIDE, DIVIDE.replace("for (int i = lane; i < cols; i += 32)", "if (i < cols)")),
        ),
        "Each lane takes one column, so that 32 are served. A row may be longer than a warp.",
    ),
    Wrong(
        "reads_beyond_the_row",
        _with((MOST, "    most = s[lane];\n")),
        BEYOND,
    ),
    Wrong(
        "every_lane_the_whole_row",
        _with(
            (ALL_MOST, ""),
            (ALL_SUM, ""),
            (MOST, MOST.replace("i = lane; i < cols; i += 32", "i = 0; i < cols; i++")),
            (SUM, SUM.replace("i = lane; i < cols; i += 32", "i = 0; i < cols; i++")),
        ),
        LANES_SHARE,
    ),
    Wrong(
        "whole_rows_added_up",
        _with(
            (MOST, MOST.replace("i = lane; i < cols; i += 32", "i = 0; i < cols; i++")),
            (SUM, SUM.replace("i = lane; i < cols; i += 32", "i = 0; i < cols; i++")),
        ),
        "Each lane walks over the whole row, and then 32 equal sums are added up: the sum is 32\n"
        "times too large. A lane takes every 32nd number.",
    ),
    Wrong(
        "steps_by_a_block",
        SHUFFLES.replace("i += 32", "i += 128"),
        "Lanes step by 128, but a row belongs to the 32 lanes of one warp. Three of four columns\n"
        "are left out.",
    ),
    Wrong(
        "four_warps_on_one_row",
        _with((ROW, ROW.replace("blockIdx.x * blockDim.y + threadIdx.y", "blockIdx.x"))),
        "All four warps of a block make the same row, and most rows are made by nobody.",
    ),
    Wrong(
        "rows_of_the_first_block",
        _with((ROW, ROW.replace("blockIdx.x * blockDim.y + threadIdx.y", "threadIdx.y"))),
        "Rows from 4 on are left out. A block has four warps, and so four rows: which is the\n"
        "first of this block's?",
    ),
    Wrong(
        "lane_and_row_swapped",
        _with((ROW, "    int lane = threadIdx.y, row = blockIdx.x * blockDim.x + threadIdx.x;\n")),
        "x and y are swapped: the 32 threads of a warp are those with equal y, and each of yours\n"
        "has another row.",
    ),
    Wrong(
        "one_column_too_many",
        _with((DIVIDE, DIVIDE.replace("i < cols", "i <= cols"))),
        BEYOND,
    ),
)

ARITHMETIC = (
    Wrong(
        "no_maximum",
        SHUFFLES.replace("s[i] - most", "s[i]"),
        "exp is taken of the scores themselves: exp(89) is more than a float can hold. Subtract\n"
        "the row's maximum first.",
    ),
    Wrong(
        "each_lane_its_own_maximum",
        _with((ALL_MOST, "")),
        "Each lane subtracts the largest number that it has seen itself. All of a row have to\n"
        "subtract the same one.",
    ),
    Wrong(
        "each_lane_its_own_sum",
        _with((ALL_SUM, "")),
        "Each lane divides by its own sum. All of a row have to divide by the same one.",
    ),
    Wrong(
        "maximum_over_half_the_row",
        _with((MOST, MOST.replace("i < cols", "i < (cols + 1) / 2"))),
        "The maximum is that of the first half of the row. Where the largest score stands in the\n"
        "second half, exp overflows.",
    ),
    Wrong(
        "maximum_begins_at_zero",
        _with(("float most = -INFINITY", "float most = 0.0f")),
        "The maximum begins at 0. With scores of -200 every exp is 0 then, and 0 / 0 is NaN.",
    ),
    Wrong(
        "maximum_begins_at_a_finite_number",
        _with(("float most = -INFINITY", "float most = -10000.0f")),
        "The maximum begins at a number that looks small enough. Scores can lie below it; below\n"
        "minus infinity there is nothing.",
    ),
    Wrong(
        "maximum_added_up",
        _with((ALL_MOST, ALL_MOST.replace("most = fmaxf(most, ", "most = (most + "))),
        "In the first exchange the maxima are added up. Two maxima become one by fmaxf.",
    ),
    Wrong(
        "sum_replaced",
        _with((ALL_SUM, ALL_SUM.replace("sum +=", "sum ="))),
        "In the second exchange a lane drops its own sum and takes the other one's. They have to\n"
        "be added.",
    ),
    Wrong(
        "sum_of_maxima",
        _with((ALL_SUM, ALL_SUM.replace("sum += ", "sum = fmaxf(sum, ").replace("d);", "d));"))),
        "In the second exchange the largest of the sums is kept. They have to be added.",
    ),
    Wrong(
        "not_divided",
        _with((" / sum;", ";")),
        "Nothing is divided: the rows don't add up to 1.",
    ),
    Wrong(
        "power_of_two",
        SHUFFLES.replace("expf", "exp2f"),
        "These are powers of two. exp(x) is exp2(x * log2(e)); without the factor the weights are\n"
        "too even.",
    ),
    Wrong(
        "adds_to_the_output",
        _with((DIVIDE, DIVIDE.replace("p[i] =", "p[i] +="))),
        "The weights are added to what p held before, and nobody has promised that it held zeros.",
    ),
    Wrong(
        "a_tree_in_shared_memory",
        IN_SHARED,
        REGISTERS,
    ),
)

SOFTMAX_ROWS_BY_SHUFFLES = Answer(
    reference=bundled("softmax_rows_warp").replace("softmax_rows_warp", "softmax_rows_by_shuffles"),
    wrong=(*LANES, *EDGES, *ARITHMETIC),
    right=(
        Right("plain", SHUFFLES),
        Right("down_and_told", _both("xor", "down")
              .replace("    float sum = 0.0f;\n",
                       "    most = __shfl_sync(~0u, most, 0);\n    float sum = 0.0f;\n")
              .replace(DIVIDE, "    sum = __shfl_sync(~0u, sum, 0);\n" + DIVIDE)),
        Right("helpers", HELPERS + _with((ALL_MOST, "    most = largest(most);\n"),
                                         (ALL_SUM, "    sum = total(sum);\n"))),
        Right("online", ONLINE),
        Right("exp2_of_scaled", SHUFFLES.replace(
            "expf(s[i] - most)", "exp2f((s[i] - most) * 1.44269504f)")),
        Right("kept_in_p", _with(
            (SUM, "    for (int i = lane; i < cols; i += 32) sum += p[i] = expf(s[i] - most);\n"),
            (DIVIDE, "    for (int i = lane; i < cols; i += 32) p[i] /= sum;\n"))),
    ),
)  # fmt: skip
