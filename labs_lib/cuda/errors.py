"""What can go wrong with a kernel, each with the words that a student reads."""

from __future__ import annotations


class CudaError(Exception):
    """A kernel could not be compiled, launched or run to its end."""


class CompileError(CudaError):
    """The source does not compile; `line` is the cell's own, `log` all that the compiler said."""

    def __init__(self, message: str, *, line: int | None = None, log: str = ""):
        super().__init__(message)
        self.line, self.log = line, log


class BuildError(CudaError):
    """There is no compiler, or nowhere to put what it makes."""


class LaunchError(CudaError):
    """The arguments or the launch geometry are refused; nothing ran."""


class KernelFault(CudaError):
    """The kernel was stopped while it ran; the notebook's tensors are as they were before.

    `kind` is one word (`timeout`, `out-of-bounds`, `barrier`, ...); `thread`, `block` and `line`
    say where, as far as that is known.
    """

    def __init__(self, message: str, *, kind: str, thread=None, block=None, line=None):
        super().__init__(message)
        self.kind, self.thread, self.block, self.line = kind, thread, block, line
