"""The still picture of lab 06's atlas: all heads of a model, and one of them."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..models.atlas import WHOLE
from ..plots.grids import heatmap
from ..plots.style import COLOURS, INK
from .head_facts import Facts, Said


def draw_atlas(
    figure: Figure, facts: Facts, role: str, layer: int, head: int, place: int, said: Said | None
) -> None:
    """Draw every head's score, and of one head its weights, the output with it and without it,
    and its cost among those of all heads.
    """
    tall, low = figure.add_gridspec(2, 1, height_ratios=(3, 1))
    left, right = tall.subgridspec(1, 2, width_ratios=(4, 5))
    grid = figure.add_subplot(left)
    _draw_scores(grid, facts, role)
    if not facts.has(layer, head):
        return
    frame = Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, ec=COLOURS[1], lw=2.5)
    grid.add_patch(frame)
    _draw_weights(figure.add_subplot(right), facts, layer, head, place)
    left, right = low.subgridspec(1, 2, width_ratios=(5, 4))
    _draw_output(figure.add_subplot(left), facts, said)
    _draw_costs(figure.add_subplot(right), facts, layer, head)


def _draw_scores(ax: Axes, facts: Facts, role: str) -> None:
    if role not in facts.scores:
        ax.set_axis_off()
        ax.text(0, 0.5, f"no head can look at the {role} token", transform=ax.transAxes)
        return
    title = f'{facts.title}: share of weight on "{role}"'
    heatmap(
        facts.scores[role],
        title=title,
        rows="layer",
        columns="head",
        limits=(0, 1),
        show_numbers=False,
        ax=ax,
    )


def _draw_weights(ax: Axes, facts: Facts, layer: int, head: int, place: int) -> None:
    names = [token.strip() for token in facts.tokens]
    seq = len(names)
    heatmap(
        facts.weights[layer, head] / WHOLE,
        title=f"Head {head} of layer {layer} on a sentence",
        rows="",
        columns="the token it looks at",
        row_labels=names,
        column_labels=names,
        mask=np.tri(seq, dtype=bool) if facts.causal else None,
        limits=(0, 1),
        show_numbers=False,
        bar="share of its weight",
        ax=ax,
    )
    ax.tick_params(axis="x", rotation=60)
    row = min(place, seq - 1)
    ax.add_patch(Rectangle((-0.5, row - 0.5), seq, 1, fill=False, ec=COLOURS[1], lw=2))


def _draw_output(ax: Axes, facts: Facts, said: Said | None) -> None:
    names, whole, now = said or (facts.names, facts.said, None)
    places = np.arange(len(names))
    ax.barh(
        places - (0.0 if now is None else 0.2),
        whole,
        0.36,
        color=COLOURS[0],
        label="all heads speak",
    )
    if now is not None:
        ax.barh(places + 0.2, now, 0.36, color=COLOURS[1], label="it is silent")
    ax.set_yticks(places, [name.strip() for name in names])
    ax.invert_yaxis()
    ax.legend(fontsize=8)
    ax.set_xlim(min(0.0, *whole, *(now or ())), 1)
    ax.set_title(facts.asked, fontsize=10)
    ax.set_xlabel(facts.unit)


def _draw_costs(ax: Axes, facts: Facts, layer: int, head: int) -> None:
    ax.hist(np.ravel(facts.costs), bins=40, color=COLOURS[0])
    ax.axvline(facts.costs[layer][head], color=COLOURS[1], lw=2)
    ax.axvline(0, color=INK, lw=0.8)
    ax.set_title("What silencing a head costs (recorded)", fontsize=10)
    ax.set_xlabel("rise of the loss (nats)")
    ax.set_ylabel("heads")
