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


STAND_IN = r"""
#include <cstring>
static bool good, wrong;
extern "C" {
int nvrtcCreateProgram(void** p, const char* text, const char*, int, const char**, const char**) {
    wrong = std::strstr(text, "half_tile");
    *p = &good;
    return 0;
}
int nvrtcCompileProgram(void* p, int n, const char** options) {
    good = p == &good && !std::strcmp(options[0], "-arch=sm_90") && n >= 4;
    return good && !wrong ? 0 : 6;
}
static const char* log = "cell.cu(11): error: identifier \"half_tile\" is undefined";
int nvrtcGetProgramLogSize(void*, size_t* n) { return *n = std::strlen(log) + 1, 0; }
int nvrtcGetProgramLog(void*, char* to) { return std::strcpy(to, log), 0; }
int nvrtcGetCUBINSize(void*, size_t* n) { return *n = 5, 0; }
int nvrtcGetCUBIN(void*, char* to) { return std::memcpy(to, "\x7f" "ELF\0", 5), 0; }
int nvrtcDestroyProgram(void** p) { return *p = nullptr, 0; }
}"""


@pytest.fixture
def runtime_compiler(monkeypatch, tmp_path):
    """NVIDIA's runtime compiler where it is installed; else a stand-in that is called like it."""
    nvrtc._load.cache_clear()
    if nvrtc.library() is None:
        (tmp_path / "stand_in.cpp").write_text(STAND_IN, encoding="utf-8")
        made = tmp_path / "libnvrtc.so.0"
        command = [compilers.need_host_compiler(), "-shared", "-fPIC", "stand_in.cpp", "-o", made]
        subprocess.run(command, cwd=tmp_path, check=True)
        monkeypatch.setattr(nvrtc, "library", lambda: made)
    yield nvrtc
    nvrtc._load.cache_clear()


def test_the_runtime_compiler_makes_machine_code_and_names_the_line_of_an_error(runtime_compiler):
    source = ladder.source("scores_tiled")
    assert runtime_compiler.cubin(source, "sm_90")[:4] == b"\x7fELF"
    with pytest.raises(CompileError, match=r"line 11: .*half_tile") as caught:
        runtime_compiler.cubin(source.replace("float k_tile", "half_tile k_tile"), "sm_90")
    assert caught.value.line == 11


def test_without_the_runtime_compiler_its_package_is_named(monkeypatch):
    monkeypatch.setattr(nvrtc, "library", lambda: None)
    nvrtc._load.cache_clear()
    with pytest.raises(BuildError, match="pip install nvidia-cuda-nvrtc"):
        nvrtc.cubin(ladder.source("scores_tiled"), "sm_90")


def test_five_generations_of_gpus_are_compiled_for():
    assert ARCHS == ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100")
    assert all(set(rung.archs) <= set(ARCHS) and rung.archs for rung in RUNGS)
