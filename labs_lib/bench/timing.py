"""Times that mean something: after a warm-up, the median of several, the result looked at again."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

from labs_lib.bench.rows import WrongResult


def median_seconds(
    run: Callable[[], object],
    *,
    repeats: int = 9,
    warm_up: int = 2,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The median time of `repeats` runs after `warm_up` that don't count."""
    for _ in range(warm_up):
        run()
    times = []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return statistics.median(times)


def processor_seconds() -> float:
    """Processor time of this process and of all that it waited for; neighbours don't count."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def busy() -> str:
    """A sentence where other work runs on this machine, and times are longer than they need be."""
    try:
        waiting, cores = os.getloadavg()[0], os.cpu_count() or 1
    except (AttributeError, OSError):
        return ""
    if waiting < cores + 0.5:
        return ""
    return (
        f"This machine is busy: {waiting:.0f} programs want its {cores} processors, and times are "
        "longer than they would be. Processor time isn't."
    )


def must_equal(found, wanted, what: str, *, atol: float = 1e-4, rtol: float = 1e-3) -> None:
    """Looks at a result after it was timed. Raises: WrongResult with the largest difference."""
    import torch

    found, wanted = torch.as_tensor(found).double().cpu(), torch.as_tensor(wanted).double().cpu()
    if found.shape == wanted.shape and torch.allclose(
        found, wanted, atol=atol, rtol=rtol, equal_nan=False
    ):
        return
    if found.shape != wanted.shape:
        raise WrongResult(f"{what}: the result is {list(found.shape)}, not {list(wanted.shape)}")
    worst = (found - wanted).abs().max().item()
    raise WrongResult(f"{what}: the result that was timed is wrong by up to {worst:.3g}")
