"""Memory as a picture: one row per token, each place coloured and numbered by the head it is in."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from .style import COLOUR_MAP, axes_for, ink_on, look, numbers

SMALLEST_LABELLED = 1 / 48
"""A run narrower than this share of the picture carries no number."""
MOST_NUMBERS = 120
"""With more runs than this, only every second, third ... token has its numbers written."""


def byte_map(places: Any, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw which head reads each place of a [seq, width] memory.

    `places` is [n_head, seq, head_dim]: for each number of each head the place, counted from 0,
    where it lay in the [seq, n_head * head_dim] input. Split `torch.arange(seq * width)` to get it.
    Raises ValueError unless each place occurs exactly once.
    """
    owner = owners(places)
    seq = owner.shape[0]
    n_head = int(owner.max()) + 1
    with look():
        ax = axes_for(ax, 8.0, min(4.6, 1.3 + 0.3 * seq))
        most = max(1, n_head - 1)
        ax.imshow(owner, cmap=COLOUR_MAP, aspect="auto", interpolation="nearest", vmin=0, vmax=most)
        runs = _runs(owner)
        inner = [(token, start) for token, start, _ in runs if start]
        if inner:
            rows, starts = np.array(inner).T
            ax.vlines(starts - 0.5, rows - 0.5, rows + 0.5, color="white", lw=1.0)
        step = -(-len(runs) // MOST_NUMBERS)
        inks = _inks(n_head)
        for token, start, end in (run for run in runs if run[0] % step == 0):
            head = int(owner[token, start])
            _number(ax, (start + end - 1) / 2, token, head, inks[head])
        ax.set_yticks(range(0, seq, max(1, seq // 12)))
        ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
        ax.set_ylabel("token")
        ax.set_xlabel("place in the token's row of memory (in numbers); in the cells: the head")
        ax.set_title(title)
        ax.spines[:].set_visible(False)
    return ax


def owners(places: Any) -> np.ndarray:
    """Return, for each place of the [seq, width] memory, the head that reads it.

    Raises ValueError unless `places` [n_head, seq, head_dim] holds each place exactly once.
    """
    grid = numbers(places)
    if grid.ndim != 3:
        raise ValueError(f"places is [n_head, seq, head_dim]; this has shape {list(grid.shape)}")
    n_head, seq, head_dim = grid.shape
    flat = grid.reshape(n_head, -1).astype(int)
    if not np.array_equal(np.sort(flat, axis=None), np.arange(grid.size)):
        raise ValueError(f"each place from 0 to {grid.size - 1} must occur once in the heads")
    owner = np.empty(grid.size, dtype=int)
    owner[flat] = np.arange(n_head)[:, None]
    return owner.reshape(seq, n_head * head_dim)


def _runs(owner: np.ndarray) -> list[tuple[int, int, int]]:
    """Return (token, start, end) of each run of one head that is wide enough for its number."""
    least = SMALLEST_LABELLED * owner.shape[1]
    found = []
    for token, row in enumerate(owner):
        borders = [0, *(np.flatnonzero(np.diff(row)) + 1), len(row)]
        found += [(token, a, b) for a, b in pairwise(borders) if b - a >= least]
    return found


def _inks(n_head: int) -> list[str]:
    """Return for each head the ink, white or dark, that stands out on the head's colour."""
    return [ink_on(shade) for shade in matplotlib.colormaps[COLOUR_MAP](np.linspace(0, 1, n_head))]


def _number(ax: Axes, x: float, y: float, head: int, ink: str) -> None:
    text = ax.text(x, y, str(head), ha="center", va="center", color=ink, fontsize=9)
    text.set_in_layout(False)  # it lies inside the axes, so the layout need not measure it
