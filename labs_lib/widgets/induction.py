"""Lab 07: type a text, choose a word, and see the jump to what came after it last time.

The head is built on the spot out of n_head and d_model, or it is SmolLM2's best one. Without that
model the panel shows what was recorded of it on one text.
"""

from __future__ import annotations

import re
import zlib
from functools import cache
from typing import Any

import ipywidgets as widgets
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from torch import Tensor, nn

from ..models import BrokenModel, MissingModel, load
from ..models.induction import TEXT
from ..models.roles import weights_of
from ..models.smollm2 import SHAPE
from ..models.studies import recorded
from ..plots.style import COLOURS, FAINT, INK
from .panel import Panel, choice, head_controls, slider

BUILT, TRAINED = "built from codes", "SmolLM2's best"
WORD = re.compile(r"[\u3000-\u9fff]|[^\W\u3000-\u9fff]+|[^\w\s]")
MOST_WORDS = 40
SHARPNESS = 9.0  # of the built head: the score of two equal words
SURE = 0.5


def induction(
    text: str = TEXT, place: int = MOST_WORDS - 1, n_head: int = 12, d_model: int = 768
) -> Panel:
    """A panel with the words of a text in a row, and where the chosen one looks.

    Each word of the built head has a random code of head_dim = d_model / n_head numbers; a key is
    the code of the word before, as a previous-token head would have left it there.
    """
    controls = {
        "text": _line(text),
        "place": slider("place", place, 0, MOST_WORDS - 1, "which word asks, counted from 0"),
        "head": choice("head", (BUILT, TRAINED), "whose weights are shown"),
        **head_controls(n_head, d_model),
    }
    return Panel("what came after the last time", controls, _draw, size=(9.0, 3.6))


def words_of(text: str) -> list[str]:
    """Return the words and marks of a text; a Chinese letter is a word. At most 40, the last."""
    return WORD.findall(text)[-MOST_WORDS:]


def built_weights(words: list[str], head_dim: int) -> Tensor:
    """Return the causal weights [seq, seq] of a head whose words are random codes of that width."""
    codes = torch.stack([_code(word.lower(), head_dim) for word in words])  # [seq, head_dim]
    keys = torch.cat([torch.zeros(1, head_dim), codes[:-1]])  # the word before
    may = torch.ones(len(words), len(words), dtype=torch.bool).tril()
    return (SHARPNESS * codes @ keys.T).masked_fill(~may, -torch.inf).softmax(dim=-1)


def last_time(words: list[str], place: int) -> int | None:
    """Return where the word of a place stood last before it; None where it is new."""
    before = [word.lower() for word in words[:place]]
    return max((j for j, word in enumerate(before) if word == words[place].lower()), default=None)


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
    return f"{who} {_sentence(words, row, place)}"


def _weights(text: str, head: str, head_dim: int) -> tuple[list[str], Tensor, str] | str:
    """Words, weights and who looks, or the sentence that says why there are none."""
    if head == BUILT:
        words = words_of(text)
        weights = built_weights(words, head_dim) if words else torch.zeros(0, 0)
        return words, weights, f"Built: head_dim {head_dim}, so each word is {head_dim} numbers."
    study = _study()
    layer, number = study["heads"][0]
    who = (
        f"SmolLM2, head {number} of layer {layer} (n_head {SHAPE.n_head}, d_model {SHAPE.d_model})."
    )
    model = _loaded()
    if isinstance(model, str):
        if text != TEXT:
            return f"Only the text that the panel opened with is recorded. {model}"
        return study["tokens"], torch.tensor(study["weights"]), f"Recorded: {who}"
    if not text.strip():
        return [], torch.zeros(0, 0), who
    tokens, weights = weights_of(model, text)
    return tokens[:MOST_WORDS], weights[layer, number, :MOST_WORDS, :MOST_WORDS], who


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


def _sentence(words: list[str], row: Tensor, place: int) -> str:
    bare = [word.strip() for word in words]
    last, best = last_time(bare, place), int(row.argmax())
    if last is None:
        return (
            f"“{bare[place]}” (place {place}) stands here for the first time: there is nothing to "
            f"copy. Most weight, {float(row[best]):.2f}, goes to “{bare[best]}”."
        )
    after = float(row[last + 1])
    looks = f"“{bare[place]}” stood at place {last}; what came next, “{bare[last + 1]}”, gets "
    verdict = "" if after > SURE else f" More goes to “{bare[best]}”."
    return looks + f"{after:.2f}." + (verdict if best != last + 1 else "")


def _shown(word: str) -> str:
    """A word as matplotlib's letters can show it."""
    word = word.strip(" ").replace("\n", "⏎")
    return word if all(ord(c) < 0x2E80 for c in word) else f"U+{ord(word[0]):04X}"


def _code(word: str, head_dim: int) -> Tensor:
    seed = np.random.PCG64(zlib.crc32(word.encode("utf-8")))
    numbers = torch.from_numpy(np.random.Generator(seed).uniform(-1, 1, size=head_dim)).float()
    return numbers / numbers.norm()


def _line(text: str) -> widgets.Text:
    return widgets.Text(
        value=text,
        description="text",
        continuous_update=False,
        tooltip="text: any words; some should come again",
        style={"description_width": "80px"},
        layout=widgets.Layout(width="760px"),
    )


@cache
def _study() -> dict[str, Any]:
    return recorded("induction")["smollm2"]


@cache
def _load() -> nn.Module:
    return load("smollm2")


def _loaded() -> nn.Module | str:
    """The model, or the sentence that says how to get it."""
    try:
        return _load()
    except (MissingModel, BrokenModel) as error:
        return str(error)
