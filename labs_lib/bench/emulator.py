"""Kernels without a GPU: our emulator beside numba's simulator, and what a cell costs."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from labs_lib import cuda
from labs_lib.bench import inputs, kernels
from labs_lib.bench.rows import Row, Unavailable, in_words
from labs_lib.bench.timing import busy, median_seconds, must_equal, processor_seconds
from labs_lib.cuda.kernel import Kernel
from labs_lib.cuda.timing import seconds as kernel_seconds

FASTER, EDITED, UNCHANGED, CHECK, CHECKS = 2000.0, 1.0, 0.05, 2.0, 24


@dataclass(frozen=True)
class Problem:
    """A kernel with its launch, its truth and the floating-point operations that it does."""

    name: str
    title: str
    source: str
    geometry: tuple
    arguments: tuple
    out: torch.Tensor
    wanted: np.ndarray
    work: float

    def check(self) -> None:
        """Raises: WrongResult."""
        must_equal(self.out, self.wanted, self.title)


def rows() -> list[Row | str]:
    """What a student waits for, then both kernels beside numba's simulator where there is one.

    Raises: Unavailable without a C++ compiler; WrongResult.
    """
    if not cuda.available().host:
        raise Unavailable(
            "it needs a C++ compiler, and there is none here (`sudo apt install g++`)."
        )
    problems = (product(), flash())
    made: list[Row | str] = [*cells(problems[0])]
    try:
        peers, notes = numba_seconds(), []
    except Unavailable as why:
        peers, notes = {}, [f"Nothing stands beside the emulator: {why}"]
    for problem in problems:
        made += compared(problem, peers.get(problem.name))
    return [*made, *traced(problems), *notes, *([busy()] if busy() else [])]


def product() -> Problem:
    """The tiled product of two matrices of 64 x 64."""
    a, b, wanted = inputs.product()
    n, tile = inputs.N, inputs.TILE
    c = torch.full((n, n), float("nan"))
    geometry = ((n // tile, n // tile), (tile, tile))
    arguments = (torch.from_numpy(a), torch.from_numpy(b), c, n)
    title = f"tiled product, {n}³"
    return Problem("product", title, kernels.PRODUCT, geometry, arguments, c, wanted, 2.0 * n**3)


def flash() -> Problem:
    """Flash attention of one head: 64 queries, 64 keys, head_dim 64."""
    *given, wanted = inputs.flash()
    n, d = inputs.N, inputs.HEAD_DIM
    o = torch.full((n, d), float("nan"))
    arguments = (*(torch.from_numpy(x) for x in given), o, n)
    geometry = (-(-n // inputs.QUERIES), inputs.QUERIES)
    title = f"flash, {n} x {n} x {d}"
    return Problem("flash", title, kernels.FLASH, geometry, arguments, o, wanted, 4.0 * n * n * d)


def compared(problem: Problem, peer: float | None) -> list[Row]:
    """The kernel's own time on one core beside numba's, and the whole launch."""
    launch = _kernel(problem)[problem.geometry]
    own = [kernel_seconds(launch, *problem.arguments) for _ in range(5)]
    problem.check()
    problem.out.fill_(float("nan"))
    whole = median_seconds(lambda: launch(*problem.arguments), repeats=25)
    problem.check()
    name = "" if peer is None else "numba"
    return [
        Row(problem.title, sorted(own)[2], name, peer, faster=FASTER, work=problem.work),
        Row("  with the launch around it", whole, name, peer),
    ]


def cells(problem: Problem) -> list[Row]:
    """An edited kernel until its result is there, and an unchanged cell."""
    number = [time.time_ns()]

    def edited() -> None:
        number[0] += 1
        source = problem.source.replace("float sum = 0.0f;", f"float sum = 0.0f; // {number[0]}")
        _kernel(replace(problem, source=source))[problem.geometry](*problem.arguments)

    def unchanged() -> None:
        cuda.compile(problem.source)

    made = [
        _waited("an edited cell, compiled and run", edited, EDITED, 5),
        _waited("an unchanged cell", unchanged, UNCHANGED, 25),
    ]
    problem.check()
    return made


def _waited(what: str, run: Callable[[], object], within: float, repeats: int) -> Row:
    """What somebody waits for, and how much of it is work of this machine for them."""
    took = median_seconds(run, repeats=repeats)
    before = processor_seconds()
    for _ in range(repeats):
        run()
    spent = (processor_seconds() - before) / repeats
    return Row(what, took, within=within, more=(("processor time", in_words(spent)),))


def traced(problems: tuple[Problem, ...]) -> list[Row]:
    """The traced mode beside the fast one, and as many traced launches as a check makes."""
    made: list[Row] = []
    for problem in problems:
        k = _kernel(problem)
        plain = median_seconds(_launcher(k, problem, False))
        slow = median_seconds(_launcher(k, problem, True), repeats=5)
        problem.check()
        made.append(Row(f"{problem.title}, traced", slow, "not traced", plain))
    launch = _launcher(_kernel(problems[1]), problems[1], True)

    def check() -> None:
        for _ in range(CHECKS):
            launch()

    return [*made, _waited(f"a check: {CHECKS} traced launches", check, CHECK, 3)]


def _kernel(problem: Problem) -> Kernel:
    compiled = cuda.compile(problem.source)
    if not isinstance(compiled, Kernel):
        raise TypeError(f"{problem.title}: the source has several kernels; it is to have one")
    return compiled


def _launcher(k: Kernel, problem: Problem, trace: bool) -> Callable[[], object]:
    launch = (k.trace if trace else k)[problem.geometry]
    return lambda: launch(*problem.arguments)


def numba_seconds() -> dict[str, float]:
    """The same kernels in numba's simulator, each looked at for its result.

    Raises: Unavailable where numba isn't installed or fails.
    """
    if importlib.util.find_spec("numba") is None:
        raise Unavailable("numba is not installed here (`pip install numba` brings it).")
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "labs_lib.bench.numba_peer"],
        capture_output=True, text=True, check=False, env=environment,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        raise Unavailable(f"numba's simulator fails here: {last}")
    found = json.loads(done.stdout)
    for name, result in found.items():
        must_equal(torch.tensor(result["wrong_by"]), torch.tensor(0.0), f"numba's {name}")
    return {name: result["seconds"] for name, result in found.items()}
