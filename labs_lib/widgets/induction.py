"""Lab 07: type a text, choose a word, and see the jump to what came after it last time.

The head is built out of n_head and d_model, in the browser by front/induction.mjs, or it is
SmolLM2's best one: what it does with one text is recorded, with any other text Python asks it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from torch import Tensor

from ..models import BrokenModel, MissingModel, load
from ..models.induction import TEXT
from ..models.model import Model
from ..models.roles import weights_of
from ..models.smollm2 import SHAPE
from ..models.studies import recorded
from ..plots.style import COLOURS, FAINT, INK
from .explorer import Explorer
from .jumps import MOST_WORDS, built_weights, jump, last_time, words_of
from .knobs import choice, head_knobs, slider, text_line

BUILT, TRAINED = "built from codes", "SmolLM2's best"


def induction(
    text: str = TEXT, place: int = MOST_WORDS - 1, n_head: int = 12, d_model: int = 768
) -> Explorer:
    """An explorer with the words of a text in a row, and where the one at `place` looks.

    Each word of the built head has a random code of head_dim = d_model / n_head numbers; a key is
    the code of the word before, as a previous-token head would have left it there.
    """
    place = min(place, max(1, len(words_of(text))) - 1)
    knobs = [
        text_line("text", text, "any words; some should come again"),
        slider("place", place, 0, MOST_WORDS - 1, "which word asks, counted from 0"),
        choice("head", (BUILT, TRAINED), "whose weights are shown"),
        *head_knobs(n_head, d_model),
    ]
    study = _study()
    return Explorer(
        "What came after the last time",
        knobs,
        _draw,
        script="induction",
        ask=_asked,
        plays=("place", "n_head", "d_model"),
        data={
            "text": TEXT,
            "tokens": study["tokens"],
            "weights": np.array(study["weights"], np.float32).tobytes(),
            "who": _who(),
        },
        size=(9.0, 3.6),
    )


def _asked(text: str, head: str, **_: Any) -> dict[str, Any] | None:
    """What SmolLM2's head does with a text that isn't recorded, for the browser."""
    if head == BUILT or text == TEXT:
        return None
    found = _weights(text, head, 1)
    if isinstance(found, str):
        return {"message": found, "empty": "no weights of this text are here: see below"}
    return {"tokens": found[0], "weights": found[1].float().contiguous().numpy().tobytes()}


def _draw(figure: Figure, text: str, place: int, head: str, n_head: int, d_model: int) -> str:
    ax = figure.add_subplot()
    found = _weights(text, head, d_model // n_head)
    if isinstance(found, str):
        ax.set_axis_off()
        return found
    words, weights, who = found
    if len(words) < 2:
        ax.set_axis_off()
        return "Type a text of at least two words."
    place = min(place, len(words) - 1)
    row = weights[place, : place + 1]
    _bars(ax, words, row, place)
    return f"{who} {jump(words, row, place)}"


def _weights(text: str, head: str, head_dim: int) -> tuple[list[str], Tensor, str] | str:
    """Words, weights and who looks, or the sentence that says why there are none."""
    if head == BUILT:
        words = words_of(text)
        weights = built_weights(words, head_dim) if words else torch.zeros(0, 0)
        size = "1 number" if head_dim == 1 else f"{head_dim} numbers"
        return words, weights, f"Built: head_dim {head_dim}, so each word is {size}."
    study, who = _study(), _who()
    if text == TEXT:
        return study["tokens"], torch.tensor(study["weights"]), f"Recorded: {who}"
    model = _loaded()
    if isinstance(model, str):
        return f"Only the text that the explorer opened with is recorded. {model}"
    if not text.strip():
        return [], torch.zeros(0, 0), who
    tokens, weights = weights_of(model, text)
    layer, number = study["heads"][0]
    return tokens[:MOST_WORDS], weights[layer, number, :MOST_WORDS, :MOST_WORDS], who


def _who() -> str:
    layer, number = _study()["heads"][0]
    sizes = f"(n_head {SHAPE.n_head}, d_model {SHAPE.d_model})"
    return f"SmolLM2, head {number} of layer {layer} {sizes}."


def _bars(ax: Axes, words: list[str], row: Tensor, place: int) -> None:
    heights = torch.zeros(len(words))
    heights[: place + 1] = row
    best = int(heights.argmax())
    last = last_time([word.strip() for word in words], place)
    colours = [COLOURS[0]] * len(words)
    if last is not None:
        colours[last + 1] = COLOURS[1]
    ax.bar(range(len(words)), heights.numpy(), color=colours)
    ax.axvspan(place - 0.5, place + 0.5, color=FAINT, zorder=0)
    if best != place:
        curve = 0.25 if best < place else -0.25
        ax.add_patch(
            FancyArrowPatch(
                (place, 0.04), (best, float(heights[best]) + 0.02), arrowstyle="-|>", color=INK,
                connectionstyle=f"arc3,rad={curve}", mutation_scale=12,
            )
        )  # fmt: skip
    ax.set_xticks(range(len(words)), [_shown(word) for word in words], rotation=60, ha="right")
    ax.set_ylim(0, 1.15)
    ax.set_ylabel("weight")
    ax.set_xlabel("words, in order; shaded: the one that asks; orange: what came next last time")
    ax.set_title(f"“{_shown(words[place])}” looks back")


def _shown(word: str) -> str:
    """A word as matplotlib's letters can show it."""
    word = word.strip(" ").replace("\n", "⏎")
    return word if all(ord(c) < 0x2E80 for c in word) else f"U+{ord(word[0]):04X}"


@cache
def _study() -> dict[str, Any]:
    return recorded("induction")["smollm2"]


@cache
def _load() -> Model:
    return load("smollm2")


def _loaded() -> Model | str:
    """The model, or the sentence that says how to get it."""
    try:
        return _load()
    except (MissingModel, BrokenModel) as error:
        return str(error)
