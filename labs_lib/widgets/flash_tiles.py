"""Lab 11: tiles over queries and keys, what lies on the chip, and what crosses to memory.

Move the tile, n_head and d_model, and step through the tiles in the order in which they are worked
on. Hidden tiles are left out under a causal mask.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..plots.style import COLOURS, FAINT, INK
from .panel import Panel, choice, head_controls, slider

MOST_HEADS, MOST_WIDTH = 32, 2048
MASKS = ("no mask", "causal")
ITEMSIZE, WIDE = 2, 4
BEFORE, NOW, LATER, HIDDEN = range(4)


def flash_tiles(*, n_head: int = 12, d_model: int = 768, step: int = 6) -> Panel:
    """A panel that walks over the tiles of one head and counts its bytes."""
    controls = {
        **head_controls(n_head, d_model, most_heads=MOST_HEADS, most_width=MOST_WIDTH),
        "tokens": slider("tokens", 1024, 64, 4096, "queries, and as many keys", step=64),
        "block_q": slider("block_q", 128, 16, 512, "queries of a tile", step=16),
        "block_k": slider("block_k", 128, 16, 512, "keys of a tile", step=16),
        "mask": choice("mask", MASKS, "whether a token may look ahead"),
        "step": slider("step", step, 1, 64, "how many tiles have been worked on"),
    }

    def draw(figure: Figure, n_head: int, d_model: int, tokens: int, block_q: int, block_k: int,
             mask: str, step: int) -> str:  # fmt: skip
        tiling = Tiles(tokens, d_model // n_head, block_q, block_k, mask == MASKS[1])
        at = min(step, len(tiling.order))
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _draw_tiles(left, tiling, at)
        _draw_bytes(right, tiling)
        return _sentence(tiling, at, n_head)

    return Panel("tiles of queries and keys", controls, draw, size=(8.4, 3.8))


@dataclass(frozen=True)
class Tiles:
    """How one head's scores are cut, and what that costs; q, k, v and o take 2 bytes a number."""

    tokens: int
    head_dim: int
    block_q: int
    block_k: int
    causal: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Tiles of queries, tiles of keys."""
        return -(-self.tokens // self.block_q), -(-self.tokens // self.block_k)

    @property
    def order(self) -> list[tuple[int, int]]:
        """The tiles that are worked on, one after the other."""
        rows, columns = self.shape
        return [(i, j) for i in range(rows) for j in range(columns) if not self.hidden(i, j)]

    def hidden(self, i: int, j: int) -> bool:
        """Whether no query of tile row i may see a key of tile column j."""
        last_query = min(self.tokens, (i + 1) * self.block_q) - 1
        return self.causal and j * self.block_k > last_query

    @property
    def on_chip(self) -> int:
        """Bytes of a tile of q, one of k and v, the scores between them, and m, l, o of its rows.

        Scores, m, l and o are float32.
        """
        inputs = (self.block_q + 2 * self.block_k) * self.head_dim * ITEMSIZE
        return inputs + self.block_q * (self.block_k + self.head_dim + 2) * WIDE

    @property
    def crossing(self) -> int:
        """Bytes that cross: q and the output once, k and v for each tile of queries, lse."""
        keys = sum(min(self.block_k, self.tokens - j * self.block_k) for _, j in self.order)
        return (2 * self.tokens + 2 * keys) * self.head_dim * ITEMSIZE + self.tokens * WIDE

    @property
    def crossing_whole(self) -> int:
        """Bytes that cross where scores and weights are written to memory and read back."""
        return (4 * self.tokens * self.head_dim + 4 * self.tokens**2) * ITEMSIZE


def _draw_tiles(ax: Axes, tiling: Tiles, at: int) -> None:
    rows, columns = tiling.shape
    state = np.full((rows, columns), HIDDEN)
    for number, (i, j) in enumerate(tiling.order, 1):
        state[i, j] = BEFORE if number < at else NOW if number == at else LATER
    shades = np.array([to_rgb(c) for c in (COLOURS[0], COLOURS[1], FAINT, "#ffffff")])
    ax.imshow(shades[state], extent=(0, columns, rows, 0), aspect="auto")
    for edge in range(rows + 1):
        ax.axhline(edge, color="white", lw=0.6)
    for edge in range(columns + 1):
        ax.axvline(edge, color="white", lw=0.6)
    ax.set_xlabel(f"tiles of {tiling.block_k} keys")
    ax.set_ylabel(f"tiles of {tiling.block_q} queries")
    ax.set_title(f"Tile {at} of {len(tiling.order)}: one at a time is on the chip")
    names = ("done", "on the chip", "to come")
    handles = [Patch(color=shades[i], label=name) for i, name in enumerate(names)]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)


def _draw_bytes(ax: Axes, tiling: Tiles) -> None:
    amounts = [tiling.crossing_whole / 1e6, tiling.crossing / 1e6]
    ax.bar(["whole matrices", "tiles"], amounts, color=(COLOURS[4], COLOURS[0]), width=0.6)
    for place, amount in enumerate(amounts):
        ax.text(place, amount, f"{amount:.3g} MB", ha="center", va="bottom", color=INK)
    ax.set_ylim(0, 1.2 * max(amounts))
    ax.set_ylabel("bytes that cross (MB)")
    ax.set_title("One head, forward")


def _sentence(tiling: Tiles, at: int, n_head: int) -> str:
    i, j = tiling.order[at - 1]
    rows, columns = tiling.shape
    left_out = rows * columns - len(tiling.order)
    skipped = f", {left_out} of {rows * columns} are left out" if left_out else ""
    ratio = tiling.crossing_whole / tiling.crossing
    return (
        f"{n_head} heads of {tiling.head_dim}. Queries from {i * tiling.block_q} on meet keys from "
        f"{j * tiling.block_k} on{skipped}. On the chip: {tiling.on_chip / 2**10:.0f} KiB.\n"
        f"What crosses is {tiling.crossing / 1e6:.3g} MB a head; whole matrices move {ratio:.2g} "
        "times as much."
    )
