"""Lab 06: every head of the two models with its role score and its weights on a sentence; silence
one and see the output move.

What is recorded is sent to the browser once, 143 KB of weights with it; front/head_atlas.mjs draws
it there. Only a silent head needs the model: Python runs it, where it is on this machine.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from matplotlib.figure import Figure

from ..models import BrokenModel, MissingModel, load
from ..models.atlas import says
from ..models.minilm import MiniLM
from ..models.roles import ROLES
from ..models.smollm2 import SmolLM2
from .explorer import Explorer
from .head_facts import NAMES, SHAPES, Facts, Said, facts_of, sentence
from .head_picture import draw_atlas
from .knobs import choice, slider

SPEAKS, SILENT = "speaks", "is silent"
MOST_LAYERS = max(shape.n_layer for shape in SHAPES.values())
MOST_HEADS = max(shape.n_head for shape in SHAPES.values())


def head_atlas(
    model: str = "minilm",
    role: str = "previous",
    layer: int = 0,
    head: int = 2,
    place: int = 13,
    it: str = SPEAKS,
) -> Explorer:
    """An explorer with a cell for every head of a model, coloured by its score for a role.

    `layer` and `head` choose one, and its weights on a sentence are shown, `place` a token of it;
    let the head be silent, and see what the model says with it and without it.
    """
    atlas = _Atlas()
    most = max(len(facts.tokens) for facts in atlas.facts.values())
    knobs = [
        choice("model", NAMES.items(), "whose heads", value=model),
        choice("role", ROLES, "what a head may look at", value=role),
        slider("layer", layer, 0, MOST_LAYERS - 1, "counted from the input"),
        slider("head", head, 0, MOST_HEADS - 1, "within its layer"),
        slider("place", place, 0, most - 1, "which token asks, counted from 0"),
        choice("it", (SPEAKS, SILENT), "whether this head adds anything", value=it),
    ]
    return Explorer(
        "Every head of a model, and what it looks at",
        knobs,
        atlas.draw,
        script="head_atlas",
        ask=atlas.ask,
        plays=("role", "place"),
        data={name: facts.sent() for name, facts in atlas.facts.items()},
        size=(9.6, 8.0),
    )


class _Atlas:
    """Draws a head, and asks the model what it says without it."""

    def __init__(self) -> None:
        self.facts: dict[str, Facts] = {name: facts_of(name) for name in SHAPES}

    def ask(self, model: str, layer: int, head: int, it: str, **_: Any) -> dict[str, Any] | None:
        """What the model says, for the browser; None where nobody asks, or nobody is there."""
        said = self._said(model, layer, head, it)
        if not isinstance(said, str):
            return dict(zip(("names", "whole", "now"), said, strict=True))
        return {"why": said} if it == SILENT and said else None

    def draw(
        self, figure: Figure, model: str, role: str, layer: int, head: int, place: int, it: str
    ) -> str:
        """The still picture and the sentence."""
        facts, said = self.facts[model], self._said(model, layer, head, it)
        heard = None if isinstance(said, str) else said
        draw_atlas(figure, facts, role, layer, head, place, heard)
        return sentence(facts, role, layer, head, place, it == SILENT, said)

    def _said(self, model: str, layer: int, head: int, it: str) -> Said | str:
        """Names, and numbers with and without the head; or why there are none, which may be ""."""
        facts = self.facts[model]
        if facts.missing or not facts.has(layer, head) or it != SILENT:
            return facts.missing
        try:
            names, whole = _output(model, ())
            return names, whole, _output(model, ((layer, head),))[1]
        except (MissingModel, BrokenModel) as error:  # gone, or found to be broken, since
            return str(error)


@cache
def _load(model: str) -> MiniLM | SmolLM2:
    return load(model)


@cache
def _output(model: str, ablate: tuple[tuple[int, int], ...]) -> tuple[list[str], list[float]]:
    return says(_load(model), ablate)
