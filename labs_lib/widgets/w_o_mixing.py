"""Lab 05: which head wrote which number of the output.

One token's output, taken apart: a row for each head, a column for each of the d_model numbers.
Move n_head and d_model, leave W_O out, or switch a head off and see that no other row changes.
front/w_o_mixing.mjs computes the same in the browser; a student's own function runs here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from ..plots.grids import heatmap
from ..plots.style import COLOURS, INK
from .explorer import Explorer
from .knobs import Knob, choice, head_knobs
from .still import students_own

MERGES = ("with W_O", "without W_O")
NOBODY = "none"
MOST_HEADS, MOST_WIDTH = 16, 128
NEAR = 1e-3
_SEED = 5


def w_o_mixing(
    contributions: Callable[..., Any] | None = None, *, n_head: int = 4, d_model: int = 24
) -> Explorer:
    """An explorer of what each head adds to each number of one token's output.

    With `contributions`, a function like the lab's per_head_contributions, the rows are what that
    function makes of the heads; a function that fails is explained below.
    """

    def draw(figure: Figure, n_head: int, d_model: int, merge: str, off: str | int) -> str:
        if isinstance(off, int) and off >= n_head:
            figure.text(0.02, 0.5, f"There is no head {off}.", fontsize=11)
            return f"There is no head {off}: {n_head} heads are numbered 0 to {n_head - 1}."
        parts = _parts(contributions, n_head, d_model, merge, off)
        if isinstance(parts, str):
            figure.add_subplot().set_axis_off()
            return parts
        _draw_parts(figure, *parts, merge, off)
        return told(*parts, merge, off)

    def ask(n_head: int, d_model: int, merge: str, off: str | int) -> dict[str, Any] | None:
        if contributions is None or (isinstance(off, int) and off >= n_head):
            return None
        parts = _parts(contributions, n_head, d_model, merge, off)
        if isinstance(parts, str):
            return {"message": parts, "empty": "no picture: see the sentence below"}
        packed = [part.float().numpy().tobytes() for part in parts]
        message = told(*parts, merge, off)
        return {"parts": packed[0], "before": packed[1], "message": message}

    def told(parts: Tensor, before: Tensor, merge: str, off: str | int) -> str:
        sentence = _sentence(parts, before, merge, off)
        return sentence if contributions is None else _judged(parts, merge, off, sentence)

    token, matrix = _numbers()
    return Explorer(
        "what each head adds to one token's output",
        _knobs(n_head, d_model),
        draw,
        script="w_o_mixing",
        ask=ask,
        data={
            "asks": contributions is not None,
            "token": token.tobytes(),
            "matrix": matrix.tobytes(),
        },
        size=(8.0, 4.2),
    )


def _knobs(n_head: int, d_model: int) -> list[Knob]:
    off = [(NOBODY, NOBODY), *((f"head {h}", h) for h in range(MOST_HEADS))]
    return [
        *head_knobs(n_head, d_model, most_heads=MOST_HEADS, most_width=MOST_WIDTH),
        choice("merge", MERGES, "whether W_O follows the heads side by side"),
        choice("off", off, "a head whose numbers are set to zero"),
    ]


def token_and_matrix(n_head: int, d_model: int, merge: str) -> tuple[Tensor, Tensor]:
    """Heads of one token [1, n_head, 1, head_dim] and W_O; without W_O it is the identity.

    The first d_model numbers of one token, however many heads they are shared out to; W_O is
    [d_model, d_model]. The same numbers on every machine.
    """
    token, matrix = map(torch.from_numpy, _numbers())
    heads = token[:d_model].view(1, n_head, 1, d_model // n_head).clone()
    W_O = matrix[:d_model, :d_model] * (3 / d_model) ** 0.5
    return heads, W_O if merge == MERGES[0] else torch.eye(d_model)


def _numbers() -> tuple[np.ndarray, np.ndarray]:
    """A token [MOST_WIDTH] and a matrix [MOST_WIDTH, MOST_WIDTH], in float32."""
    rng = np.random.Generator(np.random.PCG64(_SEED))
    token = rng.uniform(-2, 2, MOST_WIDTH).astype(np.float32)
    return token, rng.uniform(-1, 1, (MOST_WIDTH, MOST_WIDTH)).astype(np.float32)


def _parts(contributions: Any, n_head: int, d_model: int, merge: str, off: str | int) -> Any:
    """What each head adds [n_head, d_model], now and with no head off; or a sentence."""
    heads, W_O = token_and_matrix(n_head, d_model, merge)
    made = _taken_apart(contributions, heads, W_O)
    if isinstance(made, str):
        return made
    silent = heads.clone()
    if isinstance(off, int):
        silent[:, off] = 0.0
    now = _taken_apart(contributions, silent, W_O)
    return now if isinstance(now, str) else (now[0, :, 0], made[0, :, 0])


def _taken_apart(contributions: Callable[..., Any] | None, heads: Tensor, W_O: Tensor) -> Any:
    """[1, n_head, 1, d_model], or a sentence where a student's function gives something else."""
    n_head, head_dim = heads.shape[1], heads.shape[3]
    if contributions is None:
        rows = W_O.double().unflatten(0, (n_head, head_dim))
        return (heads.double()[..., None] * rows[:, None]).sum(-2) + 0.0  # no -0.0
    try:
        with students_own():
            made = contributions(heads.clone(), W_O.clone())
    except NotImplementedError:
        return "Write per_head_contributions and check it; then these rows are your function's."
    wanted = [1, n_head, 1, W_O.shape[1]]
    if not isinstance(made, Tensor) or list(made.shape) != wanted:
        got = list(made.shape) if isinstance(made, Tensor) else type(made).__name__
        return f"Your function gave {got}; {wanted} is [batch, n_head, seq, d_model]."
    return made.detach()


