"""Lab 01: move the query, a key, the mask and the scale; watch one row of weights.

front/attention_row.mjs computes the same in the browser; a student's own function runs here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..plots.rows import weights_row
from ..plots.style import COLOURS, INK
from .explorer import Explorer
from .knobs import choice, head_knobs, slider, tick
from .still import students_own

N_TOKEN = 7
MOST_WIDTH = 1536
ALIKE = 1e-3  # a tenth of a percent, as the picture shows
SCALES = ("1/√head_dim", "1/√d_model", "none")

Attend = Callable[..., Any]


def attention_row(
    attend: Attend | None = None, *, n_head: int = 12, d_model: int = 768
) -> Explorer:
    """An explorer of one row of attention: 7 queries and 7 keys of standard deviation 1.

    `attend(q, k, v, mask)` computes the row, given torch tensors of shape [1, 1, seq, head_dim]; by
    default, or while it raises NotImplementedError, the row is the course's own.
    """
    knobs = [
        *head_knobs(n_head, d_model, most_width=MOST_WIDTH),
        slider("query", 3, 0, N_TOKEN - 1, "which token asks"),
        slider("key", 1, 0, N_TOKEN - 1, "which key the pull moves"),
        slider("pull", 0.0, -6.0, 6.0, "how much the score of that key rises", step=0.5),
        choice("scale", SCALES, "what the dot products are multiplied by"),
        tick("causal", False, "causal: the query sees no later key"),
    ]
    row = _Row(attend)
    data = {"tokens": row.tokens.astype(np.float32).tobytes(), "asks": attend is not None}
    return Explorer(
        "One row of attention",
        knobs,
        row,
        script="attention_row",
        ask=row.asked,
        data=data,
        size=(8.0, 3.0),
    )


class _Row:
    """Draws the row that the controls describe."""

    def __init__(self, attend: Attend | None) -> None:
        self.attend = attend
        rng = np.random.Generator(np.random.PCG64(7))
        uniform = rng.uniform(-(3**0.5), 3**0.5, size=(2, N_TOKEN, MOST_WIDTH))
        self.tokens = uniform.astype(np.float32).astype(np.float64)  # as the browser gets them

    def asked(self, **settings: Any) -> dict[str, Any] | None:
        """What a student's function makes of the row, for the browser."""
        if self.attend is None:
            return None
        scores, mask = self._scores(**settings)
        weights, whose = self._weights(scores, mask, settings)
        return {
            "weights": np.asarray(weights, dtype=np.float32).tobytes(),
            "message": _sentence(settings, scores[mask], weights) + whose,
        }

    def __call__(self, figure: Figure, **settings: Any) -> str:
        scores, mask = self._scores(**settings)
        weights, whose = self._weights(scores, mask, settings)
        left, right = figure.subplots(1, 2)
        _draw_scores(left, scores, mask)
        title = f"weights of query {settings['query']}"
        weights_row(weights, mask=mask, title=title, labels=_names(), ax=right)
        return _sentence(settings, scores[mask], weights) + whose

    def _vectors(self, n_head, d_model, query, key, pull, **_: Any) -> tuple[Any, Any]:
        head_dim = d_model // n_head
        q = self.tokens[0, query, :head_dim]
        k = self.tokens[1, :, :head_dim].copy()  # [N_TOKEN, head_dim]
        k[key] += pull * math.sqrt(head_dim) / float(q @ q) * q  # its scaled score rises by pull
        return q, k

    def _scores(self, **settings: Any) -> tuple[np.ndarray, np.ndarray]:
        q, k = self._vectors(**settings)
        mask = np.ones(N_TOKEN, dtype=bool)
        if settings["causal"]:
            mask[settings["query"] + 1 :] = False
        return k @ q * _factor(q.size, settings), mask

    def _weights(self, scores, mask, settings) -> tuple[np.ndarray, str]:
        if self.attend is None:
            return _softmax(scores, mask), ""
        courses = _softmax(scores, mask)
        try:
            own = self._own_weights(self.attend, mask, settings)
        except NotImplementedError:
            return courses, " Your function is not written yet; this row is the course's own."
        alike = np.allclose(own, courses, rtol=0, atol=ALIKE)
        return own, "" if alike else " Your function's row differs from the course's."

    def _own_weights(self, attend: Callable[..., Any], mask, settings) -> np.ndarray:
        import torch

        q, k = self._vectors(**settings)
        undo = _factor(q.size, settings) * math.sqrt(q.size)  # the function scales by itself
        q, k = torch.from_numpy(undo * q)[None, None, None], torch.from_numpy(k)[None, None]
        each_key = torch.eye(N_TOKEN, dtype=q.dtype)[None, None]  # the output is then the weights
        with students_own():
            row = attend(q, k, each_key, torch.from_numpy(mask)[None])
            return row.detach().reshape(N_TOKEN).numpy()


def _factor(head_dim: int, settings: dict[str, Any]) -> float:
    widths = dict(zip(SCALES, (head_dim, settings["d_model"], 1), strict=True))
    return widths[settings["scale"]] ** -0.5


def _softmax(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    raised = np.where(mask, np.exp(scores - scores[mask].max()), 0.0)
    return raised / raised.sum()


def _draw_scores(ax, scores: np.ndarray, mask: np.ndarray) -> None:
    ax.bar(np.arange(N_TOKEN)[mask], scores[mask], width=0.72, color=COLOURS[1])
    ax.axhline(0, color=INK, lw=0.8)
    reach = 1.25 * max(3.0, float(np.abs(scores[mask]).max()))
    for place in np.flatnonzero(mask):
        value = scores[place]
        above = 0.03 * reach if value >= 0 else -0.05 * reach
        side = "bottom" if value >= 0 else "top"
        ax.text(place, value + above, f"{value:.1f}", ha="center", va=side, fontsize=9)
    ax.set_ylim(-reach, reach)
    ax.set_xticks(range(N_TOKEN), _names())
    ax.set_xlim(-0.6, N_TOKEN - 0.4)
    ax.set_xlabel("key")
    ax.set_ylabel("score (a plain number)")
    ax.set_title("scores")


def _names() -> list[str]:
    return [f"k{i}" for i in range(N_TOKEN)]


def _sentence(settings: dict[str, Any], scores: np.ndarray, weights: np.ndarray) -> str:
    head_dim = settings["d_model"] // settings["n_head"]
    most = int(weights.argmax())
    positive = weights[weights > 0]
    entropy = max(0.0, float(-(positive * np.log(positive)).sum()))
    return (
        f"head_dim {head_dim}. Query {settings['query']} gives k{most} the most, "
        f"{100 * weights[most]:.1f} %; all weights add up to {100 * weights.sum():.1f} %. "
        f"The scores have standard deviation {scores.std():.2f}; the entropy of the row is "
        f"{entropy:.2f} of at most {math.log(scores.size):.2f} nats."
    )
