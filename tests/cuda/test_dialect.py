"""Odd but legal CUDA runs, and runs the same fast and traced."""

from __future__ import annotations

import pytest
import torch

from labs_lib import cuda

# Each `KERNEL` becomes a name of its own; all go through the compiler together.
SOURCES = {
    "a device function in a namespace": """
        namespace util { __device__ float sq(float v) { return v * v; } }
        __global__ void KERNEL(float* x, int n) { x[threadIdx.x] = util::sq(n); }""",
    "C linkage, bounds, restrict and a template": """
        static constexpr int kN = 4;
        template <int M> __device__ __forceinline__ int times() { return M * kN; }
        extern "C" __global__ void __launch_bounds__(64)
        KERNEL(float* __restrict__ x, const int n) { x[threadIdx.x] = times<3>(); }""",
    "structs in shared memory": """
        struct P { float a; int b; };
        __global__ void KERNEL(float* x, int n) {
            __shared__ P p[4];
            if (threadIdx.x < 4) p[threadIdx.x] = {1.f, (int)threadIdx.x};
            __syncthreads();
            x[threadIdx.x] = p[threadIdx.x % 4].b;
        }""",
    "a lambda": """
        __global__ void KERNEL(float* x, int n) {
            auto f = [&](int i) { return x[i] + n; };
            x[threadIdx.x] = f(threadIdx.x);
        }""",
    "shared memory of a template, twice": """
        template <int T> __device__ float go() {
            __shared__ float s[T][T + 1];
            if (threadIdx.x < T) s[0][threadIdx.x] = T;
            __syncthreads();
            return s[0][threadIdx.x % T];
        }
        __global__ void KERNEL(float* x, int n) { x[threadIdx.x] = go<8>() + go<16>(); }""",
    "four floats by a cast": """
        __global__ void KERNEL(float* x, int n) {
            __shared__ alignas(16) float s[64];
            float4* p = (float4*)s;
            if (threadIdx.x < 16) p[threadIdx.x] = make_float4(1, 2, 3, 4);
            __syncthreads();
            x[threadIdx.x] = s[threadIdx.x];
        }""",
    "two arrays in dynamic memory": """
        __global__ void KERNEL(float* x, int n) {
            extern __shared__ char raw[];
            float* a = (float*)raw;
            int* b = (int*)(a + 32);
            a[threadIdx.x] = 1;
            b[threadIdx.x] = 2;
            __syncthreads();
            x[threadIdx.x] = a[31 - threadIdx.x] + b[threadIdx.x];
        }""",
    "max of several kinds": """
        __global__ void KERNEL(float* x, int n) {
            x[threadIdx.x] = std::max(1.0f, std::sqrt((float)n)) + max(n, 3) + fmaxf(1, 2) +
                             __expf(0) + max(1.0f, 2.0f) + min(n, 2u) + max(2.0, 1.0f);
        }""",
    "loops made by macros, pragmas and switches": """
        #define FOR(i, n) for (int i = 0; i < n; ++i)
        __global__ void KERNEL(float* x, int n) {
            FOR(i, 4) FOR(j, 2) { x[threadIdx.x] += 1; }
            #pragma unroll 4
            for (int i = 0; i < 4; ++i) x[threadIdx.x] += i;
            switch (threadIdx.x % 3) {
                case 0: for (int i = 0; i < 2; ++i) x[threadIdx.x] += 1; break;
                case 1: x[threadIdx.x] = 5; break;
                default: break;
            }
        }""",
    "comments in the parameters": """
        __global__ void KERNEL(float* /* in, out */ x,  // the data
                               int n /* size */) { x[threadIdx.x] = n; }""",
    "bfloat16 changed in place": """
        __global__ void KERNEL(float* x, int n) {
            __nv_bfloat16 a = __float2bfloat16(1.5f);
            a += __float2bfloat16(2.f);
            x[threadIdx.x] = __bfloat162float(a * a);
        }""",
}
WANT = {
    "a device function in a namespace": [4096.0] * 4,
    "C linkage, bounds, restrict and a template": [12.0] * 4,
    "structs in shared memory": [0.0, 1.0, 2.0, 3.0],
    "a lambda": [64.0] * 4,
    "shared memory of a template, twice": [24.0] * 4,
    "four floats by a cast": [1.0, 2.0, 3.0, 4.0],
    "two arrays in dynamic memory": [3.0] * 4,
    "max of several kinds": [8.0 + 64 + 2 + 1 + 2 + 2 + 2] * 4,
    "loops made by macros, pragmas and switches": [16.0, 5.0, 14.0, 16.0],
    "comments in the parameters": [64.0] * 4,
    "bfloat16 changed in place": [12.25] * 4,
}


@pytest.fixture(scope="module")
def module():
    head = (
        "#include <cuda_runtime.h>\n#include <cuda_bf16.h>\n#include <algorithm>\n#include <cmath>"
    )
    texts = [t.replace("KERNEL", f"k{i}") for i, t in enumerate(SOURCES.values())]
    return cuda.compile("\n".join([head, *texts]))


@pytest.mark.parametrize("name", SOURCES)
def test_odd_but_legal_cuda_runs_the_same_fast_and_traced(module, name):
    k = module[f"k{list(SOURCES).index(name)}"]
    fast, traced = torch.zeros(64), torch.zeros(64)
    k[1, 32, 256](fast, 64)
    trace = k.trace[1, 32, 256](traced, 64)
    assert trace.clean and torch.equal(fast, traced), trace
    assert fast[:4].tolist() == WANT[name]
