"""The cell magic `%%cuda`: a cell of CUDA C++ whose kernels become names of the notebook."""

from __future__ import annotations

import builtins
import contextlib
import shlex
from collections.abc import Iterable

from labs_lib.cuda import build
from labs_lib.cuda.errors import BuildError, CompileError, CudaError, LaunchError
from labs_lib.cuda.kernel import Kernel, Module
from labs_lib.cuda.limits import check_arch
from labs_lib.cuda.machine import available
from labs_lib.cuda.tokens import tokenize

REMARK = "not counted: "
failed: set[str] = set()  # words of the cells that were refused last: no kernel stands for them


def register(shell) -> None:
    """Gives an IPython shell the magic."""
    shell.register_magic_function(_magic(shell), "cell", "cuda")


def _magic(shell):
    def cuda(line: str, cell: str) -> None:
        """Compiles the cell; each kernel is then a name: `scores[grid, block](q, k, s, n)`.

        `%%cuda --arch sm_90` chooses whose limits hold; `%%cuda --only scores` keeps that kernel
        alone; `--traced` builds for traces first; `%%cuda name` also keeps the module.
        """
        words = shlex.split(line)
        traced = "--traced" in words
        arch, only, name = _options([word for word in words if word != "--traced"])
        words_of_cell = _forget(shell, cell)
        failed.update(words_of_cell)
        try:
            module = _module(cell, check_arch(arch), traced)
            ready = [n for n in module if module.signatures[n].ready and only in (None, n)]
            if only and not ready:
                raise _not_there(only, module)
            _refuse_taken(shell, ready)
        except CudaError as problem:
            raise quiet(problem) from None
        failed.difference_update(words_of_cell)
        shell.push({n: module[n] for n in ready})
        if traced:
            _print_remarks(module, ready)
        if name:
            shell.push({name: module})

    return cuda


def _not_there(name: str, module: Module) -> CompileError:
    """The error for `--only` with a kernel that the cell lacks, or that is a template."""
    if name in module:
        return CompileError(
            f"{name} is a template, so it is no name by itself; keep the module by a name of its "
            f'own, as in `%%cuda kernels`, and choose kernels["{name}<...>"]'
        )
    return CompileError(
        f"there is no kernel called {name} in the cell; there are: {', '.join(module)}"
    )


def _print_remarks(module: Module, ready: Iterable[str]) -> None:
    """Tells what a trace will not count; whoever reads the cell's output may want to know."""
    with contextlib.suppress(BuildError):  # it has been told, and a launch tells it again
        found = {line for n in ready for line in build.remarks(module[n].library(True))}
        print("".join(f"{REMARK}{line}\n" for line in sorted(found)), end="")


def _module(cell: str, arch: str, traced: bool) -> Module:
    """The cell's module. Without a compiler its kernels are names all the same, so that a notebook
    goes on: what is missing is said here, and again by a launch."""
    try:
        return Module(cell, arch, "cell.cu", traced=traced)
    except BuildError as problem:
        if available().host:
            raise
        print(problem)
        return Module(cell, arch, "cell.cu", built=False)


def _forget(shell, cell: str) -> set[str]:
    """Unbinds the kernels that a cell speaks of, and returns its words: where it fails, no older
    kernel may stand for it."""
    words = {token.text for token in tokenize(cell) if token.kind == "word"}
    for word in words:
        if isinstance(shell.user_ns.get(word), Kernel):
            del shell.user_ns[word]
    return words


def _refuse_taken(shell, names: Iterable[str]) -> None:
    """Raises LaunchError where a kernel would hide a function of Python or of the notebook."""
    for name in names:
        held = shell.user_ns.get(name, getattr(builtins, name, None))
        if callable(held) and not isinstance(held, Kernel):
            raise LaunchError(
                f"{name} is the name of a function here, which a kernel would hide; "
                "give the kernel another name"
            )


def _options(words: list[str]) -> tuple[str | None, str | None, str | None]:
    found: dict[str, str] = {}
    for option, example in (("--arch", "sm_90"), ("--only", "scores")):
        if option in words:
            at = words.index(option)
            if at + 1 >= len(words):
                raise quiet(LaunchError(f"%%cuda {option} needs a name, as in {option} {example}"))
            found[option] = words[at + 1]
            del words[at : at + 2]
    if any(not word.isidentifier() for word in words) or len(words) > 1:
        raise quiet(
            LaunchError(
                f"%%cuda takes --arch, --only, --traced and one name for the module, not "
                f"{' '.join(words)}"
            )
        )
    return found.get("--arch"), found.get("--only"), words[0] if words else None


class Quiet(Exception):
    """An error that shows its message alone; the cell still counts as failed."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def quiet(problem: CudaError) -> Quiet:
    """The problem as an error of its own name that brings no traceback."""
    return type(type(problem).__name__, (Quiet,), {})(str(problem))
