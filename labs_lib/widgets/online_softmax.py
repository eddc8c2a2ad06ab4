"""Lab 10: a row of scores that arrives block by block.

Step through the blocks and see what m, l and o are after each. The rescaling can be broken, and a
student's own merge_softmax_states can be played. n_head and d_model decide how many rows there are
to look at and how many numbers o has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from ..plots.style import COLOURS, FAINT, INK
from .panel import Panel, choice, head_controls, slider

N_KEY = 16
MOST_HEADS, MOST_WIDTH = 8, 64
SCORES = ("in random order", "rising", "falling")
OWN = "your merge_softmax_states"
RESCALES = ("l and o", "only l", "only o", "neither", "upside down")
_SEED = 10
State = tuple[Tensor, Tensor, Tensor]


def play_row(
    merge: Callable[..., Any] | None = None, *, n_head: int = 4, d_model: int = 24, step: int = 2
) -> Panel:
    """A panel that plays how one row's softmax comes together.

    With `merge`, a function like the lab's merge_softmax_states, what is played is that function;
    one that fails, or gives something else than a state, is explained in the panel.
    """
    ways = RESCALES if merge is None else (OWN, *RESCALES)
    controls = {
        **head_controls(n_head, d_model, most_heads=MOST_HEADS, most_width=MOST_WIDTH),
        "step": slider("step", step, 0, N_KEY, "how many blocks have come"),
        "block": slider("block", 4, 1, N_KEY, "how many keys come at a time"),
        "head": slider("head", 0, 0, MOST_HEADS - 1, "whose row is shown"),
        "scores": choice("scores", SCORES, "the order of the row's scores"),
        "rescale": choice("rescale", ways, "what is multiplied when the maximum grows"),
    }

    def draw(figure: Figure, n_head: int, d_model: int, step: int, block: int, head: int,
             scores: str, rescale: str) -> str:  # fmt: skip
        if head >= n_head:
            figure.text(0.02, 0.5, f"There is no head {head}.", fontsize=11)
            return f"There is no head {head}: {n_head} heads are numbered 0 to {n_head - 1}."
        rows, values = numbers(n_head, d_model, scores)
        way = {OWN: merge, RESCALES[0]: None}.get(rescale, broken(rescale))
        played = play(rows, values, block, way)
        if isinstance(played, str):
            figure.add_subplot().set_axis_off()
            return played
        at = min(step, len(played) - 1)
        moment = Moment(rows[head], values[head], block, at, [_of(s, head) for s in played])
        _draw(figure, moment)
        more = "" if step == at else f"\nThere are {at} blocks; step {step} shows the last one."
        return _sentence(moment, head, rescale) + more

    return Panel("a row's softmax, block by block", controls, draw, size=(8.4, 4.6))


@dataclass(frozen=True)
class Moment:
    """One row after `at` blocks: its scores [n], values [n, head_dim], and its states so far.

    A state's o holds head_dim numbers and then, for each key, what it counts for.
    """

    scores: Tensor
    values: Tensor
    block: int
    at: int
    states: list[State]

    @property
    def seen(self) -> int:
        """How many keys have come."""
        return min(self.at * self.block, N_KEY)

    @property
    def output(self) -> Tensor:
        """o / l as it stands, [head_dim]; zeros before the first block."""
        _, l, o = self.states[self.at]
        return o[:-N_KEY] / l if float(l) > 0 else torch.zeros_like(o[:-N_KEY])

    @property
    def wanted(self) -> Tensor:
        """The softmax's output over the keys that have come."""
        return self.scores[: self.seen].softmax(0) @ self.values[: self.seen]

    @property
    def error(self) -> float:
        """How far the output is from it, at most."""
        return float((self.output - self.wanted).abs().max())


def numbers(n_head: int, d_model: int, order: str) -> tuple[Tensor, Tensor]:
    """Scores [n_head, 16] and values [n_head, 16, head_dim], equal on every machine."""
    rng = np.random.Generator(np.random.PCG64([_SEED, n_head, d_model]))
    scores = torch.from_numpy(rng.uniform(-5, 5, (n_head, N_KEY))).float()
    values = torch.from_numpy(rng.uniform(-2, 2, (n_head, N_KEY, d_model // n_head))).float()
    if order != SCORES[0]:
        scores = scores.sort(dim=-1, descending=order == SCORES[2]).values
    return scores, values


def play(
    scores: Tensor, values: Tensor, block: int, merge: Callable[..., Any] | None = None
) -> list[State] | str:
    """The state before the first block and after each, or a sentence where merge makes none.

    Without `merge` each state is made from all scores that have come.
    """
    n_head, head_dim = values.shape[0], values.shape[2]
    each_key = torch.eye(N_KEY).expand(n_head, N_KEY, N_KEY)
    carried = torch.cat([values, each_key], dim=-1)  # beside o: what each key counts for
    zeros = torch.zeros(n_head, head_dim + N_KEY)
    states: list[State] = [(torch.full((n_head,), -torch.inf), torch.zeros(n_head), zeros)]
    for start in range(0, N_KEY, block):
        come = slice(0 if merge is None else start, min(start + block, N_KEY))
        new = _state(scores[:, come], carried[:, come])
        try:
            made = merge(tuple(t.clone() for t in states[-1]), new) if merge else new
        except NotImplementedError:
            return "Write merge_softmax_states and check it; then this panel plays your function."
        if not _is_state(made, states[0]):
            return (
                "Your function gave something else than a state (m, l, o) with m and l "
                f"[{n_head}] and o [{n_head}, {head_dim + N_KEY}]; its check says more."
            )
        states.append(tuple(t.detach() for t in made))
    return states


def broken(rescale: str) -> Callable[[State, State], State]:
    """A merge that multiplies no more than `rescale` says, or by the factor upside down."""

    def merge(a: State, b: State) -> State:
        (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
        m = torch.maximum(m_a, m_b)
        f_a, f_b = (m_a - m).exp(), (m_b - m).exp()
        if rescale == "upside down":
            f_a, f_b = (torch.where(f > 0, 1 / f, 0.0) for f in (f_a, f_b))
        one = torch.ones_like(m)
        g_a, g_b = (f_a, f_b) if rescale in ("only l", "upside down") else (one, one)
        h_a, h_b = (f_a, f_b) if rescale in ("only o", "upside down") else (one, one)
        return m, l_a * g_a + l_b * g_b, o_a * h_a[:, None] + o_b * h_b[:, None]

    return merge


def _state(scores: Tensor, carried: Tensor) -> State:
    m = scores.amax(-1)
    p = (scores - m[:, None]).exp()
    return m, p.sum(-1), (p[:, None] @ carried)[:, 0]


def _is_state(made: Any, like: State) -> bool:
    if not isinstance(made, (tuple, list)) or len(made) != 3:
        return False
    pairs = zip(made, like, strict=True)
    return all(isinstance(t, Tensor) and t.shape == other.shape for t, other in pairs)


def _of(state: State, head: int) -> State:
    m, l, o = state
    return m[head], l[head], o[head]


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
