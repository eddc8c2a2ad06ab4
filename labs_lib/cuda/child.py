"""Runs one launch in a process of its own, so that no kernel can harm the notebook."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from labs_lib.cuda import build, faults
from labs_lib.cuda.layout import MAX_WATCHED
from labs_lib.cuda.memory import Launch
from labs_lib.cuda.source import Signature
from labs_lib.cuda.watch import DEFAULT_EVENTS

SECONDS = 20.0  # of processor time, all threads together
TRACED_SECONDS = 120.0
GROUP_BUDGET = 30_000_000


def run(
    library: Path, signature: Signature, args, grid, block, shared, arch, *, source, trace,
    watched=(0,), most=DEFAULT_EVENTS, rounds=1, workers=None,
):  # fmt: skip
    """Runs a launch; returns the runner's report, the launch's regions and the fault, if any.

    A traced run logs the first `most` accesses of each watched block (their places in the grid).
    A benchmark runs the grid for several rounds in one process, on so many workers.

    Raises: KernelFault with kind, thread, block and line, unless it is traced: a trace holds its
    fault. The tensors are then unchanged.
    """
    blocks = grid[0] * grid[1] * grid[2]
    workers = 1 if trace else workers or max(1, min(_cores(), blocks, 16))
    with Launch(
        signature,
        args,
        grid,
        block,
        shared,
        arch,
        trace=trace,
        workers=workers,
        rounds=rounds,
        milliseconds=int(1000 * seconds(trace)),
        group_budget=GROUP_BUDGET,
        n_watched=len(watched),
        most_events=most,
        watched=[*watched, *[0] * (MAX_WATCHED - len(watched))],
    ) as launch:
        code = _call(library, build.entry_name(signature), launch.fd, seconds(trace))
        report = launch.report()
        _print_output(report)
        if trace:
            launch.keep_seen()
        fault = None
        if report["done"] == 1:
            launch.copy_back()
        else:
            fault = faults.explain(report, code, launch.regions, library, source, trace)
            if not trace:
                raise fault
        return report, launch.regions, fault


def seconds(trace: bool) -> float:
    """How much processor time a launch may take; LABS_CUDA_SECONDS sets it."""
    own = os.environ.get("LABS_CUDA_SECONDS")
    with contextlib.suppress(ValueError):
        if own and float(own) > 0:
            return float(own)
    return TRACED_SECONDS if trace else SECONDS


def _call(library: Path, entry: str, fd: int, limit: float) -> int:
    command = [str(build.runner()), str(library), entry, str(fd)]
    ours, its = os.pipe()  # closed when the runner ends, however it ends
    try:
        process = subprocess.Popen(
            command,
            pass_fds=(fd, its),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(its)
    try:
        # The runner's own clock counts processor time; this one is for what no clock of its sees.
        waiting = select.poll()
        waiting.register(ours)
        for _ in range(int(30 + 10 * limit)):
            # Now and then the process itself is asked: a fork of ours may hold the pipe open.
            if waiting.poll(1000) or process.poll() is not None:
                return process.wait()
        return -signal.SIGKILL
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()


def _print_output(report: np.void) -> None:
    """What the kernel printed."""
    length = min(int(report["text_length"]), len(report["text"]))
    if length:
        sys.stdout.write(bytes(report["text"][:length]).decode("utf-8", "replace"))


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
