"""Lines over one axis, with the spread of several runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter

from .style import COLOURS, INK, MARKERS, axes_for, look, numbers

MOST_MARKERS = 12


def curves(
    x: Any,
    series: Mapping[str, Any],
    *,
    title: str = "",
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    baseline: tuple[float, str] | None = None,
    dashed: Collection[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw one line per name over x [points].

    Args:
        series: a line's name -> its values [points], or (values, low, high) with the spread of
            several runs, which is drawn as a band.
        x_label, y_label: in words, with a unit where there is one.
        baseline: (value, its name) of a dashed horizontal line.
        dashed: names of lines that are drawn dashed, so that one below them is seen.

    Raises ValueError where a line has another number of points than x.
    """
    places = numbers(x)
    with look():
        ax = axes_for(ax, 7.0, 3.2)
        for index, (name, values) in enumerate(series.items()):
            _draw_line(ax, places, name, values, index, name in dashed)
        if baseline is not None:
            ax.axhline(baseline[0], color=INK, ls="--", lw=1.0, label=baseline[1])
        _scale(ax, places, log_x, log_y)
        ax.set_xlabel(x_label)
        ax.set_ylabel(y_label)
        ax.set_title(title)
        if len(series) + (baseline is not None) > 1:
            ax.legend()
    return ax


def _draw_line(
    ax: Axes, places: np.ndarray, name: str, values: Any, index: int, dashed: bool
) -> None:
    """Draw line number `index`, and the band of its spread where it has one."""
    middle, low, high = values if _has_spread(values) else (values, None, None)
    heights = numbers(middle)
    if heights.shape != places.shape:
        raise ValueError(
            f"{name!r} has shape {list(heights.shape)}, x has {list(places.shape)}; "
            "give one value for each x"
        )
    colour = COLOURS[index % len(COLOURS)]
    marked = places.size <= MOST_MARKERS and not dashed
    marker = MARKERS[index % len(MARKERS)] if marked else None
    ls = "--" if dashed else "-"
    ax.plot(places, heights, color=colour, marker=marker, ls=ls, markersize=5, label=name)
    if low is not None:
        ax.fill_between(places, numbers(low), numbers(high), color=colour, alpha=0.18, lw=0)


def _has_spread(values: Any) -> bool:
    return isinstance(values, tuple) and len(values) == 3 and np.ndim(values[0]) == 1


def _scale(ax: Axes, places: Any, log_x: bool, log_y: bool) -> None:
    if log_y:
        ax.set_yscale("log")
    if not log_x:
        return
    ax.set_xscale("log", base=2)
    if places.size <= MOST_MARKERS:  # each measured place gets its own number
        ax.xaxis.set_major_locator(FixedLocator(list(places)))
        ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(ScalarFormatter())
