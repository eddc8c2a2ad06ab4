"""How long a kernel's own blocks take on the CPU, without the start of the process around them."""

from __future__ import annotations

from labs_lib.cuda import child
from labs_lib.cuda.kernel import Launcher


def seconds(launcher: Launcher, *args, rounds: int = 21, workers: int = 1) -> float:
    """The median of `rounds - 1` runs of the whole grid in one process, after a first one.

    The tensors hold what the last run left. Raises: KernelFault as a launch does.
    """
    kernel = launcher.kernel
    report, _, _ = child.run(
        kernel.library(False), kernel.signature, args, launcher.grid, launcher.block,
        launcher.shared, kernel.module.arch, source=kernel.source, trace=False, rounds=rounds,
        workers=workers,
    )  # fmt: skip
    return int(report["nanoseconds"]) / 1e9
