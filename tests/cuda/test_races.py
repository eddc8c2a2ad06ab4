"""Races, divergence, bounds and order: found with both lines, and no alarm on clean kernels."""

from __future__ import annotations

import textwrap

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import lines

WRONG = {
    # kind: (body, line, other line); the body starts in line 3
    "no barrier after a tile is loaded": (
        "race", 5, 4,
        "__shared__ float s[64]; int t = threadIdx.x;\ns[t] = x[t];\nx[t] = s[63 - t];",
    ),
    "no barrier before the next tile is loaded": (
        "race", 6, 7,
        """__shared__ float s[64]; int t = threadIdx.x; float sum = 0;
        for (int i = 0; i < 3; ++i) {
            if (i > n) return;
            s[t] = x[i * 64 + t]; __syncthreads();
            sum += s[63 - t]; if (i == 5) __syncthreads();
        }
        """,
    ),
    "a warp's sum without __syncwarp": (
        "race", 5, 5,
        """__shared__ volatile float dummy[1]; __shared__ float s[64]; int t = threadIdx.x;
        s[t] = x[t]; __syncthreads();
        if (t < 32) for (int o = 16; o; o /= 2) s[t] += s[t + o];
        """,
    ),
    "an index that is off by one": (
        "race", 5, 4,
        "__shared__ float s[65]; int t = threadIdx.x;\ns[t] = 1; if (t == 63) s[64] = 2;\n"
        "s[t + 1] = 3;",
    ),
    "two blocks that add into one number": (
        "cross-block", 3, 3, "if (threadIdx.x == 0) x[0] += 1.0f;",
    ),
    "a block that reads what its neighbour wrote": (
        "cross-block", 3, 3,
        "x[blockIdx.x * 64 + threadIdx.x] = x[(blockIdx.x * 64 + threadIdx.x + 64) % 192];",
    ),
    "shared memory read before it is written": (
        "uninitialised", 4, None,
        "__shared__ float s[64]; int t = threadIdx.x; if (t > 2) s[t] = 1;\nx[t] = s[t];",
    ),
    "threads of one warp write one global word": (
        "race", 3, 3, "if (blockIdx.x == 0) x[threadIdx.x / 2] = threadIdx.x;",
    ),
    "lanes that have ended are named in a mask": (
        "absent-lanes", 4, None,
        "if (threadIdx.x % 32 > 20) return;\n"
        "x[blockIdx.x * 64 + threadIdx.x] = __shfl_down_sync(0xffffffff, n, 1);",
    ),
}  # fmt: skip


def together(bodies, params):
    """One module of many kernels, compiled once; and how many lines stand above each of them."""
    text, above = "", {}
    for i, (name, body) in enumerate(bodies.items()):
        above[name] = text.count("\n")
        text += f"\n__global__ void k{i}({params}) {{\n{textwrap.dedent(body).strip()}\n}}\n"
    module = cuda.compile(text)
    return {name: (module[f"k{i}"], above[name]) for i, name in enumerate(bodies)}


@pytest.fixture(scope="module")
def wrong():
    return together({name: case[3] for name, case in WRONG.items()}, "float* x, int n")


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_with_its_lines(wrong, name):
    kind, line, other, _ = WRONG[name]
    k, above = wrong[name]
    trace = k.trace[3, 64](torch.arange(192.0), 192)
    found = [f for f in trace.findings if f.kind == kind]
    assert found, trace
    lines = {n - above if n else None for n in (found[0].line, found[0].other_line)}
    assert lines == {line, other}, trace
    assert not found[0].harmless and not trace.clean
    assert found[0].thread is not None and str(found[0].line) in found[0].message


