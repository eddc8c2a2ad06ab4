"""Compile, launch and trace: the part of the room that a student touches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from operator import index
from pathlib import Path

import torch

from labs_lib.cuda import arguments, build, child, device, limits, reading
from labs_lib.cuda.errors import CompileError
from labs_lib.cuda.source import Signature, find_kernels, instantiate
from labs_lib.cuda.trace import Trace, make_trace
from labs_lib.cuda.watch import most_events, places_in, watched_blocks

Three = tuple[int, int, int]


def compile(source: str, *, arch: str | None = None, name: str = "cell.cu") -> Kernel | Module:
    """Compiles CUDA C++ and returns its kernel, or a module when there are several.

    `arch` (`"sm_90"`) sets the limits that a launch is held to; on a GPU its own are used.
    An unchanged source is found in the cache. Raises: CompileError with the cell's own line,
    BuildError without a compiler.
    """
    module = Module(source, limits.check_arch(arch), name)
    return module.only if module.only is not None else module


class Module:
    """The kernels of one source: `m.name`, `m["name"]`, `m["name<64>"]` for a template."""

    def __init__(
        self, source: str, arch: str, filename: str, *, traced: bool = False, built: bool = True
    ):
        """`traced` builds the library of the traced mode in place of the fast one; without `built`
        nothing is built before the first launch."""
        self.source, self.arch, self.filename = source, arch, filename
        reading.refuse(source)
        self.signatures = find_kernels(source)
        ready = [s for s in self.signatures.values() if s.ready]
        self._kernels = {s.name: Kernel(self, s, ready) for s in ready}
        if built:
            build.host_library(source, ready, trace=traced, filename=filename)

    @property
    def only(self) -> Kernel | None:
        """The kernel, when there is no other."""
        return next(iter(self._kernels.values())) if len(self) == len(self._kernels) == 1 else None

    def __getitem__(self, name: str) -> Kernel:
        name = name.strip()
        if name not in self._kernels:
            self._kernels[name] = self._instance(name)
        return self._kernels[name]

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except (KeyError, CompileError) as problem:
            raise AttributeError(str(problem.args[0])) from None

    def __iter__(self):
        return iter(self.signatures)

    def __len__(self) -> int:
        return len(self.signatures)

    def __dir__(self):
        return [*super().__dir__(), *self.signatures]

    def __repr__(self) -> str:
        return "\n".join(str(s) for s in self.signatures.values())

    def _instance(self, name: str) -> Kernel:
        match = re.fullmatch(r"(\w+)\s*(?:<(.*)>)?", name, re.DOTALL)
        if not match or match[1] not in self.signatures:
            raise KeyError(f"no kernel {name!r} here; there are: {', '.join(self.signatures)}")
        given = [a.strip() for a in match[2].split(",")] if match[2] else []
        signature = instantiate(self.signatures[match[1]], given)
        build.host_library(self.source, [signature], filename=self.filename)
        return Kernel(self, signature, [signature])


class Kernel:
    """One kernel: `k[grid, block](q, k, v, n)`, `k[grid, block, shared_bytes](...)`, `k.trace`."""

    def __init__(self, module: Module, signature: Signature, together: list[Signature]):
        self.module, self.signature, self.together = module, signature, together
        self._libraries: dict[bool, Path] = {}

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.signature.name

    @property
    def source(self) -> str:
        """The CUDA C++ that it was compiled from."""
        return self.module.source

    @cached_property
    def trace(self) -> Tracer:
        """`k.trace[grid, block](...)` runs slowly, watches every access, and returns a Trace."""
        return Tracer(self)

    def __getitem__(self, geometry) -> Launcher:
        return Launcher(self, *_geometry(geometry))

    def __call__(self, *args):
        raise TypeError(f"say how many threads: {self.name}[grid, block](...)")

    def __repr__(self) -> str:
        return str(self.signature)

    def library(self, trace: bool) -> Path:
        """The compiled library for the CPU."""
        known = self._libraries.get(trace)
        if known is None or not known.exists():
            known = self._libraries[trace] = build.host_library(
                self.source, self.together, trace=trace, filename=self.module.filename
            )
        return known


class Tracer:
    """What `k.trace` is: wants a grid and a block."""

    def __init__(self, kernel: Kernel, blocks=((0, 0, 0),), most: int | None = None):
        self.kernel, self.blocks, self.most = kernel, blocks, most

    @property
    def totals(self) -> Tracer:
        """`k.trace.totals[grid, block](...)` counts and finds as much, in less time.

        It logs no single accesses and draws no tensors: `log` and `tiles` stay empty.
        """
        return Tracer(self.kernel, ())

    def steps(self, block=(0, 0, 0), most: int | None = None) -> Tracer:
        """Logs the accesses of another block, or of a list of up to 8 blocks.

        `k.trace.steps(block=(1, 0, 0))[grid, block](...)`; `most` accesses of each block are kept,
        at most 65,536 in all (20,000 unless it is said).
        """
        return Tracer(self.kernel, watched_blocks(block), most)

    def __getitem__(self, geometry) -> TracedLauncher:
        grid, block, shared = _geometry(geometry)
        watched = places_in(grid, self.blocks)
        most = most_events(self.most, len(watched))
        return TracedLauncher(self.kernel, grid, block, shared, watched, most)

    def __call__(self, *args):
        raise TypeError(f"say how many threads: {self.kernel.name}.trace[grid, block](...)")


@dataclass(frozen=True)
class _Ready:
    """A kernel with its geometry."""

    kernel: Kernel
    grid: Three
    block: Three
    shared: int

    def _checked(self, args: tuple) -> tuple[torch.device, str]:
        """Where the arguments lie, and the architecture whose limits the launch keeps to."""
        where = arguments.check(self.kernel.signature, args)
        arch = device.arch_of(where) if where.type == "cuda" else self.kernel.module.arch
        limits.check_launch(self.grid, self.block, self.shared, arch)
        return where, arch


class Launcher(_Ready):
    """A kernel with its geometry; calling it launches."""

    def __call__(self, *args) -> None:
        """Runs the kernel on tensors and numbers; writes into the tensors.

        Raises: LaunchError for arguments or a geometry that don't fit (nothing has run);
        KernelFault when the kernel was stopped (the tensors are unchanged).
        """
        where, arch = self._checked(args)
        kernel, grid, block, shared = self.kernel, self.grid, self.block, self.shared
        if 0 in grid:
            return
        if where.type == "cuda":
            device.launch(kernel, args, grid, block, shared, where, arch)
            return
        library, signature = kernel.library(False), kernel.signature
        child.run(
            library, signature, args, grid, block, shared, arch, source=kernel.source, trace=False
        )


@dataclass(frozen=True)
class TracedLauncher(_Ready):
    """A kernel with its geometry and the blocks to log; calling it launches and tells."""

    watched: list[int]
    most: int

    def __call__(self, *args) -> Trace:
        """Runs the kernel and returns what it did; raises LaunchError as a launch does."""
        _, arch = self._checked(args)
        return make_trace(self, args, arch)


def _geometry(value) -> tuple[Three, Three, int]:
    if not isinstance(value, tuple) or len(value) not in (2, 3):
        raise TypeError("a launch needs [grid, block] or [grid, block, bytes of shared memory]")
    shared = value[2] if len(value) == 3 else 0
    try:
        shared = index(shared)
    except TypeError:
        raise TypeError(f"bytes of shared memory must be a whole number, not {shared!r}") from None
    return limits.triple(value[0], "grid"), limits.triple(value[1], "block"), shared
