"""A traced launch as a picture: each tensor a grid, who touches its elements and how often."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from labs_lib.cuda.tiles import BLOCKS, NOBODY, THREADS, Tiles
from labs_lib.cuda.words import many, place_words
from labs_lib.plots.grids import heatmap
from labs_lib.plots.style import COLOUR_MAP, COLOURS, FAINT, figure, ink_on, look

ACROSS, WIDTH, WORDS = 3, 3.6, 1.4  # panels in a row; inches of one, and of the words around it
LETTERS = 36  # of a title's line
MOST_NUMBERS, POINTS_A_DIGIT = 260, 7.0
MOST_NAMES = 36  # blocks whose numbers stand in their tiles
LINE = COLOURS[1]


@dataclass(frozen=True)
class Panel:
    """Half of a tensor's story: `what` is read or write; `title` and `note` say what is seen."""

    name: str
    what: str
    title: str
    note: str


def panels(trace) -> list[Panel]:
    """What a picture of the trace shows, in words: one panel for each tensor read or written."""
    made = []
    for name, tiles in trace.tiles.items():
        for what, counts in (("read", tiles.reads), ("write", tiles.writes)):
            if np.any(counts):
                title = _title_read(tiles) if what == "read" else _title_write(tiles)
                made.append(Panel(name, what, f"{name}: {title}", _note(trace, tiles, what)))
    return made


