"""CUDA kernels on any machine: compile, launch and trace the same source with or without a GPU.

k = cuda.compile(source)
k[grid, block](q, k, v, o, n)             # on the CPU or the GPU, wherever the tensors are
print(k.trace[grid, block](q, k, v, o, n))  # bytes, races, bank conflicts, line by line
"""

from labs_lib.cuda.errors import BuildError, CompileError, CudaError, KernelFault, LaunchError
from labs_lib.cuda.kernel import Kernel, Module, compile
from labs_lib.cuda.machine import Available, available
from labs_lib.cuda.trace import Trace

__all__ = [
    "Available",
    "BuildError",
    "CompileError",
    "CudaError",
    "Kernel",
    "KernelFault",
    "LaunchError",
    "Module",
    "Trace",
    "available",
    "compile",
]


def load_ipython_extension(shell) -> None:
    """`%load_ext labs_lib.cuda` brings the cell magic `%%cuda`."""
    from labs_lib.cuda.magic import register

    register(shell)
