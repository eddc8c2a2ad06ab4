"""The path to a GPU, as far as it can be proved without one; what we emulate is real CUDA."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from labs_lib import cuda
from labs_lib.cuda import arguments, build, compilers, device
from labs_lib.cuda.source import find_kernels

SOURCE = """
__global__ void add(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] += a[i];
}"""
needs_nvcc = pytest.mark.skipif(compilers.nvcc() is None, reason="nvcc is not installed here")


def kernels(source):
    return [k for k in find_kernels(source).values() if k.ready]


@needs_nvcc
def test_a_launch_that_fails_says_so_in_cudas_words():
    """Compiled by nvcc and called for real: without a GPU the launch error must come back."""
    library = build.device_library(SOURCE, kernels(SOURCE), "sm_80", "cell.cu")
    (signature,) = kernels(SOURCE)
    function = device.load(library, build.entry_name(signature))
    args = (torch.zeros(4), torch.zeros(4), 4)
    if torch.cuda.is_available():
        args = (*(a.cuda() for a in args[:2]), 4)
    with pytest.raises(cuda.LaunchError, match=r"add was not launched: \w+"):
        device.call(function, signature, args, (1, 1, 1), (2000, 1, 1), 0, 0, 0)


@needs_nvcc
def test_an_error_of_nvcc_has_the_cells_own_line():
    broken = SOURCE.replace("b[i] +=", "c[i] +=")
    with pytest.raises(cuda.CompileError, match="line 4: identifier") as caught:
        build.device_library(broken, kernels(broken), "sm_80", "cell.cu")
    assert caught.value.line == 4


@needs_nvcc
def test_everything_that_we_emulate_is_real_cuda(tmp_path):
    """The module of the warp tests, unchanged, goes through nvcc's front end."""
    text = (Path(__file__).parent / "test_warps.py").read_text(encoding="utf-8")
    module = text.split('MODULE = """')[1].split('"""')[0].replace("\\n", "\n")
    (tmp_path / "module.cu").write_text(module, encoding="utf-8")
    command = [shutil.which("nvcc") or compilers.nvcc(), "-std=c++17", "-arch=sm_80", "-ptx"]
    done = subprocess.run([*command, "module.cu"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_architecture_is_part_of_the_key(monkeypatch, tmp_path):
    monkeypatch.setenv("LABS_CUDA_CACHE", str(tmp_path))
    monkeypatch.setattr(compilers, "nvcc", lambda: compilers.host_compiler())
    commands = []

    def call(command, folder=None):
        commands.append(command)
        (folder / build.LIBRARY).write_text("", encoding="utf-8")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(build, "_call", call)
    made = [build.device_library(SOURCE, kernels(SOURCE), a, "c.cu") for a in ("sm_75", "sm_90")]
    build.device_library(SOURCE, kernels(SOURCE), "sm_90", "c.cu")
    assert len(set(made)) == 2 and len(commands) == 2
    assert "arch=compute_75,code=sm_75" in commands[0]


def test_without_nvcc_tensors_on_a_gpu_are_told_the_way_out(monkeypatch):
    monkeypatch.setattr(compilers, "nvcc", lambda: None)
    with pytest.raises(cuda.BuildError, match=r"nvcc.*the same kernel runs there"):
        build.device_library(SOURCE, kernels(SOURCE), "sm_90", "c.cu")


def test_a_launch_gets_the_pointers_the_stream_and_the_device():
    seen = {}

    def function(pointers, grid, block, shared, stream, index):
        seen.update(
            values=[ctypes.cast(p, ctypes.POINTER(ctypes.c_uint64))[0] for p in pointers],
            grid=list(grid),
            block=list(block),
            rest=(shared.value, stream.value, index.value),
        )
        return None

    a, b = torch.zeros(4), torch.zeros(4)
    (signature,) = kernels(SOURCE)
    device.call(function, signature, (a, b, 7), (1, 2, 3), (4, 5, 6), 1024, 99, 1)
    assert seen["values"] == [a.data_ptr(), b.data_ptr(), 7]
    assert (seen["grid"], seen["block"]) == ([1, 2, 3], [4, 5, 6])
    assert seen["rest"] == (1024, 99, 1)


def test_tensors_on_a_gpu_take_the_gpus_path_and_its_limits(monkeypatch):
    launched = []
    monkeypatch.setattr(arguments, "check", lambda *_: torch.device("cuda", 1))
    monkeypatch.setattr(device, "arch_of", lambda where: "sm_90")
    monkeypatch.setattr(device, "launch", lambda *a: launched.append(a))
    k = cuda.compile(SOURCE)  # on the CPU its limits would be those of sm_80
    args = (torch.zeros(4), torch.zeros(4), 4)
    k[1, 4, 200 * 1024](*args)
    assert launched[0][1:] == (
        args,
        (1, 1, 1),
        (4, 1, 1),
        200 * 1024,
        torch.device("cuda", 1),
        "sm_90",
    )
    with pytest.raises(cuda.LaunchError):
        k[1, 4, 228 * 1024](*args)


def test_tensors_on_two_devices_are_refused_by_name(monkeypatch):
    real = torch.zeros(4)

    class Elsewhere(torch.Tensor):
        device = torch.device("cuda", 0)

    other = torch.zeros(4).as_subclass(Elsewhere)
    with pytest.raises(cuda.LaunchError, match="a on cpu, b on cuda:0"):
        cuda.compile(SOURCE)[1, 4](real, other, 4)


@pytest.mark.parametrize("where", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def test_the_same_kernel_runs_wherever_the_tensors_are(where):
    a, b = torch.arange(100.0, device=where), torch.ones(100, device=where)
    cuda.compile(SOURCE)[1, 128](a, b, 100)
    assert torch.equal(b, a + 1)
