"""Each bundled kernel is real CUDA: NVIDIA's compiler makes machine code of it for five GPUs."""

from __future__ import annotations

import subprocess

import pytest

from labs_lib.cuda import compilers, ladder, nvrtc
from labs_lib.cuda.errors import BuildError, CompileError
from labs_lib.cuda.ladder import ARCHS, FOLDER, RUNGS

FILES = {rung.file or f"{rung.name}.cu": rung.archs for rung in RUNGS}


@pytest.mark.slow
@pytest.mark.skipif(
    compilers.nvcc() is None and nvrtc.library() is None,
    reason="neither nvcc nor the package nvidia-cuda-nvrtc is installed here",
)
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.cu")))
def test_nvidias_compiler_takes_each_kernel_for_each_gpu_that_it_supports(name, tmp_path):
    if compilers.nvcc() is None:
        source = (FOLDER / name).read_text(encoding="utf-8")
        assert all(nvrtc.cubin(source, arch, name)[:4] == b"\x7fELF" for arch in FILES[name])
    else:
        compiled_by_nvcc(FOLDER / name, FILES[name], tmp_path / "kernel.fatbin")


def compiled_by_nvcc(path, archs, made):
    """No warning, and no register spilled to memory."""
    targets = [f"-gencode=arch=compute_{a[3:]},code={a}" for a in archs]
    command = [compilers.nvcc(), "-std=c++17", "-O3", *targets, "-fatbin", "-Xptxas", "-v"]
    command += ["--threads", "2", str(path), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "warning" not in told, told
    spills = [line for line in told.splitlines() if "spill stores" in line]
    assert spills and all("0 bytes spill stores, 0 bytes spill loads" in s for s in spills), told
    assert made.stat().st_size > 0


@pytest.mark.skipif(nvrtc.library() is None, reason="nvidia-cuda-nvrtc is not installed here")
def test_the_runtime_compiler_makes_machine_code_and_names_the_line_of_an_error():
    source = ladder.source("scores_tiled")
    assert nvrtc.cubin(source, "sm_90")[:4] == b"\x7fELF"
    with pytest.raises(CompileError, match=r"line 11: .*half_tile") as caught:
        nvrtc.cubin(source.replace("float k_tile", "half_tile k_tile"), "sm_90")
    assert caught.value.line == 11


def test_without_the_runtime_compiler_its_package_is_named(monkeypatch):
    monkeypatch.setattr(nvrtc, "library", lambda: None)
    nvrtc._load.cache_clear()
    with pytest.raises(BuildError, match="pip install nvidia-cuda-nvrtc"):
        nvrtc.cubin(ladder.source("scores_tiled"), "sm_90")


def test_five_generations_of_gpus_are_compiled_for():
    assert ARCHS == ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100")
    assert all(set(rung.archs) <= set(ARCHS) and rung.archs for rung in RUNGS)
