"""Lab 03: the wide projection matrix, cut by head.

Move n_head and d_model, pick a head, and see which numbers of the wide matrix are its own: in W_Q
alone, or in a fused W_QKV in either of its layouts. front/fused_slices.mjs computes the same in the
browser; a student's own function runs here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ..plots.style import COLOURS
from .explorer import Explorer
from .knobs import choice, head_knobs, slider
from .still import students_own

LETTERS = ("q", "k", "v")
LAYOUTS = ("W_Q", "W_QKV, stacked", "W_QKV, interleaved")
_PALE, _PALER = 0.32, 0.18
_MOST_PIXELS = 768
_UNWRITTEN = (
    "Write stack_projections above, run that cell and then this one; the picture is made by it.",
    "your stack_projections is not written yet",
)
_NOT_YOURS = "Not drawn by your function: it makes W_Q alone."


def fused_slices(
    stack: Callable[..., Any] | None = None, *, n_head: int = 12, d_model: int = 768, head: int = 5
) -> Explorer:
    """An explorer of which part of the wide matrix belongs to a head.

    With `stack`, a function like the lab's stack_projections, the picture of W_Q is what that
    function makes of small matrices; a function that fails is explained below.
    """
    knobs = [
        *head_knobs(n_head, d_model),
        slider("head", head, 0, 31, "the head that is shown in full colour"),
        choice("matrix", LAYOUTS, "one letter alone, or all three in one"),
    ]

    def draw(figure: Figure, n_head: int, d_model: int, head: int, matrix: str) -> str:
        if head >= n_head:
            figure.text(0.02, 0.5, f"There is no head {head}.", fontsize=11)
            return f"There is no head {head}: {n_head} heads are numbered 0 to {n_head - 1}."
        ax = figure.add_subplot()
        if stack is not None and matrix == LAYOUTS[0]:
            return _draw_own(ax, stack, n_head, d_model, head)
        sentence = _draw_blocks(ax, n_head, d_model, head, matrix)
        if stack is None:
            return sentence
        ax.set_title(f"{_NOT_YOURS}\n{ax.get_title(loc='left')}")
        return f"{_NOT_YOURS} {sentence}"

    def ask(n_head: int, d_model: int, head: int, matrix: str) -> dict[str, Any] | None:
        if stack is None or matrix != LAYOUTS[0] or head >= n_head:
            return None
        return _seen(stack, n_head, d_model, head)

    return Explorer(
        "a wide projection matrix, cut by head",
        knobs,
        draw,
        script="fused_slices",
        ask=ask,
        data={"asks": stack is not None, "not_yours": _NOT_YOURS},
        size=(7.4, 3.6),
    )


def blocks_of_head(n_head: int, head_dim: int, head: int, matrix: str) -> list[tuple[str, int]]:
    """The blocks of a head in a layout: (letter, first column), each head_dim columns wide."""
    if matrix == LAYOUTS[0]:
        return [("q", head * head_dim)]
    if matrix == LAYOUTS[1]:
        return [(name, (i * n_head + head) * head_dim) for i, name in enumerate(LETTERS)]
    return [(name, (3 * head + i) * head_dim) for i, name in enumerate(LETTERS)]


def _draw_blocks(ax: Axes, n_head: int, d_model: int, head: int, matrix: str) -> str:
    head_dim = d_model // n_head
    columns = d_model if matrix == LAYOUTS[0] else 3 * d_model
    for h in range(n_head):
        for letter, start in blocks_of_head(n_head, head_dim, h, matrix):
            shade = 1.0 if h == head else (_PALE, _PALER)[h % 2]
            ax.axvspan(start, start + head_dim, color=_tint(_colour(letter), shade), lw=0)
    ax.set_xlim(0, columns)
    ax.set_ylim(d_model, 0)
    _name_axes(ax, columns, d_model)
    own = blocks_of_head(n_head, head_dim, head, matrix)
    used = [letter for letter, _ in own]
    ax.legend(
        handles=[Patch(color=_colour(name), label=f"{name} of head {head}") for name in used],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )
    ax.set_title(f"Head {head} has every row, and {_spans(own, head_dim)}")
    name = "W_Q" if matrix == LAYOUTS[0] else "W_QKV"
    where = ", ".join(f"{letter} = {name}[:, {s}:{s + head_dim}]" for letter, s in own)
    letters = " and ".join([", ".join(used[:-1]), used[-1]] if len(used) > 1 else used)
    return (
        f"Head {head} of {n_head} reads all {d_model} numbers of a token and gives {head_dim} of "
        f"{letters}.\n{where}; {d_model} × {head_dim} each."
    )


def _draw_own(ax: Axes, stack: Callable[..., Any], n_head: int, d_model: int, head: int) -> str:
    owner, sentence, empty = _made(stack, n_head, d_model)
    if owner is None:
        ax.set_axis_off()
        ax.text(0, 0.5, empty, transform=ax.transAxes, fontsize=11)
        return sentence
    ax.imshow(_painted(owner, n_head, head), extent=(0, d_model, d_model, 0), aspect="auto")
    _name_axes(ax, d_model, d_model)
    ax.set_title(f"Where your function puts the numbers of head {head}")
    return sentence


def _seen(stack: Callable[..., Any], n_head: int, d_model: int, head: int) -> dict[str, Any]:
    """What the browser draws of the matrix that a student's function made."""
    owner, sentence, empty = _made(stack, n_head, d_model)
    if owner is None:
        return {"message": sentence, "empty": empty}
    small = _thinned(owner, n_head).astype(np.uint8)
    title = f"Where your function puts the numbers of head {head}"
    return {
        "message": sentence, "title": title, "owner": small.tobytes(), "side": len(small),
    }  # fmt: skip


