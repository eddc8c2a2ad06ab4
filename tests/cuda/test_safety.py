"""Whatever a kernel does, it ends in a message, and the notebook's process lives."""

from __future__ import annotations

import os

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import child, compilers, reading

DEVICE = """
__device__ float deep(int n) {
    volatile float a[100];
    a[n % 100] = n;
    return deep(n + 1) + a[n * 7 % 100];
}"""
CASES = {
    "timeout": "for (;;) { if (n == 7) break; x[0] += 1; }",
    "out-of-bounds": "x[threadIdx.x + 1] = 1;",
    "wild-pointer": "*(volatile int*)(size_t)(n - 60) = 3;",
    "stack-overflow": "x[0] = deep(n);",
    "division-by-zero": "x[0] = n / (int)x[threadIdx.x];",
    "stopped": "assert(n != 64);",
    "barrier": "if (threadIdx.x == 3) return; __syncthreads(); x[0] = 1;",
    "warp-barrier": "if (threadIdx.x < 16) x[0] = __shfl_sync(0xffffffff, n, 1); "
    "else __syncthreads();",
    "shared-memory": "__shared__ float big[20000]; big[threadIdx.x] = 1; x[0] = big[3];",
    "mask": "x[0] = __shfl_sync(0x1, n, 1);",
    "guard": "x[-1 - (int)threadIdx.x] = 1;",
}


@pytest.mark.parametrize("traced", [False, True], ids=["fast", "traced"])
@pytest.mark.parametrize("kind", CASES)
def test_a_faulty_kernel_ends_in_a_message(make, monkeypatch, kind, traced):
    monkeypatch.setenv("LABS_CUDA_SECONDS", "0.3")
    k = make(CASES[kind], before=DEVICE.replace("\n", " "))
    x = torch.zeros(64)
    if traced:
        trace = k.trace[1, 64](x, 64)
        found = trace.findings[-1]
        assert not trace.complete and not trace.clean
    else:
        with pytest.raises(cuda.KernelFault) as caught:
            k[1, 64](x, 64)
        found = caught.value
    allowed = {kind} | (
        {"out-of-bounds"} if traced and kind in ("guard", "wild-pointer") else set()
    )
    assert found.kind in allowed
    if (kind, traced) != ("guard", False):
        assert found.block == (0, 0, 0) and found.thread is not None
    if kind in ("out-of-bounds", "barrier", "stopped", "warp-barrier", "mask") or traced:
        assert found.line in ((1, 3) if kind == "stack-overflow" else (3, None))
    # clang leaves a loop without end as a jump to itself, which has no line; g++ 14 gives the line
    # of its closing brace.
    clang = compilers.is_clang(compilers.need_host_compiler())
    assert kind != "timeout" or found.line in ((3, None) if clang else (3, 4))
    assert (x == 0).all(), "a fault must leave the caller's tensors alone"


def test_the_thread_and_block_that_went_wrong_are_named(make):
    k = make("if (blockIdx.x == 2 && threadIdx.x == 5)\n    x[n] = 1;")
    with pytest.raises(cuda.KernelFault, match=r"x\[40\], 1 past its last element") as caught:
        k[4, 8](torch.zeros(40), 40)
    assert (caught.value.thread, caught.value.block) == ((5, 0, 0), (2, 0, 0))
    assert caught.value.line == 4


def test_a_run_after_a_fault_is_as_good_as_any(make):
    x = torch.zeros(4)
    with pytest.raises(cuda.KernelFault):
        make("x[n] = 1;")[1, 1](x, 4)
    make("x[threadIdx.x] = n;")[1, 4](x, 4)
    assert (x == 4).all()


def test_a_launch_that_would_not_fit_into_memory_is_refused(make, monkeypatch):
    import psutil

    k = make("x[0] = 1;")
    room = psutil.virtual_memory()._replace(available=2**20)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: room)
    with pytest.raises(cuda.LaunchError, match="GB free; use smaller tensors"):
        k[1, 1](torch.zeros(2**20), 1)


def test_an_endless_grid_is_stopped(make, monkeypatch):
    monkeypatch.setenv("LABS_CUDA_SECONDS", "0.3")
    with pytest.raises(cuda.KernelFault) as caught:
        make("x[0] = 1;")[(2**31 - 1, 65535), 32](torch.zeros(1), 1)
    assert caught.value.kind == "timeout"


def test_a_killed_runner_is_told_and_leaves_the_tensors(make, monkeypatch):
    monkeypatch.setattr(reading, "refuse", lambda source: None)  # no kernel may ask for it
    k = make("*(volatile char*)x = 1; raise(9);", before="#include <signal.h>")
    x = torch.zeros(1)
    with pytest.raises(cuda.KernelFault) as caught:
        k[1, 1](x, 1)
    assert caught.value.kind == "killed" and x.item() == 0


def test_a_runner_that_cannot_start_leaves_no_pipe_open(make, monkeypatch):
    k = make("x[0] = 1;")
    k[1, 1](torch.zeros(1), 1)
    ends = []
    pipe = os.pipe
    monkeypatch.setattr(child.os, "pipe", lambda: ends.append(pipe()) or ends[-1])
    monkeypatch.setattr(child.subprocess, "Popen", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        k[1, 1](torch.zeros(1), 1)
    for end in ends[0]:
        with pytest.raises(OSError, match="file descriptor"):
            os.fstat(end)
