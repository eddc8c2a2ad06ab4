"""Whose flash kernel lab 12 runs, where it runs, what it moves and how long it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

from .. import cuda
from ..checking import progress
from ..checking.given import NotGiven, given
from ..checking.shipped import has_answers
from ..cuda import ladder
from ..paths import state
from ..withheld import Withheld

KERNEL = "lab11.flash_kernel"
RUNS = 5  # of each side of a ratio
YOURS, COURSES, LADDERS = "yours", "the course's solution", "the library's flash_forward.cu"


@dataclass(frozen=True)
class Chosen:
    """A kernel to launch, whose it is, and a sentence; `kernel` is None where there is none."""

    kernel: Any
    whose: str
    sentence: str


class FromTheLadder:
    """The library's flash_forward, launched as lab 11's kernel: the grid is its own."""

    def __init__(self) -> None:
        self.rung = ladder.rung("flash_forward")
        self.kernel = self.rung.compile()

    def __getitem__(self, _geometry: Any) -> Callable[..., None]:
        def launch(q: Tensor, *more: Any) -> Any:
            geometry = self.rung.geometry(_sizes(q, more))
            return self.kernel[geometry](q, *more)

        return launch

    @property
    def trace(self) -> _Traced:
        """Traced launches, by the same brackets."""
        return _Traced(self)


class _Traced:
    def __init__(self, ladders: FromTheLadder) -> None:
        self.ladders = ladders

    def __getitem__(self, _geometry: Any) -> Callable[..., Any]:
        def launch(q: Tensor, *more: Any) -> Any:
            geometry = self.ladders.rung.geometry(_sizes(q, more))
            return self.ladders.kernel.trace[geometry](q, *more)

        return launch


def flash_kernel() -> Chosen:
    """Your own kernel of lab 11 if it has passed, else one in its place, else none.

    In `solutions/`, where no progress is kept, it is the one that lab 11's solution has.
    """
    if not cuda.available():
        return Chosen(None, "", "There is no C++ compiler here, and without one no kernel runs.")
    source = progress.entry(KERNEL).get("source")
    if isinstance(source, str) and source:
        try:
            return Chosen(_compiled(source), YOURS, "The kernel is yours, of lab 11.")
        except cuda.CudaError as error:
            return _in_its_place(f"Your kernel of lab 11 can't be used ({error}). ")
    if state() is None and has_answers("lab11"):
        return Chosen(given(KERNEL), COURSES, "The kernel is the one in lab 11's solution.")
    return _in_its_place(f"{KERNEL} has not passed yet. ")


def beside(attend: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same attention on this machine's GPU, if kernels run there; q and the answer stay here.

    attend(q, k, v, mask) gets its tensors on the GPU.
    """
    if not on_gpu():
        return attend

    def moved(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        there = [t if t is None else t.cuda() for t in (q, k, v, mask)]
        return attend(*there).to(q.device)

    return moved


def on_gpu() -> bool:
    """Whether kernels run on a GPU here."""
    found = cuda.available()
    return bool(found.gpu and found.nvcc)


def where() -> str:
    """Where kernels run here, in words that end a sentence."""
    return f"on {cuda.available().gpu}" if on_gpu() else "on the CPU, without a GPU"


def ratio(own: Callable[[], Any], other: Callable[[], Any]) -> float:
    """How many times as long `own` takes as `other`: medians of runs that alternate."""
    own(), other()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(RUNS):
        for number, program in enumerate((own, other)):
            start = time.perf_counter()
            program()
            taken[number].append(time.perf_counter() - start)
    return median(taken[0]) / median(taken[1])


def traffic_of(kernel: Any, q: Tensor, k: Tensor, v: Tensor) -> dict[str, int]:
    """Bytes that a traced causal launch moves, and what lab 11's `io_bytes` says of its heads.

    q is [1, n_head, seq, head_dim], k and v are [1, n_kv_head, seq, head_dim]. Where io_bytes
    isn't here, a sentence says so. Raises ValueError if the kernel left something unwritten.
    """
    _, n_head, seq, head_dim = q.shape
    q, k, v = (t.contiguous() for t in (q, k, v))
    o, lse = torch.full_like(q, math.nan), torch.full(q.shape[:3], math.nan)
    sizes = (n_head, k.shape[1], seq, seq, head_dim, 1 / math.sqrt(head_dim), 1)
    trace = kernel.trace[(-(-seq // 64), n_head, 1), 64](q, k, v, o, lse, *sizes)
    if o.isnan().any():
        raise ValueError("the kernel left a part of its output unwritten; run lab 11's check again")
    found = {"counted": sum(t.read + t.written for t in trace.tensors.values())}
    io_bytes = piece("lab11.io_bytes")
    if io_bytes is not None:
        formula = io_bytes(seq, seq, head_dim, 64, 4)
        found["lab 11's formula, tiles"] = n_head * formula["flash"]
        found["lab 11's formula, whole matrices"] = n_head * formula["naive"]
    return found


def piece(name: str) -> Any:
    """What an earlier exercise asked for, as `given`; None, and a sentence, where it isn't here."""
    try:
        return given(name)
    except NotGiven as error:
        print(error)
        return None


def _in_its_place(why: str) -> Chosen:
    try:
        return Chosen(FromTheLadder(), LADDERS, f"{why}{LADDERS.capitalize()} takes its place.")
    except Withheld:
        return Chosen(None, "", f"{why}Write it in lab 11; this copy of the course has none.")


def _compiled(source: str) -> Any:
    made = cuda.compile(source)
    return made if isinstance(made, cuda.Kernel) else made["flash_kernel"]


def _sizes(q: Tensor, more: tuple[Any, ...]) -> dict[str, int]:
    names = ("n_head", "n_kv_head", "n_q", "n_k", "head_dim")
    sizes = dict(zip(names, more[4:9], strict=True))
    batch = q.numel() // max(sizes["n_head"] * sizes["n_q"] * sizes["head_dim"], 1)
    return {"batch": batch, **sizes, "causal": int(more[10])}
