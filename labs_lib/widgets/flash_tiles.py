"""Lab 11: tiles over queries and keys, what lies on the chip, and what crosses to memory.

Move the tile, n_head and d_model, and play the tiles in the order in which they are worked on.
Hidden tiles are left out under a causal mask. All bytes are counted load by load and store by
store. front/flash_tiles.mjs does the same in the browser.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..cuda.words import many
from ..plots.style import COLOURS, FAINT, INK
from .explorer import Explorer
from .knobs import choice, head_knobs, slider, steps

MOST_HEADS, MOST_WIDTH, MOST_TOKENS, SMALLEST = 32, 2048, 4096, 16
MASKS = ("no mask", "causal")
ITEMSIZE, WIDE = 2, 4
BEFORE, NOW, LATER, HIDDEN = range(4)
MOST_LINES = 64  # between tiles; more would hide them


def flash_tiles(*, n_head: int = 12, d_model: int = 768, step: int = 6) -> Explorer:
    """An explorer that walks over the tiles of one head and counts its bytes."""
    most = (MOST_TOKENS // SMALLEST) ** 2
    knobs = [
        *head_knobs(n_head, d_model, most_heads=MOST_HEADS, most_width=MOST_WIDTH),
        slider("tokens", 1024, 64, MOST_TOKENS, "queries, and as many keys", step=64),
        slider("block_q", 128, SMALLEST, 512, "queries of a tile", step=16),
        slider("block_k", 128, SMALLEST, 512, "keys of a tile", step=16),
        choice("mask", MASKS, "whether a token may look ahead"),
        steps("step", step, most, "how many tiles have been worked on", pace=250),
    ]
    return Explorer(
        "Tiles of queries and keys", knobs, _draw, script="flash_tiles", size=(8.4, 3.8)
    )


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

    @cached_property
    def order(self) -> list[tuple[int, int]]:
        """The tiles that are worked on, one after the other."""
        rows, columns = self.shape
        return [(i, j) for i in range(rows) for j in range(columns) if not self.hidden(i, j)]

    def hidden(self, i: int, j: int) -> bool:
        """Whether no query of tile row i may see a key of tile column j."""
        last_query = min(self.tokens, (i + 1) * self.block_q) - 1
        return self.causal and j * self.block_k > last_query

    @property
    def on_chip(self) -> dict[str, int]:
        """Bytes of what lies on the chip with a tile; scores, m, l and o are float32."""
        tile_q, tile_k = (self.block_q, self.head_dim), (self.block_k, self.head_dim)
        scores, sums = (self.block_q, self.block_k), (self.block_q, 2)
        inputs = {"q": (tile_q, ITEMSIZE), "k": (tile_k, ITEMSIZE), "v": (tile_k, ITEMSIZE)}
        made = {"scores": (scores, WIDE), "o": (tile_q, WIDE), "m, l": (sums, WIDE)}
        both = (inputs | made).items()
        return {name: rows * columns * size for name, ((rows, columns), size) in both}

    @cached_property
    def crossing(self) -> int:
        """Bytes that cross in the whole pass."""
        return self.crossed(len(self.order))

    def crossed(self, at: int) -> int:
        """Bytes that have crossed when `at` tiles have been worked on, each load and store added.

        A tile row's q comes once; each tile's k and v come anew; o and lse go when the row is done.
        """
        total = 0
        for place, (i, j) in enumerate(self.order[:at]):
            queries = min(self.block_q, self.tokens - i * self.block_q)
            keys = min(self.block_k, self.tokens - j * self.block_k)
            if place == 0 or self.order[place - 1][0] != i:
                total += queries * self.head_dim * ITEMSIZE  # q
            for _ in ("k", "v"):
                total += keys * self.head_dim * ITEMSIZE
            if place + 1 == len(self.order) or self.order[place + 1][0] != i:
                total += queries * self.head_dim * ITEMSIZE  # o
                total += queries * WIDE  # lse
        return total

    @cached_property
    def crossing_whole(self) -> int:
        """Bytes that cross where each whole matrix is written to memory and read back."""
        narrow, square = self.head_dim, self.tokens  # numbers in a row
        moves = {"read q": narrow, "read k": narrow, "write scores": square, "read scores": square}
        moves |= {"write weights": square, "read weights": square, "read v": narrow}
        moves |= {"write o": narrow}
        return sum(width * ITEMSIZE for width in moves.values() for _ in range(self.tokens))


def _draw(figure: Figure, n_head: int, d_model: int, tokens: int, block_q: int, block_k: int,
          mask: str, step: int) -> str:  # fmt: skip
    tiling = Tiles(tokens, d_model // n_head, block_q, block_k, mask == MASKS[1])
    at = min(step, len(tiling.order))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_tiles(left, tiling, at)
    _draw_bytes(right, tiling, at)
    return _sentence(tiling, at, n_head)


def _draw_tiles(ax: Axes, tiling: Tiles, at: int) -> None:
    rows, columns = tiling.shape
    state = np.full((rows, columns), HIDDEN)
    for number, (i, j) in enumerate(tiling.order, 1):
        state[i, j] = BEFORE if number < at else NOW if number == at else LATER
    shades = np.array([to_rgb(c) for c in (COLOURS[0], COLOURS[1], FAINT, "#ffffff")])
    ax.imshow(shades[state], extent=(0, columns, rows, 0), aspect="auto")
    for edge in range(rows + 1) if rows <= MOST_LINES else ():
        ax.axhline(edge, color="white", lw=0.6)
    for edge in range(columns + 1) if columns <= MOST_LINES else ():
        ax.axvline(edge, color="white", lw=0.6)
    ax.set_xlabel(f"tiles of {tiling.block_k} keys")
    ax.set_ylabel(f"tiles of {tiling.block_q} queries")
    ax.set_title(f"Tile {at} of {len(tiling.order)}: one at a time is on the chip")
    names = ("done", "on the chip", "to come")
    handles = [Patch(color=shades[i], label=name) for i, name in enumerate(names)]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)


def _draw_bytes(ax: Axes, tiling: Tiles, at: int) -> None:
    names = ("whole\nmatrices", "tiles,\nall", "tiles,\nso far")
    amounts = [tiling.crossing_whole / 1e6, tiling.crossing / 1e6, tiling.crossed(at) / 1e6]
    ax.bar(names, amounts, color=(COLOURS[4], COLOURS[0], COLOURS[1]), width=0.6)
    for place, amount in enumerate(amounts):
        ax.text(place, amount, f"{amount:.3g} MB", ha="center", va="bottom", color=INK)
    ax.set_ylim(0, 1.2 * max(amounts))
    ax.set_ylabel("bytes that cross (MB)")
    ax.set_title("One head, forward")


def _sentence(tiling: Tiles, at: int, n_head: int) -> str:
    rows, columns = tiling.shape
    left_out = rows * columns - len(tiling.order)
    skipped = f", {left_out} of {rows * columns} are left out" if left_out else ""
    where = "No tile yet"
    if at:
        i, j = tiling.order[at - 1]
        where = f"Queries from {i * tiling.block_q} on meet keys from {j * tiling.block_k} on"
    ratio = tiling.crossing_whole / tiling.crossing
    return (
        f"{many(n_head, 'head')} of {tiling.head_dim}. {where}{skipped}. "
        f"On the chip: {sum(tiling.on_chip.values()) / 2**10:.4g} KiB.\n"
        f"{tiling.crossed(at) / 1e6:.3g} MB have crossed, {tiling.crossing / 1e6:.3g} MB a head "
        f"will; whole matrices move {ratio:.2g} times as much."
    )
