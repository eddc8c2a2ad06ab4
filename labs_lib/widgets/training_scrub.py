"""Lab 06: scrub through a small model's training and see each head take up its role.

The scores of all heads, roles and seeds are sent once; front/training_scrub.mjs plays them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..plots.grids import heatmap
from ..plots.style import COLOURS, INK
from ..training.growing import N_WATCHED, ROLES, GrowingHeads, chance_scores, windows
from ..training.records import load_record
from ..training.runs import Run
from .explorer import Explorer
from .knobs import choice, steps

LINES = 4  # heads whose way is drawn


def training_scrub(*runs: Run, role: str = "previous", step: int | None = None) -> Explorer:
    """An explorer with a cell for every head of the byte model, at any step of its training.

    Without `runs` it shows the recorded ones; `rerun("head_growth").runs` shows yours. Between two
    looks at the heads the earlier one is shown. Raises ValueError for a run that was not watched.
    """
    runs = runs or tuple(load_record("head_growth").runs)
    last = max(scores_over_steps(run, role)[0][-1] for run in runs)
    first = last if step is None else step
    stride = GrowingHeads.watch_every
    knobs = [
        steps("step", first, last, "how far the training has come", stride=stride),
        choice("role", ROLES, "what a head may look at", value=role),
        choice("seed", [run.seed for run in runs], "what the training began with"),
    ]
    by_seed = {run.seed: run for run in runs}

    def draw(figure: Figure, step: int, role: str, seed: int) -> str:
        return _draw(figure, by_seed[seed], step, role)

    return Explorer(
        "The heads of a small model while it learns",
        knobs,
        draw,
        script="training_scrub",
        data={
            "runs": {str(seed): _sent(run) for seed, run in by_seed.items()},
            "chance": {role: chance(role) for role in ROLES},
        },
        size=(9.0, 4.2),
    )


def scores_over_steps(run: Run, role: str) -> tuple[list[int], np.ndarray]:
    """Return the steps at which a run was watched, and each head's score: [steps, layer, head].

    Raises ValueError for a run that was not watched.
    """
    if not run.watched:
        raise ValueError(f"the run {run.variant!r} was not watched while it trained")
    n_layer, n_head = run.config["n_layer"], run.config["n_head"]
    grids = [
        [[seen[f"l{layer}h{head} {role}"] for head in range(n_head)] for layer in range(n_layer)]
        for _, seen in run.watched
    ]
    return [step for step, _ in run.watched], np.array(grids)


@cache
def chance(role: str) -> float:
    """Return what a head of the byte model scores that spreads its weight evenly."""
    return chance_scores(windows(GrowingHeads(), N_WATCHED))[role]


def _sent(run: Run) -> dict[str, Any]:
    """What the browser is told of a run; scores are float64 [role, step, layer, head]."""
    looks = {role: scores_over_steps(run, role) for role in ROLES}
    at = looks[ROLES[0]][0]
    scores = np.stack([found for _, found in looks.values()])
    sizes = {name: run.config[name] for name in ("n_layer", "d_model", "n_head")}
    return {**sizes, "at": at, "loss": [_loss(run, one) for one in at], "scores": scores.tobytes()}


def _loss(run: Run, step: int) -> float:
    steps, losses = zip(*run.curve, strict=True)
    return float(np.interp(step, steps, losses))


def _draw(figure: Figure, run: Run, step: int, role: str) -> str:
    at, scores = scores_over_steps(run, role)
    place = max(i for i, one in enumerate(at) if one <= max(step, at[0]))
    step, now = at[place], scores[place]  # [layer, head]
    even = chance(role)
    top, bottom = figure.subplots(2, 1, height_ratios=(2, 3))
    heatmap(
        torch.tensor(now),
        title=f'Step {step:,}: share of weight on "{role}"',
        rows="layer",
        columns="head",
        limits=(0, 1),
        ax=top,
    )
    top.set_aspect("auto")
    best = np.unravel_index(int(scores[-1].argmax()), scores[-1].shape)
    top.add_patch(
        Rectangle((best[1] - 0.5, best[0] - 0.5), 1, 1, fill=False, ec=COLOURS[1], lw=2.5)
    )
    _draw_ways(bottom, at, scores, step, even)
    n_layer, n_head = now.shape
    return (
        f"{n_layer} layers, d_model {run.config['d_model']}, n_head {n_head}; loss at this step "
        f"about {_loss(run, step):.2f} nats a byte. Head {best[1]} of layer {best[0]}, the best in "
        f"the end, gives {now[best]:.2f} at step {step:,} and {scores[-1][best]:.2f} at the end; "
        f"by chance it would be {even:.2f}."
    )


def _draw_ways(ax: Axes, steps: list[int], scores: np.ndarray, step: int, even: float) -> None:
    flat = scores.reshape(len(steps), -1)  # [steps, heads]
    n_head = scores.shape[2]
    order = flat[-1].argsort()[::-1]
    for place in order[LINES:]:
        ax.plot(steps, flat[:, place], color="0.7", lw=0.8)
    for colour, place in zip(COLOURS[1:], order[:LINES], strict=False):
        layer, head = divmod(int(place), n_head)
        ax.plot(steps, flat[:, place], color=colour, label=f"layer {layer}, head {head}")
    ax.axhline(even, color="0.4", ls=":", lw=1, label="chance")
    ax.axvline(step, color=INK, lw=1)
    ax.set_xlabel("step")
    ax.set_ylabel("share")
    ax.set_ylim(0, 1)
    ax.legend(fontsize=7, ncols=LINES + 1, loc="upper left")
