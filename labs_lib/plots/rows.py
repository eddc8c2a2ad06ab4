"""One row at a time: the weights of one softmax row, and a width cut into heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from .style import COLOURS, FAINT, INK, axes_for, look, numbers

MOST_BAR_NUMBERS = 20


def weights_row(
    weights: Any,
    *,
    labels: Sequence[str] | None = None,
    title: str = "",
    mask: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one row of attention weights [seq_k] as bars in percent, with the number on each bar.

    `mask` is bool [seq_k], True = may attend; a key that may not be attended to is hatched.
    Raises ValueError for anything that is not one row, or a mask of another length.
    """
    row = numbers(weights)
    if row.ndim != 1:
        raise ValueError(f"weights_row draws one row; these weights have shape {list(row.shape)}")
    open_ = np.ones(row.size, dtype=bool) if mask is None else numbers(mask).astype(bool)
    if open_.shape != row.shape:
        raise ValueError(
            f"the mask has shape {list(open_.shape)}, the weights {list(row.shape)}; "
            "give one True or False for each key"
        )
    with look():
        ax = axes_for(ax, min(9.0, 2.0 + 0.7 * row.size), 2.6)
        ax.bar(np.arange(row.size), 100 * row, width=0.72, color=COLOURS[0])
        for place in np.flatnonzero(~open_):
            ax.axvspan(place - 0.5, place + 0.5, facecolor="white", edgecolor=FAINT, hatch="////")
        if row.size <= MOST_BAR_NUMBERS:
            for place in np.flatnonzero(open_):
                height = 100 * row[place]
                text = f"{height:.1f}" if row.size <= 10 else f"{height:.0f}"
                ax.text(place, height + 2, text, ha="center", color=INK, fontsize=9)
        ax.set_ylim(0, 112)
        ax.set_yticks([0, 25, 50, 75, 100])
        ax.set_ylabel("weight (%)")
        ax.set_xlabel("key")
        names = [str(n) for n in (labels if labels is not None else range(row.size))]
        step = max(1, -(-row.size // MOST_BAR_NUMBERS))
        ax.set_xticks(range(0, row.size, step), names[::step])
        ax.set_xlim(-0.6, row.size - 0.4)
        ax.set_title(title)
    return ax


def split_bar(d_model: int, n_head: int, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw a query's d_model numbers as a bar cut into n_head heads; the rest is hatched.

    Works for every pair from 1 up, also one where n_head doesn't divide d_model.
    """
    head_dim, left = divmod(d_model, n_head)
    with look():
        ax = axes_for(ax, 7.0, 1.5)
        if head_dim:
            for head in range(n_head):
                colour = COLOURS[head % 2]
                line = 0.8 if n_head <= 64 else 0.0
                ax.barh(0, head_dim, left=head * head_dim, color=colour, edgecolor="white", lw=line)
                if n_head <= 24:
                    middle = (head + 0.5) * head_dim
                    ax.text(
                        middle, 0, f"{head}", ha="center", va="center", color="white", fontsize=9
                    )
        if left:
            start = d_model - left
            ax.barh(0, left, left=start, facecolor="white", edgecolor=COLOURS[5], hatch="xxxx")
            words = f"{left} left over"
            ax.annotate(words, (d_model, 0.42), ha="right", va="bottom", color=COLOURS[5])
        ax.set_xlim(0, d_model)
        ax.set_ylim(-0.5, 0.9 if left else 0.5)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.set_xlabel(f"the {d_model} numbers of one query; the number in a block is its head")
        ax.set_title(
            title or f"{n_head} heads of {head_dim}" + (f", {left} left over" * bool(left))
        )
    return ax
