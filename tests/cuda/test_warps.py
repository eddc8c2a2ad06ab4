"""Warps, half and bfloat16, tensor-core fragments and atomics compute what a GPU computes."""

from __future__ import annotations

import pytest
import torch
from flash_inputs import numbers

from labs_lib import cuda

MODULE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

__global__ void lanes(int* out) {
    int t = threadIdx.x, *o = out + t * 16;
    o[0] = __shfl_sync(0xffffffff, t, 3);
    o[1] = __shfl_up_sync(0xffffffff, t, 2);
    o[2] = __shfl_down_sync(0xffffffff, t, 5);
    o[3] = __shfl_xor_sync(0xffffffff, t, 7);
    o[4] = __shfl_down_sync(0xffffffff, t, 1, 8);
    o[5] = __shfl_sync(0xffffffff, t, 9, 8);
    o[6] = __ballot_sync(0xffffffff, t % 3 == 0);
    o[7] = __all_sync(0xffffffff, t >= 0);
    o[8] = __any_sync(0xffffffff, t == 31);
    o[9] = __reduce_add_sync(0xffffffff, t);
    o[10] = __reduce_max_sync(0xffffffff, t);
    o[11] = __match_any_sync(0xffffffff, t / 8);
    o[12] = __syncthreads_count(t < 5);
    o[13] = __syncthreads_or(t == 40);
    o[14] = __syncthreads_and(t >= 0);
    o[15] = __popc(__activemask());
}
__global__ void poison(float* out) {
    if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(0x0000ffff, 1.0f, 20);
}
__global__ void many(float* out, int n) {
    float v = threadIdx.x;
    for (int i = 0; i < n; ++i) v = __shfl_xor_sync(1u << (threadIdx.x % 32), v, 0) + 1;
    out[threadIdx.x] = __shfl_sync(0xffffffff, v, 31);
}
__global__ void to_half(const float* x, __half* h, __nv_bfloat16* b, float* back, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    h[i] = __float2half(x[i]);
    b[i] = __float2bfloat16(x[i]);
    back[i] = __half2float(h[i]);
}
template <typename T> __device__ void sums(const T* a, const T* b, T* o, int i) {
    o[4 * i] = a[i] + b[i];
    o[4 * i + 1] = __hmul(a[i], b[i]);
    o[4 * i + 2] = a[i] / b[i];
    o[4 * i + 3] = __hfma(a[i], b[i], a[i]);
}
__global__ void half_sums(const half* a, const half* b, half* o) {
    sums<half>(a, b, o, blockIdx.x * blockDim.x + threadIdx.x);
}
__global__ void bf16_sums(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* o) {
    sums<__nv_bfloat16>(a, b, o, blockIdx.x * blockDim.x + threadIdx.x);
}
__global__ void pairs(const half2* a, float* o) {
    half2 v = __hadd2(a[threadIdx.x], __floats2half2_rn(1.0f, 2.0f));
    float2 f = __half22float2(v);
    o[2 * threadIdx.x] = f.x;
    o[2 * threadIdx.x + 1] = f.y;
}
template <typename T, typename L> __device__ void multiply(const T* a, const T* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, L> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 1.0f);
    for (int k = 0; k < 32; k += 16) {
        wmma::load_matrix_sync(fa, a + k, 32);
        wmma::load_matrix_sync(fb, b + k * 16, 16);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2.0f;
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
__global__ void wmma_half(const half* a, const half* b, float* c) {
    multiply<half, wmma::row_major>(a, b, c);
}
__global__ void wmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
    multiply<__nv_bfloat16, wmma::row_major>(a, b, c);
}
__global__ void relies_on_layout(const half* a, float* c) {
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::load_matrix_sync(fa, a, 16);
    for (int i = 0; i < 8; ++i) c[threadIdx.x * 8 + i] = fa.x[i];
}
__global__ void atoms(int* i, float* f, unsigned* u) {
    int t = threadIdx.x;
    atomicAdd(&i[0], t); atomicSub(&i[1], 1); atomicMax(&i[2], t); atomicMin(&i[3], -t);
    atomicOr(&i[4], 1 << (t % 8)); atomicXor(&i[5], 1); atomicAnd(&i[6], ~(1 << (t % 4)));
    atomicAdd(&f[0], 0.5f); atomicExch(&f[1], 7.0f);
    atomicInc(&u[0], 9); atomicDec(&u[1], 9); atomicCAS(&u[2], 0, t + 1);
}
struct State { float m, l; };
__device__ State next(State s) { return {s.m + 1, s.l * 2}; }
__global__ void structs(float* x, half* h) {
    __shared__ State s[32];
    int t = threadIdx.x;
    s[t] = next(State{1.0f, 2.0f});
    h[t] = __float2half(s[t].l);
    ((float4*)x)[t] = make_float4(s[t].m, 1, 2, 3);
}
"""


@pytest.fixture(scope="module")
def m():
    return cuda.compile(MODULE)


def test_shuffles_votes_and_reductions_follow_the_guide(m):
    out = torch.zeros(64, 16, dtype=torch.int32)
    m.lanes[1, 64](out)
    for t, row in enumerate(out.tolist()):
        lane, base = t % 32, t - t % 32
        want = [base + 3, t if lane < 2 else t - 2, t if lane + 5 > 31 else t + 5, t ^ 7]
        want += [t if lane % 8 == 7 else t + 1, t - lane % 8 + 1]
        votes = sum(1 << i for i in range(32) if (base + i) % 3 == 0)
        want += [votes - 2**32 if votes >= 2**31 else votes, 1, int(base == 0)]
        match = 0xFF << (lane // 8 * 8)
        want += [sum(range(base, base + 32)), base + 31]
        want += [match - 2**32 if match >= 2**31 else match, 5, 1, 1]
        assert row[:15] == want, t
        assert row[15] <= 32


def test_a_lane_that_takes_no_part_reads_as_poison(m):
    out = torch.zeros(16)
    m.poison[1, 32](out)
    assert out.isnan().all()


def test_meeting_only_oneself_any_number_of_times_loses_nothing(m):
    out = torch.zeros(64)
    m.many[1, 64](out, 200)
    assert out.tolist() == [231.0] * 32 + [263.0] * 32


def test_every_half_and_bfloat16_rounds_as_torch_does(m):
    bits = torch.arange(2**16, dtype=torch.int32).to(torch.int16)
    exact = torch.cat([bits.view(torch.float16).float(), bits.view(torch.bfloat16).float()])
    ties = torch.nextafter(exact, torch.tensor(float("inf"))), exact * 1.0009765625
    x = torch.cat([exact, *ties, numbers(50_000) * 1e-5, numbers(50_000, seed=1) * 4e4])
    x = x[~x.isnan()].contiguous()
    n = x.numel()
    h, b = torch.zeros(n, dtype=torch.float16), torch.zeros(n, dtype=torch.bfloat16)
    back = torch.zeros(n)
    m.to_half[-(-n // 256), 256](x, h, b, back, n)
    assert torch.equal(h.view(torch.int16), x.half().view(torch.int16))
    assert torch.equal(b.view(torch.int16), x.bfloat16().view(torch.int16))
    assert torch.equal(back, x.half().float())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_arithmetic_rounds_once_after_each_step(m, dtype):
    a, b = numbers(1024).to(dtype), numbers(1024, seed=1).to(dtype)
    o = torch.zeros(1024, 4, dtype=dtype)
    kernel = m.half_sums if dtype == torch.float16 else m.bf16_sums
    kernel[8, 128](a, b, o)
    fused = (a.double() * b.double() + a.double()).float().to(dtype)
    assert torch.equal(o, torch.stack([a + b, a * b, a / b, fused], 1))
    assert not torch.equal(fused, a * b + a), "rounded after the product, too, it would differ"


def test_pairs_of_halves_move_as_one(m):
    a, o = numbers(8, 2).half(), torch.zeros(8, 2)
    m.pairs[1, 8](a, o)
    assert torch.equal(o, (a + torch.tensor([1.0, 2.0]).half()).float())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_tensor_core_products_equal_torchs(m, dtype):
    a, b, c = numbers(16, 32).to(dtype), numbers(32, 16, seed=1).to(dtype), torch.zeros(16, 16)
    kernel = m.wmma_half if dtype == torch.float16 else m.wmma_bf16
    kernel[1, 32](a, b, c)
    torch.testing.assert_close(c, 2 * (a.float() @ b.float() + 1), atol=1e-4, rtol=1e-4)


def test_tensor_core_loads_are_counted_to_the_byte(m):
    a, b, c = numbers(16, 32).half(), numbers(32, 16).half(), torch.zeros(16, 16)
    trace = m.wmma_half.trace[1, 32](a, b, c)
    assert trace.clean, trace
    assert trace.tensors["a"].read == trace.tensors["b"].read == 2 * 16 * 32
    assert trace.tensors["c"].written == 4 * 16 * 16 and trace.tensors["c"].read == 0
    calls = ("wmma::load_matrix_sync(f", "wmma::store_matrix_sync(")
    own = {i for i, text in enumerate(MODULE.split("\n"), 1) if text.strip().startswith(calls)}
    assert {li.line for li in trace.lines} <= own


def test_code_that_relies_on_a_fragments_layout_shows_its_mistake(m):
    a, c = torch.arange(256.0).half(), torch.zeros(256)
    m.relies_on_layout[1, 32](a, c)
    assert sorted(c.tolist()) == list(range(256)) and c.tolist() != list(range(256))


def test_atomics_lose_nothing(m):
    i, f, u = (torch.zeros(8, dtype=d) for d in (torch.int32, torch.float32, torch.int32))
    i[6] = 15
    m.atoms[4, 64](i, f, u)
    assert i[:7].tolist() == [4 * 2016, -256, 63, -63, 255, 0, 0]
    assert f[:2].tolist() == [128.0, 7.0]
    assert u[0] == 256 % 10 and u[1] in range(10) and 1 <= u[2] <= 64


def test_structs_that_functions_return_are_counted_when_stored(m):
    x, h = torch.zeros(32, 4), torch.zeros(32, dtype=torch.float16)
    trace = m.structs.trace[1, 32](x, h)
    assert trace.clean, trace
    assert (trace.tensors["x"].written, trace.tensors["h"].written) == (32 * 16, 32 * 2)
    assert (trace.shared.written, trace.shared.read) == (32 * 8, 32 * 8)
    assert x[0].tolist() == [2, 1, 2, 3] and (h == 4).all()


def test_lanes_that_wait_with_different_masks_are_told_and_never_hang(make):
    k = make("""
        int v = n;
        if (threadIdx.x < 8) v = __shfl_sync(0xffffffff, v, 0);
        else v = __shfl_sync(0xfffffffe, v, 9);
        x[0] = v;""")
    with pytest.raises(cuda.KernelFault, match="uses another mask") as caught:
        k[1, 32](torch.zeros(1), 1)
    assert caught.value.kind == "warp-barrier"
