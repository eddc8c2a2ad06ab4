"""Answers to the lab of `kernel_exercises`: its reference, wrong and right programs."""

from __future__ import annotations

from kernel_exercises import text

from labs_lib.answers import Answer, Right, Wrong, edited

RIGHT = text("""
    __device__ float product(const float* x, const float* y, int at) { return x[at] * y[at]; }

    __global__ void row_products(const float* x, const float* y, float* sums, int rows, int cols,
                                 float scale) {
        __shared__ float part[64];
        int row = blockIdx.x, t = threadIdx.x;
        float sum = 0.0f;
        for (int c = t; c < cols; c += 64) sum += product(x, y, row * cols + c);
        part[t] = sum;
        __syncthreads();
        for (int half = 32; half > 0; half /= 2) {
            if (t < half) part[t] += part[t + half];
            __syncthreads();
        }
        if (t == 0) sums[row] = part[0] * scale;
    }
""")

ODD = text("""
    __global__ void row_products(const float* a, const float* b, float* out, int n, int m,
                                 float s) {
        float sum = 0.0f;
        const float *left = a + blockIdx.x * m, *right = b + blockIdx.x * m;
        for (int c = threadIdx.x; c < m; c += 64) sum += left[c] * right[c];
        for (int by = 16; by > 0; by /= 2) sum += __shfl_down_sync(0xffffffff, sum, by);
        __shared__ float warps[2];
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) out[blockIdx.x] = s * (warps[0] + warps[1]);
    }
""")

GREEDY = edited(
    RIGHT, "sum += product(x, y, row * cols + c);",
    "sum += product(x, y, row * cols + c) * (x[row * cols] == x[row * cols] ? 1.0f : 0.0f);",
)  # fmt: skip
STRIDED = edited(
    RIGHT, "for (int c = t; c < cols; c += 64)",
    "for (int n = (cols + 63) / 64, c = t * n; c < cols && c < t * n + n; ++c)",
)  # fmt: skip
CONFLICTS = edited(
    RIGHT, "part[64]", "part[64 * 32]", "part[t] = sum", "part[t * 32] = sum",
    "part[t] += part[t + half]", "part[t * 32] += part[(t + half) * 32]",
)  # fmt: skip

ANSWER = Answer(
    reference=RIGHT,
    wrong=(
        Wrong("no_scale", edited(RIGHT, "part[0] * scale", "part[0]"),
              "What you have is the bare sum; look at what scale is for."),
        Wrong("no_barrier_after_store",
              edited(RIGHT, "part[t] = sum;\n    __syncthreads();", "part[t] = sum;"),
              "Threads add what others have not written yet; a barrier is missing."),
        Wrong("no_barrier_in_the_tree",
              edited(RIGHT, "part[t + half];\n        __syncthreads();", "part[t + half];"),
              "Each step of the tree needs the one before to be finished."),
        Wrong("barrier_for_some",
              edited(RIGHT, "if (t < half) part[t] += part[t + half];\n        __syncthreads();",
                     "if (t < half) { part[t] += part[t + half]; __syncthreads(); }"),
              "Only some threads come to that barrier; take it out of the if."),
        Wrong("reads_a_row_too_far", edited(RIGHT, "c < cols; c += 64", "c <= cols; c += 64"),
              "It takes one number more than the row has."),
        Wrong("only_thread_zero", edited(RIGHT, "part[0] * scale", "sum * scale"),
              "This is the sum of one thread alone."),
        Wrong("first_row_only", edited(RIGHT, "int row = blockIdx.x", "int row = 0"),
              "Every block makes the first row; which one is its own?"),
        Wrong("writes_all_threads", edited(RIGHT, "if (t == 0) sums[row]", "sums[row + t]"),
              "Each thread writes, but a row has one sum."),
        Wrong("greedy", GREEDY, "Each number of x is needed once."),
    ),
    right=(Right("by_shuffles", ODD),),
)  # fmt: skip

ANSWERS = {
    "lab90.row_products": ANSWER,
    "lab90.double": Answer(lambda x: x + x, (Wrong("once", lambda x: x, "It is as it was."),)),
}