CLEAN = {
    "a tree sum": """
        __shared__ float s[64]; int t = threadIdx.x; s[t] = x[blockIdx.x * 64 + t];
        for (int o = 32; o; o /= 2) { __syncthreads(); if (t < o) s[t] += s[t + o]; }
        if (t == 0) x[blockIdx.x * 64] = s[0];""",
    "a warp's sum with __syncwarp": """
        __shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();
        if (t < 32) for (int o = 32; o; o /= 2) {
            float v = t + o < 64 ? s[t + o] : 0; __syncwarp(); s[t] += v; __syncwarp(); }
        if (t == 0 && blockIdx.x == 0) y[0] = s[0];""",
    "shuffles": """
        float v = x[blockIdx.x * 64 + threadIdx.x]; __shared__ float s[2];
        for (int o = 16; o; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
        if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v; __syncthreads();
        if (threadIdx.x == 0) y[blockIdx.x] = s[0] + s[1];""",
    "partial masks": """
        int t = threadIdx.x; float v = t;
        if (t % 32 < 16) v = __shfl_xor_sync(0x0000ffff, v, 1);
        else v = __shfl_xor_sync(0xffff0000, v, 2);
        y[blockIdx.x * 64 + t] = v;""",
    "a double buffer": """
        __shared__ float s[2][64]; int t = threadIdx.x; float sum = 0; s[0][t] = x[t];
        for (int i = 0; i < 3; ++i) { __syncthreads(); sum += s[i % 2][63 - t];
            if (i < 2) s[(i + 1) % 2][t] = x[(i + 1) * 64 + t]; }
        y[blockIdx.x * 64 + t] = sum;""",
    "a scan": """
        __shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();
        for (int o = 1; o < 64; o *= 2) { float v = t >= o ? s[t - o] : 0; __syncthreads();
            s[t] += v; __syncthreads(); }
        y[blockIdx.x * 64 + t] = s[t];""",
    "a histogram": """
        __shared__ int h[8]; int t = threadIdx.x; if (t < 8) h[t] = 0; __syncthreads();
        atomicAdd(&h[(int)x[t] % 8], 1); __syncthreads();
        if (t < 8) atomicAdd(&y[t], (float)h[t]);""",
    "the last block sums up": """
        __shared__ bool last; int t = threadIdx.x;
        if (t == 0) { y[1 + blockIdx.x] = x[blockIdx.x * 64]; __threadfence();
            last = atomicAdd(&y[0], 1.0f) == gridDim.x - 1; }
        __syncthreads();
        if (last && t == 0) { float s = 0; for (int b = 0; b < gridDim.x; ++b) s += y[1 + b];
            y[100] = s; y[0] = 0; }""",
    "neighbouring 16-bit words": """
        __shared__ short s[64]; int t = threadIdx.x; s[t] = t; __syncthreads();
        y[blockIdx.x * 64 + t] = s[63 - t];""",
    "neighbouring bytes": """
        __shared__ unsigned char s[64]; int t = threadIdx.x; s[t] = t; __syncthreads();
        y[blockIdx.x * 64 + t] = s[63 - t];""",
    "layer norm": """
        __shared__ float s[64], mean, spread; int t = threadIdx.x; float v = x[t];
        s[t] = v; __syncthreads();
        for (int o = 32; o; o /= 2) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
        if (t == 0) mean = s[0] / 64; __syncthreads();
        s[t] = (v - mean) * (v - mean); __syncthreads();
        for (int o = 32; o; o /= 2) { if (t < o) s[t] += s[t + o]; __syncthreads(); }
        if (t == 0) spread = rsqrtf(s[0] / 64); __syncthreads();
        y[blockIdx.x * 64 + t] = (v - mean) * spread;""",
    "threads that end after the last barrier": """
        __shared__ float s[64]; int t = threadIdx.x; s[t] = x[t]; __syncthreads();
        if (t > 40) return; y[blockIdx.x * 64 + t] = s[63 - t];""",
    "a lock": """
        if (threadIdx.x == 0) { while (atomicCAS((int*)&y[150], 0, 1) != 0) {}
            __threadfence(); y[151] += 1; __threadfence(); atomicExch((int*)&y[150], 0); }""",
    "a volatile flag": """
        __shared__ volatile int ready; int t = threadIdx.x; if (t == 63) ready = 0;
        __syncthreads(); if (t == 63) ready = 1; if (t == 0) { while (!ready) {} }
        __syncthreads(); y[blockIdx.x * 64 + t] = ready;""",
}  # fmt: skip


@pytest.fixture(scope="module")
def clean():
    return together(CLEAN, "float* x, float* y")


@pytest.mark.parametrize("name", CLEAN)
def test_no_alarm_on_a_clean_kernel(clean, name):
    x, y = torch.arange(192.0), torch.zeros(192)
    trace = clean[name][0].trace[3, 64](x, y)
    assert trace.clean and not trace.findings, trace


