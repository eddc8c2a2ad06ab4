"""Lab 00: one token's width, cut into heads."""

from __future__ import annotations

from ..plots.rows import split_bar
from .panel import Panel, head_controls


def tour(n_head: int = 12, d_model: int = 768) -> Panel:
    """A panel with n_head and d_model; shows the heads, or why they don't fit and what would."""
    return Panel("One token cut into heads", head_controls(n_head, d_model), _draw, size=(7.0, 2.0))


def _draw(figure, n_head: int, d_model: int) -> str:
    split_bar(d_model, n_head, ax=figure.add_subplot())
    head_dim = d_model // n_head
    heads = "1 head" if n_head == 1 else f"{n_head} heads"
    return f"{heads} of head_dim {head_dim}: {n_head} × {head_dim} = {d_model}."
