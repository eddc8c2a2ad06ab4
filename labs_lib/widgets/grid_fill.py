"""Lab 09: how many blocks a launch has, how many SMs they keep busy, and what a tile wastes.

n_head decides the grid, and with d_model it decides head_dim, which tensor cores take in pieces
of 16. front/grid_fill.mjs deals the blocks out in the browser.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..cuda.words import many
from ..plots.grids import heatmap
from ..plots.rows import split_bar
from .explorer import Explorer
from .knobs import choice, head_knobs, slider

GPUS = {"RTX 4090: 128 SMs": 128, "A100: 108 SMs": 108, "H100: 132 SMs": 132}
CUTS = {"a block for each head": 0, "a block for 128 queries": 128, "a block for 64 queries": 64}
PIECE = 16  # what a tensor core takes of a vector at once, in CUDA C++
ACROSS = 16


def grid_fill(*, n_head: int = 12, d_model: int = 768) -> Explorer:
    """An explorer of a GPU's SMs with the blocks of an attention launch on them, first one text."""
    knobs = [
        *head_knobs(n_head, d_model, most_heads=128, most_width=16384),
        slider("batch", 1, 1, 64, "texts at a time"),
        slider("tokens", 1024, 1, 16384, "queries of a text"),
        choice("grid", CUTS.items(), "which work is one block's"),
        choice("gpu", GPUS.items(), "how many multiprocessors there are"),
    ]
    return Explorer("Blocks on the SMs of a GPU", knobs, _draw, script="grid_fill", size=(8.0, 4.4))


def blocks_of(n_head: int, batch: int, tokens: int, queries: int) -> int:
    """Blocks of a launch; `queries` of a head are one block's, 0 stands for all of them."""
    pieces = math.ceil(tokens / queries) if queries else 1
    return n_head * batch * pieces


def _draw(
    figure: Figure, n_head: int, d_model: int, batch: int, tokens: int, grid: int, gpu: int
) -> str:
    blocks, head_dim = blocks_of(n_head, batch, tokens, grid), d_model // n_head
    upper, lower = figure.subplots(2, 1, height_ratios=(5, 1))
    busy = min(blocks, gpu)
    _draw_sms(upper, blocks, gpu, f"{many(blocks, 'block')} on {gpu} SMs: {busy / gpu:.1%} busy")
    filled = math.ceil(head_dim / PIECE) * PIECE
    split_bar(
        filled,
        filled // PIECE,
        ax=lower,
        title=f"head_dim {head_dim} in pieces of {PIECE}: {head_dim / filled:.0%} useful",
    )
    lower.set_xlabel(f"numbers of one head, filled up to {filled}")
    lower.axvspan(head_dim, filled, facecolor="white", alpha=0.6, lw=0)
    return _sentence(blocks, gpu, n_head * batch, head_dim, filled)


def _draw_sms(ax: Axes, blocks: int, sms: int, title: str) -> None:
    each, more = divmod(blocks, sms)
    counts = np.full(math.ceil(sms / ACROSS) * ACROSS, np.nan)
    counts[:sms] = each
    counts[:more] += 1
    heatmap(
        counts.reshape(-1, ACROSS),
        title=title,
        rows="",
        columns="SMs; in each the number of its blocks",
        row_labels=[""] * (len(counts) // ACROSS),
        column_labels=[""] * ACROSS,
        limits=(0, max(1, each + (more > 0))),
        decimals=0,
        ax=ax,
    )
    ax.vlines(np.arange(1, ACROSS) - 0.5, *ax.get_ylim(), color="white", lw=1.5)
    ax.hlines(np.arange(1, len(counts) // ACROSS) - 0.5, *ax.get_xlim(), color="white", lw=1.5)


def _sentence(blocks: int, sms: int, heads: int, head_dim: int, filled: int) -> str:
    rounds = math.ceil(blocks / sms)
    if blocks < sms:
        told = f"{sms - blocks} of {sms} SMs have nothing to do."
    elif blocks % sms == 0:
        told = f"Each SM has {many(rounds, 'block')}."
    else:
        told = f"{blocks % sms} SMs have {rounds} blocks each, the others {rounds - 1}."
    waste = filled - head_dim
    zeros = f"{waste} zeros fill it up" if waste else "nothing to fill up"
    return (
        f"{many(heads, 'head')} of all texts make {many(blocks, 'block')}. {told} "
        f"head_dim {head_dim}: {many(filled // PIECE, 'piece')} of {PIECE}, {zeros}."
    )
