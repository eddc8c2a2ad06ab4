"""NVIDIA's runtime compiler, a Python package: proves without GPU and toolkit that text is CUDA.

pip install nvidia-cuda-nvrtc    (headers such as mma.h come with a toolkit, or with the packages
                                  nvidia-cuda-runtime and nvidia-cuda-cccl)
"""

from __future__ import annotations

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

from labs_lib.cuda import compilers
from labs_lib.cuda.diagnose import explain
from labs_lib.cuda.errors import BuildError

# nvcc brings these by itself, the runtime compiler doesn't.
_MACROS = ("-DINFINITY=__int_as_float(0x7f800000)", "-DNAN=__int_as_float(0x7fffffff)")


def library() -> Path | None:
    """The shared library of the newest package here, None where there is none."""
    found = [path for root in _packages() for path in root.glob("*/lib/libnvrtc.so.*")]
    return max(found, key=lambda path: path.name, default=None)  # folders don't sort by version


def cubin(source: str, arch: str, name: str = "cell.cu") -> bytes:
    """Machine code for one architecture (`sm_90`).

    Raises: CompileError with the source's own line; BuildError without the package.
    """
    nvrtc = _load()
    program = ctypes.c_void_p()
    text, label = source.encode(), name.encode()
    _ask(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, label, 0, None, None))
    try:
        options = [f"-arch={arch}", "-std=c++17", *_MACROS, *(f"-I{p}" for p in _includes())]
        given = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        if nvrtc.nvrtcCompileProgram(program, len(options), given):
            log = _text(nvrtc, program, "ProgramLog").decode("utf-8", "replace")
            raise explain(log, source, source, name)
        return _text(nvrtc, program, "CUBIN")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _packages() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    return [Path(p) for p in spec.submodule_search_locations or []] if spec else []


def _includes() -> list[Path]:
    nvcc = compilers.nvcc()
    roots = [Path(nvcc).resolve().parents[1]] if nvcc else []
    roots += [*Path("/usr/local").glob("cuda*")]
    folders = [root / "include" for root in roots]
    folders += [path for root in _packages() for path in root.glob("*/include")]
    return [folder for folder in folders if (folder / "cuda_fp16.h").exists()][:1]


@cache
def _load() -> ctypes.CDLL:
    path = library()
    if path is None:
        raise BuildError(
            "NVIDIA's runtime compiler is not installed; `pip install nvidia-cuda-nvrtc` brings it."
        )
    return ctypes.CDLL(str(path))


def _ask(code: int) -> None:
    if code:
        raise BuildError(f"NVIDIA's runtime compiler failed (its error {code}).")


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _ask(getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    held = ctypes.create_string_buffer(size.value)
    _ask(getattr(nvrtc, f"nvrtcGet{what}")(program, held))
    return held.raw if what == "CUBIN" else held.value
