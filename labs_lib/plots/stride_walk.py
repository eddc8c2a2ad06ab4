"""Strides as walks: one strip of memory, and how far the next index of each axis lies."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from .style import COLOURS, INK, axes_for, look

MOST_PLACES = 40


def stride_walk(seq: int, n_head: int, head_dim: int, *, title: str = "", ax: Axes | None = None):
    """Draw the memory of one [seq, n_head * head_dim] sequence and three walks from its start.

    The colours are the heads; the walks go to the next number, the next head and the next token.
    Raises ValueError for more than 40 places, which nobody could read, or for an axis of length
    1, along which there is nowhere to walk.
    """
    width = n_head * head_dim
    if seq * width > MOST_PLACES or min(seq, n_head, head_dim) < 2:
        raise ValueError(
            f"seq={seq}, n_head={n_head}, head_dim={head_dim}: give at least 2 of each and at most "
            f"{MOST_PLACES} places in all"
        )
    with look():
        ax = axes_for(ax, 8.0, 2.6)
        for place in range(seq * width):
            _cell(ax, place, place % width // head_dim)
        for token in range(seq):
            middle = token * width + (width - 1) / 2
            ax.text(middle, -0.85, f"token {token}", ha="center", va="top")
            if token:
                ax.plot([token * width - 0.5] * 2, [-0.7, 0.7], color=INK, lw=2.5)
        walks = ((1, "number"), (head_dim, "head"), (width, "token"))
        for height, (distance, words) in enumerate(walks, 1):
            _walk(ax, distance, 0.1 + 0.75 * height, f"{words} +{distance}")
        ax.set_xlim(-0.7, seq * width - 0.3)
        ax.set_ylim(-1.5, 3.0)
        ax.axis("off")
        ax.set_title(title)
    return ax


def _cell(ax: Axes, place: int, head: int) -> None:
    colour = COLOURS[head % len(COLOURS)]
    ax.add_patch(Rectangle((place - 0.5, -0.5), 1, 1, facecolor=colour, edgecolor="white"))
    ax.text(place, 0, f"{head}", ha="center", va="center", color="white", fontsize=9)


def _walk(ax: Axes, distance: int, height: float, words: str) -> None:
    ax.plot([0, 0, distance], [0.5, height, height], color=INK, lw=1.2)
    ax.annotate(
        "",
        (distance, 0.5),
        xytext=(distance, height),
        arrowprops={"arrowstyle": "->", "color": INK, "lw": 1.2},
    )
    ax.text(distance + 0.2, height, words, va="center", fontsize=9)
