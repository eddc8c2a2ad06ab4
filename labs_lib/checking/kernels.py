"""Observe a kernel: traced launches of an exercise's cases, each in a process of its own.

What a trace finds wrong is a leaf beside the outputs, in words that are the same for every kernel
with that mistake; the trace's own sentences, with the lines of the student's cell, are details that
are shown and never compared. Where something is wrong the outputs mean nothing and are left out.
"""

from __future__ import annotations

import contextlib
import copy
import os
import re
import threading
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import torch

from ..cuda import BuildError, CompileError, CudaError, Kernel, LaunchError, Module, available
from ..cuda.limits import DEFAULT_ARCH
from ..cuda.tokens import tokenize
from ..exercises.kernels import Launch
from ..exercises.kit import Case, Exercise
from .observe import Leaf, Observation, flatten, quiet
from .syntax import Reading

FINDINGS, CLEAN = "findings", "none"
SECONDS = 3  # of processor time for one launch of a check
AT_A_TIME = 2
MOST_DETAILS = 3
_ONE_AT_A_TIME = threading.RLock()  # standard output is swallowed for the whole process
_PAIR = re.compile(r"(reads|writes) it in line .*?, (?:thread|block) \(.*?\) (reads|writes)")


class KernelRuns(Sequence[Observation]):
    """A kernel's observations on the cases of a seed, each made when it is first asked for.

    As for functions the last one repeats the first; here nothing can be kept between two launches.
    Raises BuildError where there is no compiler.
    """

    def __init__(self, exercise: Exercise, program: Any, seed: int) -> None:
        self.exercise, self.program = exercise, program
        self.cases = exercise.make_cases(seed)
        self._made: dict[int, Observation] = {}
        self._stopped: Observation | None = None
        self._locks = [threading.Lock() for _ in self.cases]

    def __len__(self) -> int:
        return len(self.cases) + 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        number = index % len(self) % len(self.cases)
        if number in self._made:
            return self._made[number]
        with _ONE_AT_A_TIME, quiet(), _LITTLE_TIME:
            return self._get(number)

    def everything(self) -> list[Observation]:
        """All observations; launches run two at a time."""
        with _ONE_AT_A_TIME, quiet(), _LITTLE_TIME, ThreadPoolExecutor(AT_A_TIME) as pool:
            first = self._get(0)  # alone: what never ends or never compiles is told at once
            made = [first, *pool.map(self._get, range(1, len(self.cases)))]
        return [*made, first]

    def _get(self, number: int) -> Observation:
        with self._locks[number]:
            if number not in self._made:
                self._made[number] = self._stopped or self._observe(self.cases[number])
            return self._made[number]

    def _observe(self, case: Case) -> Observation:
        try:
            made = observe_launch(self.exercise, kernel_of(self.exercise, self.program), case)
        except BuildError:
            raise
        except CudaError as error:
            made = self._stopped = _refused(error)
        if made.message.startswith("timeout"):
            self._stopped = made  # what never ends would use up its time in every case
        return made


def observe_launch(exercise: Exercise, kernel: Kernel, case: Case) -> Observation:
    """One traced launch on copies of the case's arguments.

    Raises LaunchError or CompileError where nothing ran.
    """
    if exercise.launch is None:
        raise ValueError(f"{exercise.name} launches nothing; its kind is {exercise.kind}")
    planned: Launch = exercise.launch(*copy.deepcopy(case.args), **copy.deepcopy(case.kwargs))
    before = [a.clone() if isinstance(a, torch.Tensor) else a for a in planned.arguments]
    launcher = kernel.trace.totals[planned.grid, planned.block, planned.shared_bytes]
    trace = launcher(*planned.arguments)
    wrong = [finding for finding in trace.findings if not finding.harmless]
    names = _own_names(exercise, kernel)
    if not trace.complete:
        fault = wrong[-1]
        message = f"{fault.kind}: {_plain(fault.message, names)}"
        return Observation(raised="KernelFault", message=message, details=_details(wrong[::-1]))
    if wrong:
        found = "; ".join(sorted({_sign(finding, names) for finding in wrong}))
        return Observation({FINDINGS: Leaf("text", found)}, details=_details(wrong))
    leaves = {FINDINGS: Leaf("text", CLEAN)}
    leaves |= flatten({name: planned.arguments[i] for name, i in planned.outputs.items()})
    return Observation(
        {path.strip("[]'"): leaf for path, leaf in leaves.items()},
        changed=_changed(exercise, planned, before),
    )


def kernel_of(exercise: Exercise, program: Any) -> Kernel:
    """The kernel that an answer stands for: it may be one, a module, or CUDA source text.

    Of several kernels the one called as the exercise counts. Raises CompileError, BuildError.
    """
    module = _compiled(program) if isinstance(program, str) else program
    module = module.module if isinstance(module, Kernel) else module
    if exercise.called in module:
        return module[exercise.called]
    if isinstance(program, Kernel):
        return program
    if module.only is not None:
        return module.only
    raise CompileError(f"there is no kernel called {exercise.called} in the cell")


