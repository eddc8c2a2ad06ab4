"""One instruction of a warp on rows of memory: which lane touches which word of 4 bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from .style import COLOURS, INK, axes_for, look

FEWEST_ROWS = 8  # that there is room for, so that a single one is not a tower
WORDS = 32  # in a row: a line of 128 bytes, or a word of each bank
ALONE, SHARED, CLASH = COLOURS[0], COLOURS[2], COLOURS[5]
FETCHED, PAPER = "#dbe4f3", "#f6f6f6"


def memory_rows(
    words: Mapping[int, Sequence[int]],
    *,
    fetched: Sequence[int] = (),
    clashes: Mapping[int, int] | None = None,
    label: Callable[[int], str] = str,
    x_label: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the rows of 32 words that a warp touches, with the lane's number in each touched word.

    Args:
        words: word -> the lanes that touch it; several lanes are written as their number, ×4.
        fetched: words that come along, since memory is fetched by sectors; tinted.
        clashes: bank -> how many different words of it are wanted; those above 1 are written below
            their column, and their words are red. None where banks don't matter.
        label: the name of a row, from its first word.
    """
    rows = sorted({word // WORDS for word in words})
    place = {row: i for i, row in enumerate(rows)}
    with look():
        ax = axes_for(ax, 6.0, min(5.0, 1.0 + 0.2 * len(rows)))
        image = _coloured(words, fetched, clashes or {}, place)
        ax.imshow(image, aspect="auto", interpolation="nearest")
        _grid(ax, len(rows), 8 if clashes is None else 1)
        _number(ax, words, clashes or {}, place)
        named = rows[:: 1 if len(rows) <= 20 else 2]
        ax.set_yticks([place[r] for r in named], [label(r * WORDS) for r in named], fontsize=7)
        ax.set_xticks(range(0, WORDS, 4 if clashes is None else 2))
        ax.tick_params(length=0, pad=9 if clashes and len(rows) > FEWEST_ROWS else 2)
        ax.set_ylim(max(len(rows), FEWEST_ROWS) - 0.5, -0.5)
        ax.set_xlabel(x_label)
        ax.set_title(title)
        ax.spines[:].set_visible(False)
    return ax


def _coloured(words, fetched, clashes, place: Mapping[int, int]) -> np.ndarray:
    """The colour of each word: [rows, 32, 3]; `place` says where a row of memory is drawn."""
    image = np.full((max(1, len(place)), WORDS, 3), to_rgb(PAPER))
    for word in fetched:
        image[place[word // WORDS], word % WORDS] = to_rgb(FETCHED)
    for word, lanes in words.items():
        colour = SHARED if len(lanes) > 1 else ALONE
        if clashes.get(word % WORDS, 1) > 1:
            colour = CLASH
        image[place[word // WORDS], word % WORDS] = to_rgb(colour)
    return image


def _number(ax: Axes, words, clashes, place: Mapping[int, int]) -> None:
    """Lanes in their words, and below a bank that clashes how many words of it are wanted."""
    size = 7 if len(place) <= 20 else 6
    for word, lanes in words.items():
        text = str(lanes[0]) if len(lanes) == 1 else f"×{len(lanes)}"
        at = (word % WORDS, place[word // WORDS])
        made = ax.text(*at, text, ha="center", va="center", color="white", fontsize=size)
        made.set_in_layout(False)  # it lies inside the axes, so the layout need not measure it
    for bank, count in clashes.items():
        if count > 1:
            y = len(place) - 0.5
            ax.text(bank, y, f"{count}", ha="center", va="top", color=CLASH, fontsize=size)


def _grid(ax: Axes, rows: int, every: int) -> None:
    """White lines between words, dark ones around sectors."""
    across = [[(-0.5, y - 0.5), (WORDS - 0.5, y - 0.5)] for y in range(rows + 1)]
    down = [[(x - 0.5, -0.5), (x - 0.5, rows - 0.5)] for x in range(WORDS + 1)]
    ax.add_collection(LineCollection(across + down, colors="white", linewidths=0.7))
    if every > 1:
        ax.add_collection(LineCollection(down[::every], colors=INK, linewidths=1.0))
