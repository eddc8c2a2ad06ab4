"""A variable that a kernel reads before it is set is told, whatever its memory holds."""

from __future__ import annotations

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import compilers
from labs_lib.cuda.unset import suspects

KERNELS = """
struct State { float m, l; };
#define EACH for (int i = 0; i < n; i++)
#define LANE const float* row = x + threadIdx.x * n;
__device__ float halved(float a) { float b; if (a > 0.0f) b = a; return b / 2; }
__global__ void total(const float* x, float* y, int n) {
    LANE
    float sum;
    EACH sum += row[i];
    y[threadIdx.x] = sum;
}
__global__ void largest(const float* x, float* y, int n) {
    LANE
    float top;
    EACH top = fmaxf(top, row[i]);
    y[threadIdx.x] = top;
}
__global__ void several(const float* x, float* y, int n) {
    LANE
    float acc[4];
    EACH acc[i % 4] += row[i];
    y[threadIdx.x] = acc[0] + acc[1] + acc[2] + acc[3];
}
__global__ void member(const float* x, float* y, int n) {
    LANE
    State state;
    state.m = 0.0f;
    EACH state.l += row[i];
    y[threadIdx.x] = state.m + state.l;
}
__global__ void some_lanes(const float* x, float* y, int n) {
    LANE
    float value;
    if (threadIdx.x < 30) value = row[0];
    y[threadIdx.x] = value;
}
__global__ void inside(const float* x, float* y, int n) {
    LANE
    float sum = 0.0f;
    EACH { float part; part -= row[i]; sum += part; }
    y[threadIdx.x] = sum;
}
__global__ void twice_as_wide(const float* x, float* y, int n) {
    LANE
    double sum;
    EACH sum += row[i];
    y[threadIdx.x] = float(sum);
}
__global__ void half_as_wide(const float* x, float* y, int n) {
    LANE
    __half sum;
    EACH sum = __hadd(sum, __float2half(row[i]));
    y[threadIdx.x] = __half2float(sum);
}
__global__ void counted(const float* x, float* y, int n) {
    LANE
    int above;
    EACH above += row[i] > -2.0f;
    y[threadIdx.x] = above;
}
__global__ void called(const float* x, float* y, int n) {
    LANE
    y[threadIdx.x] = halved(row[0]);
}
__global__ void kept_by_nothing(const float* x, float* y, int n) {
    LANE
    float top = -INFINITY, sum;
    EACH {
        float higher = fmaxf(top, row[i]);
        sum = sum * expf(top - higher) + 1.0f;
        top = higher;
    }
    y[threadIdx.x] = sum;
}
__global__ void all_lanes(const float* x, float* y, int n) {
    LANE
    float value, acc[2], unused;
    if (threadIdx.x < 32) value = row[0];
    for (int i = 0; i < 2; i++) acc[i] = 0.0f;
    acc[1] += value;
    y[threadIdx.x] = acc[1];
}
"""
WRONG = {
    "total": "sum", "largest": "top", "several": "acc", "member": "state", "some_lanes": "value",
    "inside": "part", "twice_as_wide": "sum", "half_as_wide": "sum", "counted": "above",
    "called": "b", "kept_by_nothing": "sum",
}  # fmt: skip


@pytest.fixture(scope="module")
def kernels():
    return cuda.compile(f"#include <cuda_fp16.h>\n{KERNELS}")


def traced(kernel):
    # All below zero: a largest number that begins with zero is wrong, with -1e38 it looks right.
    x, y = torch.linspace(-3, -1, 32 * 8).view(32, 8).contiguous(), torch.zeros(32)
    return kernel.trace.totals[1, 32](x, y, 8).findings


@pytest.mark.parametrize("name", WRONG)
def test_reading_what_was_never_set_is_told_with_its_name_and_line(kernels, name):
    (found,) = traced(kernels[name])
    assert (found.kind, found.where) == ("unset", WRONG[name])
    line = kernels.source.splitlines()[found.line - 1]
    assert WRONG[name] in line, found
    assert found.message.startswith(f"Line {found.line} reads `{WRONG[name]}`")


