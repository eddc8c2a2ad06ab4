"""The same CUDA source runs without a GPU, and computes what it says."""

from __future__ import annotations

import os
import subprocess
import time

import numpy as np
import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import build, child, compilers

TILED = """
#define TILE 16
__global__ void matmul(const float* a, const float* b, float* c, int n) {
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int t = 0; t < (n + TILE - 1) / TILE; ++t) {
        int i = t * TILE + threadIdx.x, j = t * TILE + threadIdx.y;
        ta[threadIdx.y][threadIdx.x] = row < n && i < n ? a[row * n + i] : 0.0f;
        tb[threadIdx.y][threadIdx.x] = col < n && j < n ? b[j * n + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}
"""


def values(*shape, seed=0):
    """Numbers in [-1, 1], the same on every machine."""
    made = np.random.Generator(np.random.PCG64(seed)).random(shape) * 2 - 1
    return torch.from_numpy(made).float()


@pytest.mark.parametrize("n", [1, 15, 16, 33, 100])
def test_a_tiled_product_with_barriers_equals_torchs(n):
    k = cuda.compile(TILED)
    a, b, c = values(n, n), values(n, n, seed=1), torch.full((n, n), float("nan"))
    tiles = -(-n // 16)
    k[(tiles, tiles), (16, 16)](a, b, c, n)
    torch.testing.assert_close(c, a @ b, atol=1e-5, rtol=1e-5)


def test_every_index_of_three_dimensions_is_given_once():
    k = cuda.compile("""
    __global__ void k(int* seen) {
        int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
        int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        atomicAdd(&seen[block * blockDim.x * blockDim.y * blockDim.z + thread], 1);
    }""")
    seen = torch.zeros(2 * 3 * 4 * 5 * 2 * 3, dtype=torch.int32)
    k[(2, 3, 4), (5, 2, 3)](seen)
    assert (seen == 1).all()


def test_dynamic_shared_memory_reverses_a_block(make):
    k = make("""
        extern __shared__ float s[];
        s[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = s[n - 1 - threadIdx.x];""")
    x = values(64)
    want = x.flip(0)
    k[1, 64, 64 * 4](x, 64)
    assert torch.equal(x, want)


def test_dynamic_shared_memory_may_be_declared_outside(make):
    k = make("buffer[threadIdx.x] = 2.0f; __syncthreads(); x[threadIdx.x] = buffer[n - 1];",
             before="extern __shared__ float buffer[];")  # fmt: skip
    x = torch.zeros(8)
    k[1, 8, 32](x, 8)
    assert (x == 2).all()


def test_templates_and_device_functions_run():
    m = cuda.compile("""
    template <typename T> __device__ T twice(T v) { return v + v; }
    template <int N, typename T> __global__ void fill(T* x) {
        __shared__ T s[N];
        s[threadIdx.x] = twice<T>(N + threadIdx.x);
        __syncthreads();
        x[threadIdx.x] = s[N - 1 - threadIdx.x];
    }""")
    for n, dtype, name in [(8, torch.float32, "float"), (16, torch.int32, "int")]:
        x = torch.zeros(n, dtype=dtype)
        m[f"fill<{n}, {name}>"][1, n](x)
        assert x.tolist() == [2 * (n + n - 1 - i) for i in range(n)]
    with pytest.raises(cuda.CompileError, match="N is not given"):
        m["fill"]


def test_several_kernels_make_a_module():
    m = cuda.compile("""
    __global__ void one(float* x) { x[threadIdx.x] = 1; }
    __global__ void two(float* x) { x[threadIdx.x] = 2; }""")
    x = torch.zeros(4)
    m.one[1, 4](x)
    assert (x == 1).all()
    m["two"][1, 4](x)
    assert (x == 2).all()
    assert list(m) == ["one", "two"]
    with pytest.raises(KeyError, match="one, two"):
        m["three"]


def test_vectors_of_four_floats_move_whole():
    k = cuda.compile("""
    __global__ void k(const float4* a, float4* b) {
        float4 v = a[threadIdx.x];
        b[threadIdx.x] = make_float4(v.w, v.z, v.y, v.x);
    }""")
    a, b = values(8, 4), torch.zeros(8, 4)
    k[1, 8](a, b)
    assert torch.equal(b, a.flip(1))


def test_masks_of_minus_infinity_stay_what_they_are(make):
    k = make("x[threadIdx.x] = isinf(x[threadIdx.x]) ? expf(x[threadIdx.x] - 3.0f) : -1.0f;")
    x = torch.tensor([float("-inf"), 1.0])
    k[1, 2](x, 2)
    assert x.tolist() == [0.0, -1.0]


def test_a_compensated_sum_keeps_its_order_when_written_with_rn(make):
    """Plain sums may be reordered, as a vectorised dot product must; `__fadd_rn` may not."""
    k = make("""
        float sum = 0, lost = 0;
        for (int i = 0; i < n; ++i) {
            float y = __fsub_rn(x[i], lost), t = __fadd_rn(sum, y);
            lost = __fsub_rn(__fsub_rn(t, sum), y);
            sum = t;
        }
        x[0] = sum;""")
    x = torch.full((10001,), 1e-4)
    x[0] = 1e4
    want = x.double().sum().float()
    k[1, 1](x, 10001)
    assert x[0] == want and want > 1e4 + 0.9


def test_what_a_kernel_prints_is_seen(make, capsys):
    make('if (threadIdx.x == 3) printf("n is %d\\n", n);')[1, 8](torch.zeros(1), 7)
    assert capsys.readouterr().out == "n is 7\n"


def test_tensors_that_share_memory_share_it_in_the_kernel():
    k = cuda.compile("""
    __global__ void k(const float* x, float* y) { y[0] = 5; y[1] = x[0]; }""")
    x = torch.zeros(4)
    k[1, 1](x, x[:2])
    assert x.tolist() == [5, 5, 0, 0]


def test_machines_without_a_switch_of_ours_use_the_systems(tmp_path, monkeypatch):
    """The fallback of processors other than x86-64 and arm64, built here on purpose."""
    program = tmp_path / "runner"
    source = compilers.HOST / "runner" / "runner.cpp"
    flags = [f if f != "-O2" else "-O0" for f in compilers.RUNNER]
    command = [compilers.host_compiler(), *flags, "-DLABS_UCONTEXT", str(source), "-ldl"]
    subprocess.run([*command, "-o", str(program)], check=True)
    monkeypatch.setattr(build, "runner", lambda: program)
    assert child.build.runner() == program
    a, b, c = values(33, 33), values(33, 33, seed=1), torch.zeros(33, 33)
    cuda.compile(TILED)[(3, 3), (16, 16)](a, b, c, 33)
    torch.testing.assert_close(c, a @ b, atol=1e-5, rtol=1e-5)


def test_an_empty_launch_does_nothing(make):
    k = make("x[0] = 1;")
    x = torch.zeros(1)
    k[0, 32](x, 1)
    k[(3, 0), 32](x, 1)
    assert x.item() == 0
    assert k.trace[0, 32](x, 1).clean
    k[1, 1](torch.zeros(1), 0)
    make("if (n) x[0] = 1;")[1, 32](torch.zeros(0), 0)


def test_an_edited_kernel_runs_within_a_second_of_processor_time(make):
    import resource

    build.runner()
    x = torch.zeros(4)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    make(f"x[threadIdx.x] = {time.time_ns() % 10**6};")[1, 4](x, 4)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert 0.02 < spent < 1


def test_an_unchanged_cell_is_a_cache_hit_and_silent(capfd, monkeypatch):
    cuda.compile(TILED)
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: pytest.fail("a compiler was called"))
    cuda.compile(TILED)
    assert capfd.readouterr() == ("", "")


