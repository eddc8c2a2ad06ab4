"""Lab 10: a row of scores that arrives block by block.

Play the blocks and see what m, l and o are after each. The rescaling can be broken, and a student's
own merge_softmax_states can be played: its states are made once, here, and the browser plays them.
n_head and d_model decide how many rows there are to look at and how many numbers o has.
front/online_softmax.mjs does the rest in the browser.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..plots.style import COLOURS, FAINT, INK
from .explorer import Explorer
from .knobs import choice, head_knobs, slider, steps
from .row_states import N_KEY, RESCALES, SCORES, Merge, Moment, numbers, play, play_own, tables

MOST_HEADS, MOST_WIDTH = 8, 64
OWN = "your merge_softmax_states"


def play_row(
    merge: Merge | None = None, *, n_head: int = 4, d_model: int = 24, step: int = 2
) -> Explorer:
    """An explorer that plays how one row's softmax comes together.

    With `merge`, a function like the lab's merge_softmax_states, what is played is that function;
    one that fails, or gives something else than a state, is explained.
    """
    ways = RESCALES if merge is None else (OWN, *RESCALES)
    knobs = [
        *head_knobs(n_head, d_model, most_heads=MOST_HEADS, most_width=MOST_WIDTH),
        slider("block", 4, 1, N_KEY, "how many keys come at a time"),
        slider("head", 0, 0, MOST_HEADS - 1, "whose row is shown"),
        choice("scores", SCORES, "the order of the row's scores"),
        choice("rescale", ways, "what is multiplied when the maximum grows"),
        steps("step", step, N_KEY, "how many blocks have come"),
    ]

    def ask(rescale: str, **settings: Any) -> dict[str, Any] | None:
        return _asked(merge, settings) if merge is not None and rescale == OWN else None

    def draw(figure: Figure, rescale: str, **settings: Any) -> str:
        return _drawn(figure, merge, rescale, settings)

    return Explorer(
        "A row's softmax, block by block",
        knobs,
        draw,
        script="online_softmax",
        ask=ask,
        plays=("step", "head"),
        data={name: table.tobytes() for name, table in tables(MOST_HEADS, MOST_WIDTH).items()},
        size=(8.4, 4.6),
    )


def _asked(merge: Merge, settings: dict[str, Any]) -> dict[str, Any]:
    """What the browser plays of a student's merge: for each step and head m, l, o and counts."""
    scores, values = _numbers(settings)
    played = play_own(merge, scores, values, settings["block"])
    if isinstance(played, str):
        return {"empty": "no states to play: see below", "message": played}
    rows = [torch.cat([m[:, None], l[:, None], o], -1) for m, l, o in played]
    return {"states": torch.stack(rows).double().numpy().tobytes()}


def _drawn(figure: Figure, merge: Merge | None, rescale: str, settings: dict[str, Any]) -> str:
    block, n_head = settings["block"], settings["n_head"]
    scores, values = _numbers(settings)
    if rescale == OWN and merge is not None:
        played = play_own(merge, scores, values, block)
    else:
        played = play(scores.double(), values.double(), block, rescale)
    if isinstance(played, str):
        figure.add_subplot().set_axis_off()
        return played
    head, at = min(settings["head"], n_head - 1), min(settings["step"], len(played) - 1)
    states = [(m[head].double(), l[head].double(), o[head].double()) for m, l, o in played]
    moment = Moment(scores[head].double(), values[head].double(), block, at, states)
    _draw(figure, moment)
    return _sentence(moment, head, rescale)


def _numbers(settings: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    most = tables(MOST_HEADS, MOST_WIDTH)
    return numbers(most, settings["n_head"], settings["d_model"], settings["scores"])


def _draw(figure: Figure, moment: Moment) -> None:
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 1), width_ratios=(3, 2))
    _draw_scores(figure.add_subplot(grid[0, :]), moment)
    _draw_terms(figure.add_subplot(grid[1, 0]), moment)
    _draw_output(figure.add_subplot(grid[1, 1]), moment)


