"""<labs/mma.h>: copies that arrive late, ldmatrix and mma.sync, as a GPU has them."""

from __future__ import annotations

import subprocess

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import compilers

COPIES = """
#include <labs/mma.h>
// Adds up the columns of x [n, 32]: the next row is on its way while this one is added.
__global__ void columns(const float* x, float* sums, int n) {
    __shared__ float4 rows[2][8];
    int t = threadIdx.x;
    float total = 0.0f;
    if (t < 8) ptx::copy_async<16>(&rows[0][t], x + 4 * t);
    ptx::commit_group();
    for (int i = 0; i < n; ++i) {
        int next = i + 1;
        if (next < n && t < 8) ptx::copy_async<16>(&rows[next % 2][t], x + 32 * next + 4 * t);
        ptx::commit_group();
        ptx::wait_group<1>();
        __syncthreads();
        total += ((const float*)rows[i % 2])[t];
        __syncthreads();
    }
    sums[t] = total;
}
"""
PRODUCT = """
#include <labs/mma.h>
// d [16, 8] = a [16, 16] b [16, 8]; b lies by rows.
__global__ void product(const half* a, const half* b, float* d) {
    __shared__ alignas(16) half as[16][24], bs[16][8];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 32) as[i / 16][i % 16] = a[i];
    for (int i = t; i < 128; i += 32) bs[i / 8][i % 8] = b[i];
    __syncthreads();
    unsigned fa[4], fb[2];
    float zero[4] = {0, 0, 0, 0}, out[4];
    ptx::load_matrices(fa, &as[t % 16][t / 16 * 8]);
    ptx::load_matrices_transposed(fb, &bs[t % 16][0]);
    ptx::mma_16x8x16(out, fa, fb, zero);
    for (int i = 0; i < 4; ++i) d[(t / 4 + 8 * (i / 2)) * 8 + t % 4 * 2 + i % 2] = out[i];
}
"""


def numbers(*shape):
    made = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return (torch.sin(made * 1.7) * 3).reshape(shape).float()


@pytest.fixture(scope="module")
def columns():
    return cuda.compile(COPIES)


def run(kernel, n=5):
    x, sums = numbers(n, 32), torch.full((32,), float("nan"))
    kernel[1, 32](x, sums, n)
    fast = sums.clone()
    trace = kernel.trace[1, 32](x, sums.fill_(float("nan")), n)
    return x.sum(0), fast, sums, trace


def test_a_double_buffer_of_asynchronous_copies_is_right_clean_and_counted(columns):
    wanted, fast, traced, trace = run(columns)
    torch.testing.assert_close(fast, wanted)
    torch.testing.assert_close(traced, wanted)
    assert trace.clean, trace
    assert trace.tensors["x"].read == 5 * 32 * 4 and trace.shared.written == 5 * 32 * 4
    copy = next(li for li in trace.lines if li.where == "x")
    assert copy.sectors_per_request == 4, "eight lanes, 16 bytes each"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ptx::wait_group<1>();", "", "is under way"),
        ("ptx::wait_group<1>();", "ptx::wait_group<2>();", "is under way"),
        ("ptx::wait_group<1>();\n        __syncthreads();", "ptx::wait_group<1>();", "barrier"),
        ("total += ((const float*)rows[i % 2])[t];\n        __syncthreads();",
         "total += ((const float*)rows[i % 2])[t];", "is under way"),
    ],
    ids=["no wait", "one group too few", "no barrier after the wait", "no barrier before a copy"],
)  # fmt: skip
def test_a_copy_that_is_not_waited_for_is_a_race(old, new, said):
    assert COPIES.count(old) == 1
    *_, trace = run(cuda.compile(COPIES.replace(old, new)))
    races = [f for f in trace.findings if f.kind == "race"]
    assert races and any(said in f.message for f in races), trace
    assert not trace.clean


def test_what_is_not_waited_for_has_not_arrived():
    wanted, fast, _, _ = run(cuda.compile(COPIES.replace("ptx::wait_group<1>();", "")))
    assert not torch.allclose(fast, wanted)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("ptx::copy_async<16>(&s[1], x);", "multiples of its size"),
        ("ptx::copy_async<4>(x, x + 1);", "shared memory"),
    ],
)
def test_a_copy_that_a_gpu_would_refuse_is_refused(make, call, said):
    k = make(f"__shared__ float s[8];\n{call}", before="#include <labs/mma.h>")
    with pytest.raises(cuda.KernelFault, match=said):
        k[1, 1](torch.zeros(16), 16)


def test_ldmatrix_and_mma_give_the_product_of_halves():
    a, b, d = numbers(16, 16).half(), numbers(16, 8).half(), torch.full((16, 8), float("nan"))
    k = cuda.compile(PRODUCT)
    wanted = a.double() @ b.double()
    k[1, 32](a, b, d)
    torch.testing.assert_close(d.double(), wanted, atol=1e-4, rtol=1e-5)
    trace = k.trace[1, 32](a, b, d.fill_(float("nan")))
    torch.testing.assert_close(d.double(), wanted, atol=1e-4, rtol=1e-5)
    assert trace.clean, trace
    loads = [li for li in trace.lines if li.where == "shared" and li.what == "read"]
    assert [li.wavefronts for li in loads] == [4, 2], "padded rows: one pass for each matrix"


def test_brain_floats_are_multiplied_as_such():
    source = PRODUCT.replace("half", "__nv_bfloat16").replace("16x8x16(out", "16x8x16_bf16(out")
    source = source.replace("#include", "#include <cuda_bf16.h>\n#include")
    a, b = numbers(16, 16).bfloat16(), numbers(16, 8).bfloat16()
    d = torch.zeros(16, 8)
    cuda.compile(source)[1, 32](a, b, d)
    torch.testing.assert_close(d.double(), a.double() @ b.double(), atol=1e-4, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.skipif(compilers.nvcc() is None, reason="nvcc is not installed here")
@pytest.mark.parametrize("source", [COPIES, PRODUCT], ids=["copies", "product"])
def test_nvcc_takes_the_same_source(source, tmp_path):
    (tmp_path / "cell.cu").write_text(source, encoding="utf-8")
    command = [compilers.nvcc(), "-std=c++17", "-cubin", "-arch=sm_80", *compilers.device_include()]
    done = subprocess.run(
        [*command, "cell.cu", "-o", "cell.cubin"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
