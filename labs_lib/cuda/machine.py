"""What this machine can do with kernels."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from labs_lib.cuda import compilers


@dataclass(frozen=True)
class Available:
    """Where kernels run here; it is true when they run anywhere.

    `host` is the C++ compiler for the CPU, `gpu` the first GPU's name, `nvcc` CUDA's compiler;
    each is None where it is missing.
    """

    host: str | None
    gpu: str | None
    nvcc: str | None

    def __bool__(self) -> bool:
        return bool(self.host or (self.gpu and self.nvcc))

    def __str__(self) -> str:
        on = []
        if self.gpu and self.nvcc:
            on.append(f"on {self.gpu}")
        if self.host:
            on.append("on the CPU")
        if not on:
            return "Kernels don't run here: there is no C++ compiler."
        return "Kernels run " + " and ".join(on) + "."


def available() -> Available:
    """Where kernels can be compiled and run on this machine."""
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
    return Available(compilers.host_compiler(), gpu, compilers.nvcc())