ENDED = """
__global__ void stray(const float* x, float* y) {
    int i;
    y[threadIdx.x] = x[i];
}
__global__ void too_far(const float* x, float* y) {
    int i;
    if (threadIdx.x < 32) i = threadIdx.x;
    y[i] = x[i + 1000];
}
__global__ void one_of_two(const float* x, float* y) {
    float value, sum;
    if (threadIdx.x < 32) value = x[threadIdx.x];
    for (int i = 0; i < 4; i++) sum += value;
    y[threadIdx.x] = sum;
}
"""


def test_an_unset_index_is_named_beside_the_access_that_it_sent_astray():
    module, x, y = cuda.compile(ENDED), torch.ones(32), torch.zeros(32)
    unset, fault = module["stray"].trace.totals[1, 32](x, y).findings
    assert (unset.kind, unset.where, unset.line) == ("unset", "i", 4)
    assert "ends otherwise" in unset.message and fault.kind == "out-of-bounds"
    (fault,) = module["too_far"].trace.totals[1, 32](x, y).findings
    assert fault.kind == "out-of-bounds" and "x[1000]" in fault.message


def test_of_several_that_look_unset_only_those_that_are_get_the_blame():
    found = cuda.compile(ENDED)["one_of_two"].trace.totals[1, 32](torch.ones(32), torch.zeros(32))
    assert [f.where for f in found.findings] == ["sum"]


def test_what_is_set_on_every_path_that_runs_is_not_told(kernels):
    assert traced(kernels["all_lanes"]) == []


def test_tensors_that_share_memory_share_it_in_the_second_run_too():
    k = cuda.compile("""
__global__ void k(const float* x, float* y) {
    float a;
    if (threadIdx.x < 32) a = x[threadIdx.x];
    y[threadIdx.x] = a + x[threadIdx.x];
}""")
    x = torch.arange(32.0)
    assert k.trace[1, 32](x, x).clean and x[3] == 6


def test_an_older_compiler_is_not_asked_for_what_it_does_not_know(monkeypatch):
    monkeypatch.setattr(compilers, "is_clang", lambda compiler: False)
    for words, fills in (("g++ (Debian 12.2.0-14) 12.2.0", True), ("g++ (GCC) 9.4.0", False)):
        monkeypatch.setattr(compilers, "version", lambda compiler, words=words: f"g++ 1 2 {words}")
        monkeypatch.setattr(compilers, "_takes", lambda compiler, *flags: False)
        compilers._fills.cache_clear()
        assert (compilers.PATTERN in compilers.host_flags(True)) == fills
    compilers._fills.cache_clear()


READ_FIRST = [
    ("float a[2]; a[0] = 0; a[0] += x[0]; a[1] += x[1];", ["a"]),
    ("float a[4][2]; for (int i = 0; i < 4; i++) a[i][0] += x[i];", ["a"]),
    ("int i; for (; i < n; i++) x[i] = 1;", ["i"]),
    ("int i; i++; float a, *p, b[3]; a += b[1]; p = x;", ["i", "a", "b"]),
    ("unsigned long long c; x[0] = c;", ["c"]),
    ("bool ok; if (n) ok = true; else ok = false; x[0] = ok;", ["ok"]),
    ("float best; x[0] = n > 2 ? best : 1;", ["best"]),
    ("float s; auto f = [&](float y) { s += y; }; f(1);", ["s"]),
    ("float s; s = 0; s += 1;", []),
    ("float s = 0, t{}; s += t;", []),
    ("int i, j = 2; for (i = 0; i < n; i++) x[i] = j;", []),
    ("float4 v; *(float4*)&v = f(); x[0] = v.x;", []),
    ("fragment<matrix_a, 16, half> a; for (int i = 0; i < 2; ++i) load(a, x); x[0] = a.x[0];", []),
    ("float s[4], m = 0; s[n] = x[0], s[n + 1] = x[1];", []),
    ('float s; asm("mov %0, 1;" : "=f"(s)); x[0] = s;', []),
    ("struct S { float m, l; }; S s; s.m = 0; s.l = 1; s.l += x[0];", []),
    ("__shared__ float t[32]; extern __shared__ float u[]; t[0] += 1; u[1] += 1;", []),
]


@pytest.mark.parametrize(("body", "names"), READ_FIRST)
def test_what_is_looked_at_twice_is_what_the_text_reads_first(body, names):
    found = suspects(f"__global__ void k(float* x, int n) {{\n{body}\n}}\n")
    assert [s.name for s in found] == names
