"""Attention on this machine's CPU as n grows: whole matrix, our tiles, and torch's fused kernel.

Times are medians, taken in turns after a warm-up, on one thread: threads that wait for one another
measure what else the machine does. Memory is what a fresh process needs beyond its
inputs: its resident set's high-water mark, which sees inside torch's own kernels too.
"""

from __future__ import annotations

import ctypes
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention as torchs_own

from labs_lib.attention.flash import flash_attention
from labs_lib.attention.single_head import scaled_dot_product_attention as naive
from labs_lib.bench.rows import Row, in_words
from labs_lib.bench.timing import must_equal
from labs_lib.plots import curves, figure

METHODS: dict[str, Callable[[Tensor, Tensor, Tensor], Any]] = {  # any: flash may add its lse
    "naive": naive,
    "blocked": flash_attention,
    "torch SDPA": torchs_own,
}
SHORT = {"naive": "naive, MiB", "blocked": "tiles, MiB", "torch SDPA": "torch, MiB"}
SIZES = (1024, 2048, 4096, 8192, 16384)
MOST_TIME, LEAST_SAVING = 2.0, 50.0


@dataclass(frozen=True)
class Point:
    """One method at one length: seconds a call and bytes beyond the inputs, for one head."""

    method: str
    n: int
    seconds: float
    extra_bytes: int


def rows() -> list[Row | str]:
    """Our tiles beside torch's kernel for each n, with the memory of all three, and the slopes.

    Raises: WrongResult.
    """
    return table(measure())


def table(points: Sequence[Point]) -> list[Row | str]:
    """The rows for points that were measured; the bars hold at the largest n."""
    made: list[Row | str] = []
    largest = max(point.n for point in points)
    for n in sorted({point.n for point in points}):
        at = {point.method: point for point in points if point.n == n}
        ours, torchs, whole = (at[method] for method in ("blocked", "torch SDPA", "naive"))
        memory = [(short, in_mib(at[name].extra_bytes)) for name, short in SHORT.items()]
        made.append(
            Row(
                f"{n:,} tokens",
                ours.seconds,
                "torch SDPA",
                torchs.seconds,
                faster=1 / MOST_TIME if n == largest else None,
                more=(*memory, ("naive takes", in_words(whole.seconds))),
            )
        )
    return [*made, *sentences(points)]


def sentences(points: Sequence[Point]) -> list[str]:
    """How much less memory the tiles take, against its bar, and how all grow with n."""
    saved = bars(points)["memory of the naive / ours"]
    said = [
        f"Tiles take 1/{saved:.0f} of the naive's extra memory; asked is under "
        f"1/{LEAST_SAVING:.0f}: {'yes' if saved > LEAST_SAVING else 'NO'}."
    ]
    for method, power in slopes(points).items():
        said.append(
            f"{method}: time grows with n to the power {power['time']:.1f}, "
            f"extra memory to the power {power['memory']:.1f}."
        )
    return said


def in_mib(size: int) -> str:
    """Bytes in MiB with one decimal."""
    return f"{size / 2**20:,.1f}"


def measure(sizes: Sequence[int] = SIZES, *, head_dim: int = 64, repeats: int = 3) -> list[Point]:
    """A point for each method and each n; results are compared with each other after the timing.

    Raises: WrongResult.
    """
    points = []
    for n in sizes:
        seconds = _seconds(n, head_dim, repeats)
        for method in METHODS:
            points.append(Point(method, n, seconds[method], _extra_bytes(method, n, head_dim)))
    return points


def slopes(points: Sequence[Point]) -> dict[str, dict[str, float]]:
    """For each method the powers of n with which time and memory grow, fitted in log-log."""
    found = {}
    for method in dict.fromkeys(point.method for point in points):
        own = [point for point in points if point.method == method]
        places = [math.log(point.n) for point in own]
        found[method] = {
            "time": _slope(places, [math.log(point.seconds) for point in own]),
            "memory": _slope(places, [math.log(max(point.extra_bytes, 1)) for point in own]),
        }
    return found


def bars(points: Sequence[Point]) -> dict[str, float]:
    """At the largest n: how often the naive's memory holds ours, and our time over torch's."""
    n = max(point.n for point in points)
    at = {point.method: point for point in points if point.n == n}
    ours = at["blocked"]
    return {
        "n": n,
        "memory of the naive / ours": at["naive"].extra_bytes / max(ours.extra_bytes, 1),
        "our time / torch SDPA's": ours.seconds / at["torch SDPA"].seconds,
    }


def draw(points: Sequence[Point]) -> Figure:
    """A picture of memory and time over n."""
    fig, (left, right) = figure(9.0, 3.6, columns=2)
    sizes, found = sorted({point.n for point in points}), slopes(points)
    titles = {
        "memory": (left, "Whole rows take n² bytes, tiles hardly any", "extra memory (MiB)"),
        "time": (right, "All three do the same products", "time (s)"),
    }
    for power, (ax, title, label) in titles.items():
        series = {
            f"{method} (n to the {found[method][power]:.1f})": [
                point.seconds if power == "time" else point.extra_bytes / 2**20
                for point in points
                if point.method == method
            ]
            for method in found
        }
        curves(
            sizes,
            series,
            title=title,
            x_label="tokens",
            y_label=label,
            log_x=True,
            log_y=True,
            ax=ax,
        )
    return fig


def _inputs(n: int, head_dim: int) -> list[Tensor]:
    noise = torch.Generator().manual_seed(n)
    return [torch.rand(1, 1, n, head_dim, generator=noise).sub_(0.5) for _ in range(3)]


def _seconds(n: int, head_dim: int, repeats: int) -> dict[str, float]:
    inputs = _inputs(n, head_dim)
    taken: dict[str, list[float]] = {method: [] for method in METHODS}
    results, threads = {}, torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for turn in range(repeats + 1):
            for method, attend in METHODS.items():
                begin = time.perf_counter()
                results[method] = attend(*inputs)
                if turn:  # the first turn warms up
                    taken[method].append(time.perf_counter() - begin)
    finally:
        torch.set_num_threads(threads)
    for method, out in results.items():
        must_equal(out, results["naive"], f"{method}, {n:,} tokens")
    return {method: statistics.median(times) for method, times in taken.items()}


def _extra_bytes(method: str, n: int, head_dim: int) -> int:
    command = [sys.executable, "-m", __name__, method, str(n), str(head_dim)]
    done = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
    return int(json.loads(done.stdout)["extra_bytes"])


def _own_extra_bytes(method: str, n: int, head_dim: int) -> int:
    """Run in a process of its own: how far one call lifts the resident set."""
    with torch.no_grad():
        METHODS[method](*_inputs(64, head_dim))  # libraries and thread pools are loaded now
        inputs = _inputs(n, head_dim)
        _give_back_freed()
        before = _resident(reset=True)
        METHODS[method](*inputs)
        return max(0, _resident() - before)


def _resident(*, reset: bool = False) -> int:
    """The resident set's high-water mark in bytes; Linux can set it back to what is used now."""
    status, clear = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if status.exists():
        if reset:
            clear.write_text("5", encoding="ascii")
        line = next(x for x in status.read_text(encoding="utf-8").split("\n") if "VmHWM" in x)
        return int(line.split()[1]) * 1024
    import resource  # not on Windows; there the course runs in WSL

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _give_back_freed() -> None:
    """Let go of memory that was freed and is kept, or the call at hand would use it unseen."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    return statistics.linear_regression(x, y).slope


if __name__ == "__main__":  # a process that measures its own memory
    asked = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps({"extra_bytes": _own_extra_bytes(*asked)}))
