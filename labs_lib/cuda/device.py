"""The same kernels on a GPU: nvcc for its very architecture, torch's stream and device."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch

from labs_lib.cuda import arguments, build
from labs_lib.cuda.errors import LaunchError


def arch_of(where: torch.device) -> str:
    """The architecture of a device, as nvcc names it."""
    major, minor = torch.cuda.get_device_capability(where)
    return f"sm_{major}{minor}"


def launch(kernel, args, grid, block, shared: int, where: torch.device, arch: str) -> None:
    """Launches on the current stream of the tensors' device.

    Raises: LaunchError with CUDA's own words when the launch fails.
    """
    library = build.device_library(kernel.source, kernel.together, arch, kernel.module.filename)
    function = load(library, build.entry_name(kernel.signature))
    index = where.index if where.index is not None else torch.cuda.current_device()
    stream = torch.cuda.current_stream(where).cuda_stream
    call(function, kernel.signature, args, grid, block, shared, stream, index)


@cache
def load(library: Path, entry: str):
    """A launcher of a library, ready to be called."""
    function = getattr(ctypes.CDLL(str(library)), entry)
    function.restype = ctypes.c_char_p
    return function


def call(function, signature, args, grid, block, shared: int, stream: int, index: int) -> None:
    """Calls a launcher and raises what it says."""
    values = [
        ctypes.c_uint64(a.data_ptr() if p.pointer else arguments.scalar_bits(p, a))
        for p, a in zip(signature.parameters, args, strict=True)
    ]
    pointers = (ctypes.c_void_p * max(1, len(values)))(
        *(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values)
    )
    sizes = (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block)
    problem = function(
        pointers, *sizes, ctypes.c_size_t(shared), ctypes.c_void_p(stream), ctypes.c_int(index)
    )
    if problem:
        raise LaunchError(f"{signature.name} was not launched: {problem.decode()}")