def _draw_scores(ax: Axes, moment: Moment) -> None:
    keys = np.arange(N_KEY)
    first = max(0, (moment.at - 1) * moment.block) if moment.at else 0
    colours = [
        COLOURS[1] if first <= key < moment.seen else COLOURS[0] if key < first else FAINT
        for key in keys
    ]
    ax.bar(keys, moment.scores, color=colours, width=0.8)
    if moment.at:
        m = float(moment.states[moment.at][0])
        ax.axhline(m, color=INK, lw=1.2, ls="--")
        ax.text(N_KEY - 0.4, m, f"m = {m:.2f}", ha="right", va="bottom", fontsize=9)
    for edge in range(moment.block, N_KEY, moment.block):
        ax.axvline(edge - 0.5, color=FAINT, lw=1)
    ax.axhline(0, color=INK, lw=0.8)
    ax.set_ylim(-5.6, 6.6)
    ax.set_xlim(-0.6, N_KEY - 0.4)
    ax.set_xticks(keys)
    ax.set_xlabel("key")
    ax.set_ylabel("score")
    ax.set_title(f"{moment.seen} of {N_KEY} scores have come; the last block is orange")


def _draw_terms(ax: Axes, moment: Moment) -> None:
    counted = moment.states[moment.at][2][-N_KEY:]
    right = torch.zeros(N_KEY)
    if moment.at:
        seen = moment.scores[: moment.seen]
        right[: moment.seen] = (seen - seen.max()).exp()
    ax.bar(range(N_KEY), counted, color=COLOURS[0], width=0.8, label="counts in o")
    ax.plot(range(N_KEY), right, "o", color=COLOURS[1], markersize=4, label="exp(score - m)")
    top = max(1.0, min(float(counted.max()), 20.0))
    ax.set_ylim(0, 1.45 * top)
    ax.set_xlim(-0.6, N_KEY - 0.4)
    ax.set_xlabel("key")
    ax.set_ylabel("weight, undivided")
    ax.legend(loc="upper left", ncols=2)
    ax.set_title(f"What each key counts for; l = {float(moment.states[moment.at][1]):.3g}")


def _draw_output(ax: Axes, moment: Moment) -> None:
    width = moment.values.shape[1]
    ax.bar(range(width), moment.output, color=COLOURS[0], width=0.8, label="o / l")
    ax.plot(range(width), moment.wanted, "o", color=COLOURS[1], markersize=4, label="softmax")
    ax.axhline(0, color=INK, lw=0.8)
    ax.set_ylim(-2.9, 2.9)
    ax.set_xlim(-0.6, width - 0.4)
    ax.set_xlabel(f"the {width} numbers of o")
    ax.legend(loc="upper right", ncols=2)
    ax.set_title("o / l so far")


def _sentence(moment: Moment, head: int, rescale: str) -> str:
    if not moment.at:
        return f"Head {head}, before the first block: m = -inf, l = 0, o = 0."
    (before, _, _), (m, l, _) = moment.states[moment.at - 1 : moment.at + 1]
    last = len(moment.states) - 1
    counts = "counts" if rescale == RESCALES[0] else "should count"
    if moment.at == 1:
        moved = f"The first block sets m to {m:.2f}"
    elif m > before:
        moved = (
            f"m grew from {before:.2f} to {m:.2f}: what was collected {counts} "
            f"{(before - m).exp():.3g} times as much"
        )
    else:
        moved = f"m stays at {m:.2f}: nothing that was collected changes"
    error = "within rounding" if moment.error < 1e-5 else f"{moment.error:.2g} away at most"
    how = "" if rescale in (OWN, RESCALES[0]) else f" Rescaled: {rescale}."
    return (
        f"Head {head}, block {moment.at} of {last}. {moved}; l = {l:.3g}.{how}\n"
        f"o / l against the softmax of the {moment.seen} scores that have come: {error}."
    )
