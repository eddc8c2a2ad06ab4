"""Traced bytes equal the formulas, to the byte; sectors and bank passes are a GPU's."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from flash_inputs import numbers

from labs_lib import cuda

NAIVE = """
__global__ void scores(const float* q, const float* k, float* s, int n, int d) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < d; ++i) sum += q[row * d + i] * k[col * d + i];
    s[row * n + col] = sum;
}"""

FLASH = """
#define B 32
__global__ void flash(const float* q, const float* k, const float* v, float* o, int n, int d) {
    extern __shared__ float kv[];
    float *ks = kv, *vs = kv + B * d;
    int row = blockIdx.x * B + threadIdx.x;
    float acc[64], mine[64], m = -INFINITY, l = 0.0f;
    for (int i = 0; i < d; ++i) {
        acc[i] = 0.0f;
        mine[i] = row < n ? q[row * d + i] : 0.0f;
    }
    for (int start = 0; start < n; start += B) {
        for (int i = threadIdx.x; i < B * d; i += B) {
            bool inside = start + i / d < n;
            ks[i] = inside ? k[start * d + i] : 0.0f;
            vs[i] = inside ? v[start * d + i] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < B && start + j < n; ++j) {
            float s = 0.0f;
            for (int i = 0; i < d; ++i) s += mine[i] * ks[j * d + i];
            s *= rsqrtf((float)d);
            float bigger = fmaxf(m, s), keep = expf(m - bigger), p = expf(s - bigger);
            l = l * keep + p;
            m = bigger;
            for (int i = 0; i < d; ++i) acc[i] = acc[i] * keep + p * vs[j * d + i];
        }
        __syncthreads();
    }
    if (row >= n) return;
    for (int i = 0; i < d; ++i) o[row * d + i] = acc[i] / l;
}"""


@pytest.mark.parametrize(("n", "d"), [(16, 8), (33, 5)])
def test_naive_scores_read_each_row_once_for_each_score(n, d):
    tiles = -(-n // 16)
    q, k, s = numbers(n, d), numbers(n, d, seed=1), torch.zeros(n, n)
    trace = cuda.compile(NAIVE).trace[(tiles, tiles), (16, 16)](q, k, s, n, d)
    assert trace.tensors["q"].read == trace.tensors["k"].read == 4 * n * n * d
    assert trace.tensors["s"].written == trace.written == 4 * n * n
    assert trace.tensors["q"].written == trace.tensors["s"].read == 0
    assert trace.clean, trace
    torch.testing.assert_close(s, q @ k.T)


@pytest.mark.parametrize("n", [64, 97])
def test_flash_reads_k_and_v_once_for_each_block_of_queries(n):
    d, blocks = 16, -(-n // 32)
    q, k, v = (numbers(n, d, seed=i) for i in range(3))
    o = torch.full((n, d), float("nan"))
    trace = cuda.compile(FLASH).trace[blocks, 32, 2 * 32 * d * 4](q, k, v, o, n, d)
    assert trace.clean, trace
    assert trace.tensors["q"].read == 4 * n * d
    assert trace.tensors["k"].read == trace.tensors["v"].read == 4 * blocks * n * d
    assert trace.read == 4 * n * d * (1 + 2 * blocks)
    assert trace.written == 4 * n * d
    want = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    torch.testing.assert_close(o, want, atol=2e-5, rtol=1e-4)


def test_the_anchors_of_the_counter_hold():
    """fp32, n = 256, d = 64, flash with tiles of 32: published figures of the same count."""
    n, d = 256, 64
    q, k, v = (numbers(n, d, seed=i) for i in range(3))
    o = torch.zeros(n, d)
    trace = cuda.compile(FLASH).trace[n // 32, 32, 2 * 32 * d * 4](q, k, v, o, n, d)
    assert (trace.read, trace.written) == (1_114_112, 65_536)


@pytest.mark.parametrize(
    ("body", "read", "written"),
    [
        ("float s = 0; for (int i = 0; i < 8; ++i) s += x[1]; x[threadIdx.x] = s;", 8 * 32, 32),
        ("for (int i = 0; i < 8; ++i) x[threadIdx.x] += 1.0f;", 8 * 32, 8 * 32),
        ("x[threadIdx.x] = 1; x[threadIdx.x] = 2;", 0, 64),
        ("if (threadIdx.x < 5) x[threadIdx.x] = x[32];", 5, 5),
        ("float4 v = ((float4*)x)[threadIdx.x % 8]; if (v.x > 9) x[0] = v.y;", 4 * 32, 0),
        ("for (int i = 0; i < n; ++i) x[i * 32 + threadIdx.x] = x[i * 32 + threadIdx.x];", 64, 64),
    ],
    ids=["invariant load", "accumulator in memory", "dead store", "guard", "float4", "copy loop"],
)
def test_counts_are_those_of_the_source_as_written(make, body, read, written):
    """No load is hoisted, merged or dropped, whatever an optimiser would do."""
    trace = make(body).trace[1, 32](torch.zeros(64), 2)
    assert (trace.read, trace.written) == (4 * read, 4 * written)


def line(trace, what, where="x"):
    return next(li for li in trace.lines if li.what == what and li.where == where)


@pytest.mark.parametrize(
    ("index", "sectors"),
    [("t", 4), ("t + 1", 5), ("2 * t", 8), ("8 * t", 32), ("32 * t", 32), ("0", 1), ("t ^ 1", 4)],
)
def test_sectors_of_a_warp_are_counted(make, index, sectors):
    trace = make(f"int t = threadIdx.x;\nif (x[{index}] > 2) x[0] = 1;").trace[1, 32](
        torch.zeros(1024), 1024
    )
    assert line(trace, "read").sectors_per_request == sectors


@pytest.mark.parametrize("n", [32, 33, 36, 41, 44, 48])
def test_sectors_are_those_of_a_gpu_wherever_this_machines_memory_lies(make, n):
    """There an allocation starts a sector; here a tensor's place depends on its size and maker."""
    k = make("if (x[threadIdx.x] > 2) x[0] = 1;")
    shifted = np.zeros(4 * n + 16, np.uint8)
    start = -shifted.ctypes.data % 32 + 16
    unlucky = torch.from_numpy(shifted[start : start + 4 * n - 32].view(np.float32))
    for x in (torch.zeros(n), unlucky):
        lanes = min(32, x.numel())
        trace = k.trace[1, lanes](x, n)
        assert line(trace, "read").sectors == -(-lanes // 8)
    view = torch.zeros(n + 1)[1:]
    assert line(k.trace[1, 32](view, n), "read").sectors == 5


@pytest.mark.parametrize(
    ("body", "read", "sectors"),
    [
        ("y[t] = (float)h[t];", 32, 2),
        ("y[t] = h[t] + h[t + 1];", 64, 5),
        ("y[t] = __half2float(h[t]) * 2;", 32, 2),
        ("float v = h[t]; y[t] = v;", 32, 2),
        ("y[t] = h[t] > h[0] ? 1 : 0;", 64, 3),
        ("half zero = 0.0f; s[t] = t < 24 ? h[t] : zero; y[t] = 1;", 24, 2),
        ("s[t] = h[t]; __syncthreads(); y[t] = (float)s[31 - t];", 32, 2),
        ("y[t] = b[t]; y[t] += (float)(b[t] * b[t]);", 96, 6),
        ("float2 v = __half22float2(((half2*)h)[t]); y[t] = v.x + v.y;", 64, 4),
    ],
)  # fmt: skip
def test_16_bit_numbers_are_counted_however_they_are_read(make, body, read, sectors):
    k = make(f"__shared__ half s[32]; int t = threadIdx.x;\n{body}",
             params="half* h, __nv_bfloat16* b, float* y",
             before="#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n")  # fmt: skip
    h, b = torch.zeros(80).half(), torch.zeros(80).bfloat16()
    trace = k.trace[1, 32](h, b, torch.zeros(32))
    assert trace.clean, trace
    assert sum(trace.tensors[name].read for name in "hb") == 2 * read
    found = [li for li in trace.lines if li.where in "hb" and li.what == "read"]
    assert sum(li.sectors for li in found) == sectors


def test_lanes_are_compared_in_the_same_turn_of_a_loop(make):
    """An `if` inside a loop shifts the count of a lane's accesses, not its turns."""
    trace = make("""
        float s = 0;
        for (int i = 0; i < 8; ++i)
            if (i != threadIdx.x % 8) s += x[i * 32 + threadIdx.x];
        x[threadIdx.x] = s;""").trace[1, 32](torch.zeros(256), 256)
    read = line(trace, "read")
    assert read.requests == 8 and read.sectors == 8 * 4


def test_every_kind_of_loop_keeps_its_turns_and_its_meaning(make):
    k = make("""
        int t = threadIdx.x, i = 0, turns = 0;
        while (i < 4) { if (i++ == t % 4) continue; x[64 + t] += 1; ++turns; }
        do { if (turns > 99) break; x[64 + t] += 1; ++turns; } while (++i < 7);
        if (n) for (int j = 0; j < 2; ++j) ++turns;
        else turns = -1;
        x[t] = turns;""")
    fast, traced = torch.zeros(96), torch.zeros(96)
    k[1, 32](fast, 1)
    trace = k.trace[1, 32](traced, 1)
    assert torch.equal(fast, traced) and (fast[:32] == 8).all()
    assert trace.clean and trace.tensors["x"].read == 4 * 32 * 6
    while_read = next(li for li in trace.lines if li.line == 4 and li.what == "read")
    assert (while_read.requests, while_read.sectors) == (4, 16)


def test_variables_of_the_module_and_constexpr_loops_are_no_obstacle(make):
    k = make("""
        if (threadIdx.x == 0) last[blockIdx.x] = table[blockIdx.x] + log_of(n);
        if (threadIdx.x == 0) x[blockIdx.x] = last[blockIdx.x];""",
        before="__constant__ float table[2] = {3, 4}; __device__ float last[2]; constexpr "
        "__device__ int log_of(int n) { int r = 0; while (n > 1) { n /= 2; ++r; } return r; }",
    )  # fmt: skip
    for run in (k[2, 32], k.trace[2, 32]):
        x = torch.zeros(2)
        trace = run(x, 8)
        assert x.tolist() == [6, 7]
    assert trace.clean and trace.written == 8


def test_a_device_function_called_twice_is_two_requests(make):
    load = "__device__ float load(float* x, int at) { return x[at + threadIdx.x]; }"
    k = make("x[threadIdx.x] = load(x, 0) + load(x, 32);", before=load)
    read = line(k.trace[1, 32](torch.zeros(64), 64), "read")
    assert (read.requests, read.sectors) == (2, 8)


@pytest.mark.parametrize(
    ("declaration", "index", "passes"),
    [
        ("float s[32][32]", "s[t][0]", 32),
        ("float s[32][33]", "s[t][0]", 1),
        ("float s[32][32]", "s[0][t]", 1),
        ("float s[32][32]", "s[3][3]", 1),
        ("float s[64]", "s[2 * t]", 2),
        ("float4 s[32]", "s[t].x", 4),
    ],
)
def test_bank_conflicts_are_counted(make, declaration, index, passes):
    k = make(f"__shared__ {declaration}; int t = threadIdx.x;\n{index} = t;\nx[t] = 0;")
    trace = k.trace[1, 32](torch.zeros(32), 32)
    assert line(trace, "write", "shared").conflict == passes


def test_float4_in_shared_memory_goes_by_quarter_warps(make):
    k = make("__shared__ float4 s[32]; int t = threadIdx.x;\ns[t] = make_float4(t, t, t, t);")
    found = line(k.trace[1, 32](torch.zeros(1), 1), "write", "shared")
    assert found.bytes == 32 * 16 and found.wavefronts == 4


def test_the_accesses_of_the_first_block_are_told_thread_by_thread(make):
    k = make("""
        __shared__ float a[4], s[4]; int t = threadIdx.x; a[t] = 0;
        s[t] = x[blockIdx.x * 4 + t];
        __syncthreads();
        x[blockIdx.x * 4 + t] = s[3 - t];""")
    trace = k.trace[2, 4](torch.arange(8.0), 8)
    seen = [(e.step, e.line, e.what, e.name, e.index) for e in trace.events if e.thread == 1]
    assert seen == [
        (0, 3, "write", "a", 4), (0, 4, "read", "x", 1), (0, 4, "write", "s", 4),
        (1, 6, "read", "s", 8), (1, 6, "write", "x", 1),
    ]  # fmt: skip
    assert {e.thread for e in trace.events} == {0, 1, 2, 3} and len(trace.events) == 20


def test_a_trace_prints_as_a_table_and_speaks_json():
    q, k, s = numbers(16, 8), numbers(16, 8), torch.zeros(16, 16)
    trace = cuda.compile(NAIVE).trace[1, (16, 16)](q, k, s, 16, 8)
    text = str(trace)
    assert "bytes read" in text and "8,192" in text and "Nothing wrong was found." in text
    assert max(map(len, text.splitlines())) <= 100
    data = json.loads(json.dumps(trace.to_dict()))
    assert data["tensors"]["q"] == {"read": 8192, "written": 0, "atomic": 0}
    assert {li["line"] for li in data["lines"]} == {6, 7} and data["clean"]


def test_what_is_stored_through_a_pointer_by_frexp_and_modf_is_counted(make):
    body = """
    int t = threadIdx.x;
    float whole;
    m[t] = frexpf(x[t], &e[t]);
    r[t] = modff(x[t], &w[t]) + (float)frexp((double)x[t], &e[t]) - modf(x[t], &whole);
    """
    k = make(body, "const float* x, float* m, int* e, float* w, float* r")
    x = torch.tensor([0.0, -1.5, 3.75e-39, 1e38, math.inf, math.nan, -7.25, 0.3])
    m, w, r = (torch.zeros(8) for _ in range(3))
    e = torch.zeros(8, dtype=torch.int32)
    trace = k.trace.totals[1, 8](x, m, e, w, r)
    assert {name: t.written for name, t in trace.tensors.items()} == {
        "x": 0, "m": 32, "e": 64, "w": 32, "r": 32,
    }  # fmt: skip
    parts, exponents = torch.frexp(x)
    assert torch.allclose(m, parts, equal_nan=True, rtol=0, atol=0)
    assert torch.equal(e, exponents) and torch.allclose(w, x.trunc(), equal_nan=True)
    k[1, 8](x, m, e, w, r)
    assert torch.equal(e, exponents) and torch.allclose(r, parts, equal_nan=True)


def test_a_function_that_stores_and_is_not_emulated_is_refused_with_the_way_out(make):
    with pytest.raises(cuda.CompileError, match="`remquof` is not emulated: use remainder"):
        make("int q; x[0] = remquof(x[1], x[2], &q);")
