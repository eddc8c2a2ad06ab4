"""Each bundled kernel is real CUDA: NVIDIA's compiler makes machine code of it for five GPUs."""

from __future__ import annotations

import subprocess

import pytest

from labs_lib.cuda import compilers
from labs_lib.cuda.ladder import ARCHS, FOLDER, RUNGS

FILES = {rung.file or f"{rung.name}.cu": rung.archs for rung in RUNGS}


@pytest.mark.slow
@pytest.mark.skipif(compilers.nvcc() is None, reason="nvcc is not installed here")
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.cu")))
def test_nvcc_compiles_each_kernel_for_each_gpu_that_it_supports(name, tmp_path):
    """No warning, no registers spilled to memory, and no more static shared memory than 48 KiB."""
    targets = [f"-gencode=arch=compute_{a[3:]},code={a}" for a in FILES[name]]
    command = [compilers.nvcc(), "-std=c++17", "-O3", *targets, "-fatbin", "-Xptxas", "-v"]
    command += ["--threads", "2", str(FOLDER / name), "-o", str(tmp_path / "kernel.fatbin")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "warning" not in told, told
    spills = [line for line in told.splitlines() if "spill stores" in line]
    assert spills and all("0 bytes spill stores, 0 bytes spill loads" in s for s in spills), told
    assert (tmp_path / "kernel.fatbin").stat().st_size > 0


def test_five_generations_of_gpus_are_compiled_for():
    assert ARCHS == ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100")
    assert all(set(rung.archs) <= set(ARCHS) and rung.archs for rung in RUNGS)
