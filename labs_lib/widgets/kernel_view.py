"""Lab 09: a kernel's accesses, one instruction of a warp after the other.

Which lane touches which bytes, which sectors of 32 bytes come along, which banks of shared memory
clash, and the line of the source that does it. The steps are those of a trace, of your own kernel.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..cuda import Trace
from ..cuda.accesses import SECTOR, WORD, Request
from ..plots.memory_rows import FEWEST_ROWS, WORDS, memory_rows
from ..plots.style import COLOURS, INK
from .panel import Panel, choice, head_controls, slider

LETTERS = 104  # of a line of the source
TraceOf = Callable[..., Trace]


def kernel_view(
    trace: Trace | TraceOf, *, warp: int = 0, step: int = 1, n_head: int = 12, d_model: int = 768
) -> Panel:
    """A panel that steps through what the warps of a traced block do.

    `trace` is a Trace (`k.trace[grid, block](...)`; `k.trace.steps(block=...)` watches other
    blocks), or a function of n_head and d_model that makes one: then both can be moved, too.
    """
    return _KernelView(trace, warp, step, n_head, d_model)


class _KernelView(Panel):
    def __init__(self, given: Trace | TraceOf, warp: int, step: int, n_head: int, d_model: int):
        self.trace, self.maker = (given, None) if isinstance(given, Trace) else (None, given)
        self.made: dict[tuple[int, int], Trace] = {}
        self.steps: list[Request] = []
        controls: dict[str, widgets.Widget] = (
            {} if self.maker is None else head_controls(n_head, d_model)
        )
        controls |= {
            "block": choice("block", [("none", None)], "a block whose accesses were kept"),
            "warp": choice("warp", [(str(warp), warp)], "32 threads that go together"),
            "step": slider("step", step, 1, max(step, 1), "one instruction of the warp"),
        }
        super().__init__("a kernel's accesses, step by step", controls, self._draw, size=(8.4, 5.4))

    def _picture(self) -> str:
        if self._illegal_pair() is None:
            held, self._held = self._held, True
            try:
                self._fit()
            finally:
                self._held = held
        return super()._picture()

    def _fit(self) -> None:
        """Gives the controls the blocks, warps and steps that the trace has."""
        if self.maker is not None:
            pair = (self.controls["n_head"].value, self.controls["d_model"].value)
            if pair not in self.made:
                self.made[pair] = self.maker(*pair)
            self.trace = self.made[pair]
        log = self.trace.log
        blocks = [b for b in log.blocks if log.warps(b)]
        _offer(self.controls["block"], [(str(b), b) for b in blocks] or [("none", None)])
        block = self.controls["block"].value
        warps = log.warps(block) if block else []
        _offer(self.controls["warp"], [(str(w), w) for w in warps] or [("none", None)])
        warp = self.controls["warp"].value
        self.steps = log.requests(block, warp) if warp is not None else []
        self.controls["step"].max = max(1, len(self.steps))

    def _draw(self, figure: Figure, block, warp, step: int, **_: Any) -> str:
        if not self.steps:
            figure.text(0.02, 0.5, "nothing was touched", fontsize=11)
            return "No thread of this launch touched a tensor or shared memory."
        request = self.steps[step - 1]
        few = len({word // WORDS for word in request.words}) <= FEWEST_ROWS
        above, below = figure.subplots(2, 1, height_ratios=(2, 3) if few else (5, 2))
        (_draw_banks if request.site.shared else _draw_sectors)(above, request)
        _draw_source(below, self.trace.source, request.site.line, 6 if few else 3)
        return "\n".join([self._where(step, request), _what(request), *self._rest(step, block)])

    def _where(self, step: int, request: Request) -> str:
        first = min(request.lanes)
        thread = _thread(request.warp * 32 + first, self.trace.block)
        barriers = {0: "before any barrier", 1: "after 1 barrier"}
        when = barriers.get(request.step, f"after {request.step} barriers")
        return (
            f"Step {step:,} of {len(self.steps):,} of warp {request.warp} in block "
            f"{request.block}, {when}; lane {first} is thread {thread}."
        )

    def _rest(self, step: int, block) -> list[str]:
        log = self.trace.log
        if step < len(self.steps) or log.whole[log.blocks.index(block)]:
            return []
        return ["The record ends here; the kernel goes on. k.trace.steps(most=...) keeps more."]


def _offer(control: widgets.Dropdown, options: list[tuple[str, Any]]) -> None:
    """Exchanges a list's options and keeps what is chosen, where it is still there."""
    if list(control.options) == options:
        return
    before = control.value
    control.options = options
    values = [value for _, value in options]
    control.value = before if before in values else values[0]


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
        x_label="word of 4 bytes in a line of 128; between dark lines: a sector; numbers: lanes",
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
    lanes, verb = (
        len(request.lanes),
        {"read": "read", "write": "write"}.get(request.site.what, "add"),
    )
    who = "One lane" if lanes == 1 else f"{lanes} lanes"
    verb += "s" if lanes == 1 else ""
    if not request.site.shared:
        return f"{who} {verb} {request.site.name}: {_count(len(request.sectors), 'sector')}"
    return f"{who} {verb} {request.site.name}: {_count(request.passes, 'pass')}"


def _what(request: Request) -> str:
    site, size = request.site, request.size
    line = f"Line {site.line}" if site.line else "A line that isn't known"
    verb = {"read": "reads", "write": "writes"}.get(site.what, "changes in one piece")
    start = f"{line} {verb} {site.name}: {_count(len(request.lanes), 'lane')} of {size} bytes"
    if not site.shared:
        wanted, fetched = _bytes(request), SECTOR * len(request.sectors)
        return (
            f"{start}; {_count(len(request.sectors), 'sector')} of {SECTOR} bytes, "
            f"{fetched} bytes moved for {wanted} wanted."
        )
    banks = request.clashes
    worst = max(banks, key=banks.get)
    if request.passes == 1:
        return f"{start}; one pass through the banks, no two words of one bank."
    if banks[worst] == 1:
        return f"{start}; {request.passes} passes, as lanes of {size} bytes go by parts of a warp."
    return f"{start}; {request.passes} passes: {banks[worst]} different words lie in bank {worst}."


def _bytes(request: Request) -> int:
    """How many different bytes the lanes want."""
    return len({at + i for at in request.lanes.values() for i in range(request.size)})


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
        style = {"family": "DejaVu Sans Mono", "fontsize": 7, "va": "center", "clip_on": True}
        weight = "bold" if own else "normal"
        colour = COLOURS[1] if own else INK
        label = f"{first + i + 1:3d} {text}".replace("$", r"\$")
        ax.text(0.0, i, label, color=colour, weight=weight, **style).set_in_layout(False)


def _thread(linear: int, block: tuple[int, int, int]) -> str:
    x, y = linear % block[0], linear // block[0] % block[1]
    parts = (x, y, linear // (block[0] * block[1]))
    used = max((i + 1 for i, size in enumerate(block) if size > 1), default=1)
    return str(x) if used == 1 else str(parts[:used])


def _count(n: int, word: str) -> str:
    many = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{n} {word if n == 1 else many}"