def test_fences_run_in_the_fast_mode_too(make):
    x = torch.zeros(64)
    make("x[threadIdx.x] = 1; __threadfence(); __threadfence_block();")[1, 64](x, 64)
    assert (x == 1).all()


def test_a_launch_is_over_when_its_process_is_and_nobody_sleeps_meanwhile(make, monkeypatch):
    k, x = make("x[threadIdx.x] = 3;"), torch.zeros(64)
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits by polling"))
    k[1, 64](x, 64)
    assert (x == 3).all()


def test_a_fork_that_holds_the_pipe_open_does_not_hold_up_a_launch(make, monkeypatch):
    """Another thread may fork between the making of the pipe and its closing."""
    k, x = make("x[threadIdx.x] = 3;"), torch.zeros(64)
    k[1, 64](x, 64)
    real, holders = os.pipe, []

    def pipe():
        monkeypatch.setattr(os, "pipe", real)  # Popen makes pipes of its own
        ours, its = real()
        holders.append(subprocess.Popen(["sleep", "60"], pass_fds=(its,)))
        return ours, its

    monkeypatch.setattr(os, "pipe", pipe)
    start = time.monotonic()
    try:
        k[1, 64](x.zero_(), 64)
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
    assert holders and (x == 3).all() and time.monotonic() - start < 20
