"""Lab 00: a query's numbers among heads; front/tour.mjs draws the same in the browser."""

from __future__ import annotations

from matplotlib.figure import Figure

from ..plots.rows import split_bar
from .explorer import Explorer
from .knobs import head_knobs


def tour(n_head: int = 12, d_model: int = 768) -> Explorer:
    """An explorer of n_head and d_model; shows the heads, or why they don't fit and what would."""
    knobs = head_knobs(n_head, d_model)
    return Explorer("A query shared out among heads", knobs, _draw, script="tour", size=(7.0, 2.0))


def _draw(figure: Figure, n_head: int, d_model: int) -> str:
    split_bar(d_model, n_head, ax=figure.add_subplot())
    head_dim = d_model // n_head
    heads = "1 head" if n_head == 1 else f"{n_head} heads"
    return f"{heads} of head_dim {head_dim}: {n_head} × {head_dim} = {d_model}."