def draw(trace, *, block: tuple[int, ...] | None = None, into: Figure | None = None) -> list[Axes]:
    """Draw a trace: how often each element is read, and which block or thread writes it.

    Lines frame what one watched block reads and writes, thin lines what its first warp does;
    `block` says which, the first one otherwise. Elements of a large tensor are drawn several to a
    box. Draws into the figure `into`, else into a new notebook figure.
    Raises KeyError for a block that was not watched.
    """
    shown = panels(trace)
    chosen = _block(trace, block)
    across = max(1, min(ACROSS, len(shown)))
    down = max(1, -(-len(shown) // across))
    with look():
        if into is None:
            aspect = max((_aspect(_boxes(trace.tiles[p.name])) for p in shown), default=0.1)
            into, _ = figure(WIDTH * across, ((WIDTH - 0.9) * aspect + WORDS) * down + 0.4)
        into.clear()
        axes = [into.add_subplot(down, across, i + 1) for i in range(len(shown))]
        for ax, panel in zip(axes, shown, strict=True):
            tiles = trace.tiles[panel.name]
            paint = _paint_reads if panel.what == "read" else _paint_writes
            paint(ax, tiles)
            _frame(ax, trace, tiles, panel.what, chosen)
            _name_axes(ax, tiles, panel)
        into.suptitle(_headline(trace, chosen, bool(shown)), x=0.01, ha="left", fontsize=11)
    return axes


def _headline(trace, chosen, any_shown: bool) -> str:
    blocks, threads = (int(np.prod(size)) for size in (trace.grid, trace.block))
    words = f"{trace.kernel}: {many(blocks, 'block')} of {many(threads, 'thread')}"
    if not any_shown:
        return f"{words} touch no tensor"
    if chosen is None:
        return words
    return f"{words}; framed: block {place_words(chosen, trace.grid)}, thin: its first warp"


def _title_read(tiles: Tiles) -> str:
    mean = _mean(tiles.reads, tiles)
    low, high = mean.min(), mean.max()
    if low == high and float(low).is_integer():
        return f"each element is read {_times(int(low))}"
    return f"elements are read {low:.4g} to {high:.4g} times"


def _mean(counts, tiles: Tiles) -> np.ndarray:
    """How often each element of a box, on average; boxes without elements are left out."""
    elements = np.array(tiles.elements)
    return np.ma.array(counts, mask=elements == 0) / np.maximum(elements, 1)


def _title_write(tiles: Tiles) -> str:
    times, count = np.array(tiles.writes), np.array(tiles.elements)
    who, block = np.array(tiles.who), np.array(tiles.block)
    writers = len(set(block[block >= 0].tolist()))
    if (who == BLOCKS).any() and tiles.exact:
        return "several blocks write one element"
    never = int(count[times == 0].sum())
    if never:
        return f"{never:,} of {count.sum():,} elements are never written"
    often = f"{times.max() / count[times == times.max()][0]:.4g}"
    once = "once" if (times == count).all() else f"up to {often} times"
    if writers == 1:
        alone = tiles.exact and (who != THREADS).all()
        return f"each thread writes its own {once}" if alone else f"one block writes all {once}"
    return f"{writers:,} blocks write, each its own part, {once}"


def _note(trace, tiles: Tiles, what: str) -> str:
    read = what == "read"
    rows = [li for li in trace.lines if li.where == tiles.name and (li.what == "read") == read]
    requests = sum(li.requests for li in rows)
    parts = []
    if requests:
        rate = f"{sum(li.sectors for li in rows) / requests:.3g}"
        parts.append(f"{rate} {'sector' if rate == '1' else 'sectors'} per request")
    if not tiles.exact:
        parts.append(f"a box is {tiles.high} × {tiles.wide} elements")
    if read and not np.any(tiles.writes):
        who = max(map(max, tiles.who))
        who_read = (
            "one thread reads each",
            "several threads read each",
            "several blocks read each",
        )
        parts.append(who_read[who])
    first, *more = parts or [""]
    return "\n".join(filter(None, [first, ", ".join(more)]))


def _paint_reads(ax: Axes, tiles: Tiles) -> None:
    mean = _mean(tiles.reads, tiles)
    whole = bool((mean == mean.round()).all())
    text = f"{mean.max():.0f}" if whole else f"{mean.max():.1f}"
    numbers = _fits(mean.shape, len(text))
    limits = (0, mean.max())
    heatmap(mean, decimals=0 if whole else 1, ax=ax, show_numbers=numbers, limits=limits)
    if not numbers and mean.min() == mean.max():
        middle = mean.shape[1] / 2 - 0.5, mean.shape[0] / 2 - 0.5
        _number(ax, *middle, f"read {_times(int(mean.max()))}" if whole else text, 1.0)
    elif not numbers:
        _bar(ax, ax.images[0], "times read")


def _paint_writes(ax: Axes, tiles: Tiles) -> None:
    """Colours and numbers are blocks; where one block writes all, threads."""
    block, thread = np.array(tiles.block), np.array(tiles.thread)
    one = len(set(block[block >= 0].tolist())) <= 1
    values = thread if one else block
    shown = np.ma.array(values, mask=values == NOBODY)
    high = max(1, int(values.max()))
    ax.set_facecolor(FAINT)
    picture = ax.imshow(
        shown, cmap=COLOUR_MAP, vmin=0, vmax=high, aspect="auto", interpolation="nearest"
    )
    if not one:
        ax.add_collection(LineCollection(borders(values), colors="white", linewidths=0.8))
    if one and _fits(values.shape, len(str(high))):
        for row, column in np.argwhere(values >= 0):
            value = int(values[row, column])
            _number(ax, column, row, value, value / high)
    elif not one and len(np.unique(values)) <= MOST_NAMES:
        for number in np.unique(values[values >= 0]).tolist():
            rows, columns = np.nonzero(values == number)
            own = (
                f"block {number}" if columns.max() - columns.min() >= shown.shape[1] / 5 else number
            )
            _number(ax, np.median(columns), np.median(rows), own, number / high)
    else:
        _bar(ax, picture, "thread" if one else "block")


def _bar(ax: Axes, picture, label: str) -> None:
    """What the colours stand for, as high as the panel."""
    beside = ax.inset_axes((1.03, 0.0, 0.05, 1.0))
    bar = ax.figure.colorbar(picture, cax=beside, label=label)
    bar.locator = MaxNLocator(integer=True, nbins=6)
    bar.update_ticks()


def _number(ax: Axes, x: float, y: float, value: object, share: float) -> None:
    ink = ink_on(matplotlib.colormaps[COLOUR_MAP](share))
    ax.text(x, y, f"{value}", ha="center", va="center", color=ink, fontsize=8)


def _fits(shape: tuple[int, int], digits: int) -> bool:
    """Whether numbers with so many digits can be read in the boxes of a panel."""
    rows, columns = shape
    wide, high = 72 * (WIDTH - 0.9) / columns, 72 * (WIDTH - 0.9) * _aspect(shape) / rows
    return rows * columns <= MOST_NUMBERS and wide >= POINTS_A_DIGIT * digits and high >= 11


def _boxes(tiles: Tiles) -> tuple[int, int]:
    return len(tiles.reads), len(tiles.reads[0])


def _aspect(shape: tuple[int, int]) -> float:
    """Height over width of a panel: a single row is low, a tall matrix no higher than wide."""
    return float(np.clip(1.6 * shape[0] / shape[1], 0.12 if shape[0] == 1 else 0.4, 0.85))


def _frame(ax: Axes, trace, tiles: Tiles, what: str, chosen) -> None:
    """Lines around what the chosen block, and its first warp, read or write of this tensor."""
    if chosen is None:
        return
    watched = trace.log.blocks.index(chosen)
    for first_warp, width in ((True, 1.2), (False, 2.6)):  # where both run, the thick one is seen
        pieces = borders(tiles.touched_by(watched, what, first_warp=first_warp))
        for colour, more in (("white", 1.8), (LINE, 0.0)):
            lines = LineCollection(
                pieces, colors=colour, linewidths=width + more, capstyle="projecting", zorder=2
            )
            lines.set_clip_on(False)
            ax.add_collection(lines)


def borders(values: np.ndarray) -> list[list[tuple[float, float]]]:
    """Straight lines between neighbouring boxes [rows, columns] whose values differ."""
    full = np.pad(values.astype(np.int64), 1)
    lines = []
    for x, column in enumerate((full[:, 1:] != full[:, :-1]).T):
        lines += [[(x - 0.5, a - 1.5), (x - 0.5, b - 1.5)] for a, b in _runs(column)]
    for y, row in enumerate(full[1:] != full[:-1]):
        lines += [[(a - 1.5, y - 0.5), (b - 1.5, y - 0.5)] for a, b in _runs(row)]
    return lines


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """(start, end) of each run of True."""
    edges = np.flatnonzero(np.diff(np.pad(flags.astype(np.int8), 1)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _name_axes(ax: Axes, tiles: Tiles, panel: Panel) -> None:
    rows, columns = _boxes(tiles)
    for axis, count, step in ((ax.yaxis, rows, tiles.high), (ax.xaxis, columns, tiles.wide)):
        places = range(0, count, max(1, -(-count // 8)))
        axis.set_ticks(list(places), [f"{place * step}" for place in places])
        axis.set_tick_params(length=0)
    ax.set_ylabel(f"row of {panel.name}" if rows > 1 else "")
    ax.set_xlabel("\n".join(filter(None, [f"column of {panel.name}", panel.note])))
    ax.set_title(textwrap.fill(panel.title, LETTERS), fontsize=10)
    ax.set_box_aspect(_aspect((rows, columns)))
    ax.spines[:].set_visible(False)


def _block(trace, block):
    if block is None:
        return trace.log.blocks[0] if trace.log.blocks else None
    chosen = (*block, 0, 0)[:3]
    trace.log.warps(chosen)  # refuses a block that was not watched
    return chosen


def _times(n: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(n, f"{n:,} times")
