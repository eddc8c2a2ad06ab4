"""A matrix as a picture: numbers in the cells, axes named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.patches import Rectangle

from .style import COLOUR_MAP, FAINT, axes_for, ink_on, look, numbers

MOST_NUMBERS = 200
MOST_TICKS = 16


def heatmap(
    values: Any,
    *,
    title: str = "",
    rows: str = "query",
    columns: str = "key",
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    mask: Any = None,
    limits: tuple[float, float] | None = None,
    decimals: int = 2,
    show_numbers: bool | None = None,
    colour_map: str = COLOUR_MAP,
    bar: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a matrix [rows, columns] with its numbers in the cells.

    Args:
        rows, columns: what the two axes stand for, in words, with a unit where there is one.
        mask: bool [rows, columns], True = shown; the other cells, and those whose value is not
            finite, are hatched and carry no number.
        limits: the values of the darkest and the lightest colour; by default the smallest and
            largest value that is shown.
        show_numbers: by default wherever there are at most 200 cells.
        bar: what the colours stand for; draws a colour bar with this label.

    Raises ValueError for anything that is not a matrix, or a mask of another shape.
    """
    grid = numbers(values)
    if grid.ndim != 2:
        raise ValueError(f"heatmap draws a matrix; these values have shape {list(grid.shape)}")
    shown = np.isfinite(grid) if mask is None else _checked_mask(mask, grid)
    norm = Normalize(*(limits or _limits(grid, shown)))
    height = min(6.0, 1.2 + 0.36 * grid.shape[0])
    with look():
        ax = axes_for(ax, min(9.0, 2.0 + 0.55 * grid.shape[1]), height)
        picture = ax.imshow(
            np.ma.array(grid, mask=~shown), cmap=colour_map, norm=norm, aspect="auto"
        )
        _hatch(ax, shown)
        if show_numbers or (show_numbers is None and grid.size <= MOST_NUMBERS):
            _write_numbers(ax, grid, shown, matplotlib.colormaps[colour_map], norm, decimals)
        _name_axis(ax, "y", rows, row_labels, grid.shape[0])
        _name_axis(ax, "x", columns, column_labels, grid.shape[1])
        ax.set_title(title)
        ax.spines[:].set_visible(False)
        if bar is not None:
            ax.figure.colorbar(picture, ax=ax, label=bar)
    return ax


def _checked_mask(mask: Any, grid: np.ndarray) -> np.ndarray:
    shown = numbers(mask).astype(bool)
    if shown.shape != grid.shape:
        raise ValueError(
            f"the mask has shape {list(shown.shape)}, the values {list(grid.shape)}; "
            "give one True or False for each cell"
        )
    return shown & np.isfinite(grid)


def _limits(grid: np.ndarray, shown: np.ndarray) -> tuple[float, float]:
    if not shown.any():
        return 0.0, 1.0
    low, high = float(grid[shown].min()), float(grid[shown].max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _hatch(ax: Axes, shown: np.ndarray) -> None:
    for row, column in np.argwhere(~shown):
        cell = (column - 0.5, row - 0.5)
        ax.add_patch(Rectangle(cell, 1, 1, facecolor="white", edgecolor=FAINT, hatch="////", lw=0))


def _write_numbers(
    ax: Axes,
    grid: np.ndarray,
    shown: np.ndarray,
    colour_map: Colormap,
    norm: Normalize,
    decimals: int,
) -> None:
    size = 9 if grid.shape[1] <= 10 else 7
    for row, column in np.argwhere(shown):
        value = float(grid[row, column])
        text = f"{value:.{decimals}f}"
        text = text.removeprefix("-") if float(text) == 0 else text
        ink = ink_on(colour_map(norm(value)))
        ax.text(column, row, text, ha="center", va="center", color=ink, fontsize=size)


def _name_axis(ax: Axes, which: str, name: str, labels: Sequence[str] | None, count: int) -> None:
    axis = ax.yaxis if which == "y" else ax.xaxis
    axis.set_label_text(name)
    if labels is not None:
        axis.set_ticks(range(count), [str(label) for label in labels])
    else:
        axis.set_ticks(range(0, count, max(1, math.ceil(count / MOST_TICKS))))
    axis.set_tick_params(length=0)