def test_where_no_line_can_be_told_that_is_said(make, monkeypatch):
    monkeypatch.setattr(lines.shutil, "which", lambda program: None)  # macOS has no addr2line
    k = make("__shared__ float s[64];\ns[threadIdx.x] = x[0];\nx[1] = s[63 - threadIdx.x];")
    (found, *_) = k.trace.totals[1, 64](torch.zeros(64), 0).findings
    assert found.line is None and "in a line that isn't known" in found.message


def test_equal_values_written_by_two_threads_are_a_note(make):
    trace = make("__shared__ int s; s = n; __syncthreads(); x[threadIdx.x] = s;").trace[1, 64](
        torch.zeros(64), 7
    )
    assert [(f.kind, f.harmless) for f in trace.findings] == [("race", True)] and trace.clean
    other = make("__shared__ int s; s = n + threadIdx.x / 63; __syncthreads(); x[0] = 1;")
    found = other.trace[1, 64](torch.zeros(64), 7).findings
    assert not all(f.harmless for f in found)


def test_barriers_in_two_branches_are_told_apart_through_a_device_function(make):
    k = make("if (threadIdx.x < 8) meet(); else meet();",
             before="__device__ void meet() { __syncthreads(); }")  # fmt: skip
    found = k.trace[1, 64](torch.zeros(1), 1).findings[-1]
    assert found.kind == "barrier" and "different barriers" in found.message


def test_loops_of_different_length_around_a_barrier_are_found(make):
    k = make("for (int i = 0; i < 1 + threadIdx.x / 32; ++i)\n    __syncthreads();")
    for run in (k.trace[1, 64], k[1, 64]):
        try:
            found = run(torch.zeros(1), 1).findings[-1]
        except cuda.KernelFault as fault:
            found = fault
        assert (found.kind, found.line) == ("barrier", 4)


def test_a_write_beyond_the_last_row_is_found_with_its_element(make):
    trace = make("int i = blockIdx.x * 32 + threadIdx.x;\nx[i] = i;").trace[2, 32](
        torch.zeros(40), 40
    )
    found = trace.findings[-1]
    assert (found.kind, found.line, found.thread, found.block) == (
        "out-of-bounds", 4, (8, 0, 0), (1, 0, 0),
    )  # fmt: skip
    assert "x[40], 1 past its last element (x has 40 elements)" in found.message


def test_running_over_the_end_of_a_shared_array_is_found(make):
    k = make("__shared__ float a[32], b[32];\na[threadIdx.x + 1] = b[0] = 1;")
    found = k.trace[1, 32](torch.zeros(1), 1).findings[-1]
    assert (found.kind, found.line, found.thread) == ("out-of-bounds", 4, (31, 0, 0))


def test_a_misaligned_vector_is_found(make):
    k = make("float4 v = *(float4*)(x + 1);\nx[0] = v.x;")
    found = k.trace[1, 1](torch.zeros(16), 16).findings[-1]
    assert found.kind == "misaligned" and "16-byte" in found.message


def test_a_result_that_depends_on_the_order_of_blocks_is_found(make):
    k = make("if (threadIdx.x == 0) x[1 + (int)atomicAdd(&x[0], 1.0f)] = blockIdx.x;")
    kinds = {f.kind for f in k.trace[4, 32](torch.zeros(8), 8).findings}
    assert "block-order" in kinds


def test_where_tensors_lie_in_memory_changes_no_word():
    """Two outputs depend on the order of blocks; the first parameter is named, wherever it lies."""
    body = "if (threadIdx.x == 0) { first[0] = blockIdx.x; second[0] = blockIdx.x; }"
    k = cuda.compile(f"__global__ void k(float* first, float* second) {{ {body} }}")
    memory = torch.zeros(64)
    said = [
        [f.message for f in k.trace[4, 32](memory[a:b], memory[c:d]).findings]
        for a, b, c, d in ((0, 8, 32, 40), (32, 40, 0, 8))
    ]
    assert said[0] == said[1]
    assert any("first[0] comes out different" in message for message in said[0])


def test_sums_by_atomics_round_differently_and_that_is_no_dependence(make):
    x = torch.zeros(8)
    trace = make("atomicAdd(&x[0], 0.1f * threadIdx.x + blockIdx.x);").trace[4, 32](x, 8)
    assert trace.clean and x[0] > 1


def test_the_tensors_hold_the_result_of_one_run_only(make):
    """Three orders of blocks are tried; what remains is one of them."""
    x = torch.zeros(4)
    make("x[blockIdx.x] += 1;").trace[4, 1](x, 4)
    assert (x == 1).all()