def _draw_parts(figure: Figure, parts: Tensor, before: Tensor, merge: str, off: str | int) -> None:
    n_head, d_model = parts.shape
    most = _most(before)
    (upper, bar), (lower, empty) = figure.subplots(2, 2, height_ratios=(3, 2), width_ratios=(40, 1))
    mask = torch.ones(n_head, d_model, dtype=torch.bool)
    if isinstance(off, int):
        mask[off] = False
    if merge == MERGES[1]:
        mask &= parts != 0  # a head can't write there: hatched, not a small number
    title = {
        MERGES[0]: "With W_O every head writes into every number",
        MERGES[1]: "Without W_O a head writes into its own numbers only",
    }[merge]
    heatmap(
        parts,
        title=title,
        rows="head",
        columns="",
        row_labels=[str(h) for h in range(n_head)],
        mask=mask,
        limits=(-most, most),
        decimals=1,
        show_numbers=d_model <= 24 and n_head <= 8,
        ax=upper,
    )
    figure.colorbar(upper.images[0], cax=bar, label="what is added")
    empty.set_axis_off()
    upper.tick_params(labelbottom=False)
    _draw_sum(lower, parts)
    highest = float(torch.stack([parts.sum(0), before.sum(0)]).abs().max())
    lower.set_ylim(-1.1 * highest, 1.1 * highest)  # the same, whichever head is off


def _most(before: Tensor) -> float:
    """What the ends of the colours stand for: the largest size, up to the next half."""
    sizes = before[before.isfinite()].abs()
    return max(0.5, math.ceil(2 * float(sizes.max())) / 2) if sizes.numel() else 0.5


def _draw_sum(ax: Axes, parts: Tensor) -> None:
    d_model = parts.shape[1]
    ax.bar(range(d_model), parts.sum(0), color=COLOURS[0], width=0.8)
    ax.axhline(0, color=INK, lw=0.8)
    ax.set_ylabel("their sum:\nthe output")
    ax.set_xlabel(f"the {d_model} numbers of the output")
    ax.set_xlim(-0.5, d_model - 0.5)


def _judged(parts: Tensor, merge: str, off: str | int, sentence: str) -> str:
    """Whether a student's rows [n_head, d_model] are right, and if so the sentence on them."""
    right, _ = _parts(None, *parts.shape, merge, off)
    wanted, got = right.sum(0), parts.double().sum(0)
    apart = (got - wanted).abs().nan_to_num(nan=math.inf)
    if float(apart.max()) > NEAR:
        at = int(apart.argmax())
        return (
            f"The sum of your rows is not the output: number {at} of the output is "
            f"{float(wanted[at]):.2f}, and your rows add up to {float(got[at]):.2f} there."
        )
    if not bool(((parts.double() - right).abs() < NEAR).all()):
        return "The sum of your rows is the output, but they are not what each head adds."
    return f"The sum of your rows is the output. {sentence}"


def _sentence(parts: Tensor, before: Tensor, merge: str, off: str | int) -> str:
    n_head, d_model = parts.shape
    writers = (parts != 0).sum(0)
    middle = d_model // 2
    terms = [f"{float(p):+.2f}" for p in parts[:, middle]]
    shown = terms if n_head <= 6 else [*terms[:3], "...", terms[-1]]
    total = float(parts[:, middle].sum())
    sentence = f"Number {middle} of the output is {' '.join(shown)} = {total:.2f}."
    if merge == MERGES[1]:
        writer = middle * n_head // d_model
        sentence = f"Number {middle} of the output, {total:.2f}, comes from head {writer} alone."
    if off == NOBODY:
        count = int(writers.max())
        heads = f"{count} head writes" if count == 1 else f"{count} heads write"
        return f"{heads} into each number of the output. {sentence}"
    others = torch.arange(n_head) != off
    moved = float((parts - before)[others].abs().max()) if n_head > 1 else 0.0
    return f"Head {off} is off. What the others add changed by {moved:g}. {sentence}"