def _made(stack: Callable[..., Any], n_head: int, d_model: int) -> tuple[Any, str, str]:
    """Which head's number stands at each place, [d_model, d_model], and a sentence.

    Where there is no such matrix: None, the sentence, and what stands in the picture's place.
    """
    head_dim = d_model // n_head
    numbered = torch.arange(n_head * d_model * head_dim, dtype=torch.float32)
    try:
        with students_own():
            made = stack(numbered.view(n_head, d_model, head_dim))
    except NotImplementedError:
        return None, *_UNWRITTEN
    if not isinstance(made, torch.Tensor) or made.shape != (d_model, d_model):
        got = list(made.shape) if isinstance(made, torch.Tensor) else type(made).__name__
        sentence = f"Your function gave {got}; [{d_model}, {d_model}] is [d_in, n_head * head_dim]."
        return None, sentence, "no picture: see the sentence below"
    source = np.rint(made.detach().double().numpy()).astype(np.int64)
    right = float((source == _numbers_in_place(n_head, d_model)).mean())
    verdict = "every number stands in its place"
    if right < 1:
        verdict = f"{100 * right:.2f} % of the numbers stand in their place"
    owner = source // (d_model * head_dim)
    return owner, f"Your wide matrix for {n_head} heads of {head_dim}: {verdict}.", ""


def _numbers_in_place(n_head: int, d_model: int) -> np.ndarray:
    """Which number of the small matrices belongs at each place of the wide one."""
    head_dim = d_model // n_head
    row, column = np.ogrid[:d_model, :d_model]
    head, own_column = column // head_dim, column % head_dim
    return (head * d_model + row) * head_dim + own_column


def _painted(owner: np.ndarray, n_head: int, head: int) -> np.ndarray:
    small = _thinned(owner, n_head)
    blue = np.array(_tint(_colour("q"), 1.0))
    paper = np.where((small % 2 == 0)[..., None], _tint(blue, _PALE), _tint(blue, _PALER))
    return np.where((small == head)[..., None], blue, paper)


def _thinned(owner: np.ndarray, n_head: int) -> np.ndarray:
    """At most _MOST_PIXELS rows and columns, a step apart that n_head shares no divisor with.

    Columns that are dealt out to the heads in turn would else be left out head by head.
    """
    step = -(-owner.shape[0] // _MOST_PIXELS)
    while math.gcd(step, n_head) > 1:
        step += 1
    return owner[::step, ::step]


def _name_axes(ax: Axes, columns: int, rows: int) -> None:
    ax.set_xlabel(f"the {columns} columns: what comes out of x @ W")
    ax.set_ylabel(f"the {rows} rows:\nthe token's numbers")


def _spans(own: list[tuple[str, int]], head_dim: int) -> str:
    if len(own) == 1:
        return f"columns {own[0][1]} to {own[0][1] + head_dim - 1}"
    return f"{len(own)} blocks of {head_dim} columns"


def _colour(letter: str) -> str:
    return COLOURS[LETTERS.index(letter)]


def _tint(colour: Any, strength: float) -> tuple[float, float, float]:
    """The colour on white paper; strength 1 is full colour."""
    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(colour))
    return red, green, blue
