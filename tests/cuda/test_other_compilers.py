"""clang++ and arm64: the same results, counts and findings as g++ on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from labs_lib import cuda
from labs_lib.bench import emulator
from labs_lib.cuda import build, compilers

HERE = Path(__file__).parent
ARM, QEMU = "aarch64-linux-gnu-g++", "qemu-aarch64"
RACY = """
__global__ void k(float* x, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    x[blockIdx.x * 64 + t] = s[63 - t];
    __syncthreads();
    float sum = __shfl_xor_sync(0xffffffff, x[blockIdx.x * 64 + t], 1);
    if (__syncthreads_count(t % 3 == 0) == 22) x[blockIdx.x * 64 + t] += sum;
    x[0] += 1;
}
"""
pytestmark = pytest.mark.slow


@pytest.mark.skipif(shutil.which("clang++") is None, reason="clang++ is not installed")
@pytest.mark.parametrize(
    ("file", "which"),
    [("test_counts.py", ""), ("test_races.py", "no_alarm"), ("test_warps.py", "")],
)
def test_counts_races_and_warps_hold_with_clang_too(file, which):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / file)]
    command += ["-k", which]
    environment = os.environ | {"CXX": "clang++"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.fixture
def arm(monkeypatch, tmp_path):
    """Kernels are compiled for arm64, and run in qemu's user mode."""
    monkeypatch.setattr(compilers, "host_compiler", lambda: shutil.which(ARM))
    monkeypatch.setattr(compilers, "_native", lambda: [])
    program = build.runner()
    script = tmp_path / "runner"
    script.write_text(
        f'#!/bin/sh\nexec {QEMU} -L /usr/aarch64-linux-gnu "{program}" "$@"\n', encoding="utf-8"
    )
    script.chmod(0o755)
    monkeypatch.setattr(build, "runner", lambda: script)


def seen(source, geometry, arguments):
    """What a kernel leaves, in the fast mode and traced, and what the trace counts and finds."""
    k = cuda.compile(source)
    results = []
    for launch in (k[geometry], k.trace[geometry]):
        given = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
        trace = launch(*given)
        results.append([a for a in given if isinstance(a, torch.Tensor)])
    counts = {"tensors": trace.tensors, "lines": trace.lines, "barriers": trace.barriers}
    return results, counts, trace.findings


@pytest.mark.skipif(not (shutil.which(ARM) and shutil.which(QEMU)), reason=f"{ARM} or {QEMU} lack")
def test_arm64_gives_the_same_results_counts_and_races(request):
    problem = emulator.product()
    cases = [
        (problem.source, problem.geometry, problem.arguments),
        (RACY, (3, 64), (torch.arange(192.0), 192)),
    ]
    native = [seen(*case) for case in cases]
    request.getfixturevalue("arm")
    foreign = [seen(*case) for case in cases]
    for here, there in zip(native, foreign, strict=True):
        assert here[1:] == there[1:], "counts and findings"
        torch.testing.assert_close(here[0][1], there[0][1], equal_nan=True)
    torch.testing.assert_close(native[0][0], foreign[0][0])  # a race may end in two ways
    assert {f.kind for f in native[1][2]} == {
        *("race", "cross-block", "uninitialised", "block-order")
    }
