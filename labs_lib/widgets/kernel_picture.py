"""The still picture of one instruction of a warp: memory above, the line of the source below."""

from __future__ import annotations

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..cuda.accesses import SECTOR, WORD, Request
from ..cuda.words import many
from ..plots.memory_rows import FEWEST_ROWS, WORDS, memory_rows
from ..plots.style import COLOURS, INK

LETTERS = 104  # of a line of the source


def draw_request(figure: Figure, request: Request, source: str) -> None:
    """Which lane touches which bytes, what comes along or clashes, and where the source says so."""
    few = len({word // WORDS for word in request.words}) <= FEWEST_ROWS
    above, below = figure.subplots(2, 1, height_ratios=(2, 3) if few else (5, 2))
    (_draw_banks if request.site.shared else _draw_sectors)(above, request)
    _draw_source(below, source, request.site.line, 6 if few else 3)


def _lanes_of_words(request: Request) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for lane, at in sorted(request.lanes.items()):
        at += request.site.phase
        for word in range(at // WORD, (at + request.size - 1) // WORD + 1):
            found.setdefault(word, []).append(lane)
    return found


def _draw_sectors(ax: Axes, request: Request) -> None:
    words, site = _lanes_of_words(request), request.site
    fetched = [s * SECTOR // WORD + i for s in request.sectors for i in range(SECTOR // WORD)]
    memory_rows(
        words,
        fetched=fetched,
        label=lambda word: f"{site.name}[{max(0, word * WORD - site.phase) // site.item}]",
        x_label="word of 4 bytes (a row: 128 bytes); between dark lines: a sector; numbers: lanes",
        title=_title(request),
        ax=ax,
    )


def _draw_banks(ax: Axes, request: Request) -> None:
    memory_rows(
        _lanes_of_words(request),
        clashes=request.clashes,
        label=lambda word: f"{request.site.name} + {word * WORD}",
        x_label="bank of shared memory; in the cells: the lane, below: words wanted of one bank",
        title=_title(request),
        ax=ax,
    )


def _title(request: Request) -> str:
    lanes = len(request.lanes)
    verb = {"read": "read", "write": "write"}.get(request.site.what, "add")
    who, verb = ("One lane", f"{verb}s") if lanes == 1 else (f"{lanes} lanes", verb)
    if not request.site.shared:
        return f"{who} {verb} {request.site.name}: {many(len(request.sectors), 'sector')}"
    return f"{who} {verb} {request.site.name}: {many(request.passes, 'pass')}"


def _draw_source(ax: Axes, source: str, line: int | None, around: int) -> None:
    """The line of a step, and as many lines as `around` says above and below it."""
    ax.set_axis_off()
    ax.set_xlim(0, 1)
    ax.set_ylim(2 * around + 0.5, -0.5)
    if not source.strip() or line is None:
        why = "its line is not known" if source.strip() else "this copy keeps the source back"
        ax.set_title(f"Line {line}: {why}" if line else why)
        return
    lines = source.split("\n")
    first = max(0, min(line - 1 - around, len(lines) - 2 * around - 1))
    shown = textwrap.dedent("\n".join(lines[first : first + 2 * around + 1])).split("\n")
    ax.set_title(f"Line {line} of the source")
    for i, text in enumerate(shown):
        own = first + i == line - 1
        if own:
            ax.add_patch(Rectangle((0, i - 0.5), 1, 1, color="#fff1d6", lw=0, zorder=0))
        text = text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
        weight = "bold" if own else "normal"
        colour = COLOURS[1] if own else INK
        label = f"{first + i + 1:3d} {text}".replace("$", r"\$")
        shown_text = ax.text(
            0.0,
            i,
            label,
            color=colour,
            weight=weight,
            family="DejaVu Sans Mono",
            fontsize=7,
            va="center",
            clip_on=True,
        )
        shown_text.set_in_layout(False)
