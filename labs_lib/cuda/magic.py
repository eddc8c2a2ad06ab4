"""The cell magic `%%cuda`: a cell of CUDA C++ whose kernels become names of the notebook."""

from __future__ import annotations

import shlex

from labs_lib.cuda.errors import CudaError, LaunchError
from labs_lib.cuda.kernel import Module
from labs_lib.cuda.limits import check_arch


def register(shell) -> None:
    """Gives an IPython shell the magic."""
    shell.register_magic_function(_magic(shell), "cell", "cuda")


def _magic(shell):
    def cuda(line: str, cell: str) -> None:
        """Compiles the cell; each kernel is then a name: `scores[grid, block](q, k, s, n)`.

        `%%cuda --arch sm_90` chooses whose limits hold; `%%cuda name` also keeps the module.
        """
        arch, name = _options(line)
        try:
            module = Module(cell, check_arch(arch), "cell.cu")
        except CudaError as problem:
            raise Quiet(problem) from None
        shell.push({n: module[n] for n in module if module.signatures[n].ready})
        if name:
            shell.push({name: module})

    return cuda


def _options(line: str) -> tuple[str | None, str | None]:
    words = shlex.split(line)
    arch = None
    if "--arch" in words:
        at = words.index("--arch")
        if at + 1 >= len(words):
            raise Quiet(LaunchError("%%cuda --arch needs a name, as in --arch sm_90"))
        arch = words[at + 1]
        del words[at : at + 2]
    return arch, words[0] if words else None


class Quiet(Exception):
    """An error that shows its message alone; the cell still counts as failed."""

    def __init__(self, problem: CudaError):
        super().__init__(str(problem))
        self.problem = problem

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self.problem).__name__}: {self.problem}"]