def built(texts: Sequence[str]) -> Generator[None]:
    """Yield when what a text needs to be observed is built, for each in turn.

    Two are built at a time, ahead of the one that is looked at; whoever stops early drops the rest.
    """
    pool = ThreadPoolExecutor(AT_A_TIME)
    try:
        for ready in [pool.submit(_try_to_compile, text) for text in texts]:
            yield ready.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def is_kernel(program: Any) -> bool:
    """Whether a program is something that `kernel_of` takes."""
    return isinstance(program, (Kernel, Module, str))


def text_of(program: Any) -> str:
    """The CUDA source of a kernel, a module or a text."""
    return program if isinstance(program, str) else program.source


def untouched(exercise: Exercise, program: Any) -> bool:
    """Whether a kernel is still its stub: the same words, or a body with none."""
    stub = exercise.stub.partition("\n")[2]
    words = [token.text for token in tokenize(text_of(program))]
    if words == [token.text for token in tokenize(stub)]:
        return True
    text = " ".join(words)
    return bool(re.search(rf"\b{re.escape(exercise.called)} \([^()]*\) \{{ \}}", text))


def read(source: str, forbidden: Iterable[str]) -> Reading:
    """Which forbidden names a kernel's text uses; comments and strings don't count."""
    words = {token.text for token in tokenize(source) if token.kind == "word"}
    return Reading(tuple(sorted(words & set(forbidden))))


def not_compiled() -> set[str]:
    """Words of `%%cuda` cells that were refused when they were run last."""
    from ..cuda import magic

    return magic.failed


def no_compiler() -> str:
    """The sentence for a machine where no kernel can be built; empty where one can."""
    if available().host:
        return ""
    from ..cuda.compilers import need_host_compiler

    try:
        need_host_compiler()
    except BuildError as error:
        return str(error)
    return ""


@lru_cache(maxsize=256)
def _compiled(source: str) -> Module:
    """A text's module with the library for traces. The line `%%cuda` may stand above it."""
    first, _, rest = source.partition("\n")
    text = rest if first.startswith("%%cuda") else source
    return Module(text, DEFAULT_ARCH, "cell.cu", traced=True)


def _try_to_compile(source: str) -> None:
    with contextlib.suppress(CudaError):
        _compiled(source)


def _own_names(exercise: Exercise, kernel: Kernel) -> dict[str, str]:
    """From the student's names of the parameters to those of the stub."""
    theirs = [p.name for p in kernel.signature.parameters]
    return dict(zip(theirs, exercise.parameters, strict=False))


def _sign(finding: Any, names: dict[str, str]) -> str:
    """A finding in words that don't depend on how the kernel is written."""
    where = finding.where or ""
    shared = where.endswith("shared)") or "shared memory" in where
    place = "shared memory" if shared else names.get(where.partition("[")[0], "")
    pair = _PAIR.search(finding.message)
    verbs = {"reads": "read", "writes": "write"}
    how = f" ({verbs[pair[1]]}, then {verbs[pair[2]]})" if pair else ""
    return f"{finding.kind}{how}{f' in {place}' if place else ''}"


def _plain(message: str, names: dict[str, str]) -> str:
    """The first sentence of a fault with the stub's names, and without numbers."""
    line = re.sub(r"`[^`]*`", "it", message.partition("\n")[0])
    line = re.sub(r"(?<=^A thread uses ).*", "an index outside of its array", line)
    line = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), line)
    return re.sub(r"-?\b(?:0x[0-9a-f]+|\d+)\b", "#", line)


def _details(findings: Sequence[Any]) -> tuple[str, ...]:
    lines = [line for f in findings[:MOST_DETAILS] for line in f.message.split("\n")]
    more = len(findings) - MOST_DETAILS
    return (*lines, *([f"(and {more} more like these)"] if more > 0 else []))


def _changed(exercise: Exercise, planned: Launch, before: Sequence[Any]) -> tuple[str, ...]:
    names, outputs = exercise.parameters, set(planned.outputs.values())
    return tuple(
        names[i] if i < len(names) else f"argument {i + 1}"
        for i, (old, new) in enumerate(zip(before, planned.arguments, strict=True))
        if i not in outputs
        and isinstance(old, torch.Tensor)
        and not torch.equal(_bits(old), _bits(new))
    )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8) if tensor.numel() else tensor


def _refused(error: CudaError) -> Observation:
    kind = "LaunchError" if isinstance(error, LaunchError) else type(error).__name__
    return Observation(raised=kind, message=str(error)[:500], details=tuple(str(error).split("\n")))


class _LittleTime:
    """A check's launches are small: inside of it a loop without an end is told soon."""

    NAME = "LABS_CUDA_SECONDS"

    def __init__(self) -> None:
        self._inside, self._lock, self._before = 0, threading.Lock(), None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = os.environ.get(self.NAME)
                os.environ[self.NAME] = self._before or str(SECONDS)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._before is None:
                os.environ.pop(self.NAME, None)


_LITTLE_TIME = _LittleTime()
