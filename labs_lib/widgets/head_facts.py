"""What the atlas of lab 06 knows of a model's heads, and what it says of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..models import BrokenModel, MissingModel
from ..models.atlas import SENTENCE, TEXT, WHOLE, unpacked
from ..models.minilm import SHAPE as MINILM
from ..models.on_disk import require
from ..models.roles import ROLES, role_masks
from ..models.smollm2 import SHAPE as SMOLLM2
from ..models.studies import recorded

NAMES = {"MiniLM": "minilm", "SmolLM2": "smollm2"}
SHAPES = {"minilm": MINILM, "smollm2": SMOLLM2}
ASKED = {
    "minilm": (f'How near to "{SENTENCE}"', "cosine of the two vectors"),
    "smollm2": (f'Next word after "... {TEXT[-15:]}"', "probability"),
}
MOST_READ, LEAST_READ = 3, 0.005
Said = tuple[Sequence[str], Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class Facts:
    """A model's heads as they were recorded; `missing` says how to get the model itself.

    `weights` [n_layer, n_head, seq, seq] are shares of 65,535 on the tokens of one text, `scores`
    [n_layer, n_head] by role those of many texts, with what `chance` gives; `marked` [seq, seq] is
    where a role would look; `costs` [n_layer, n_head] is what silence costs, in nats.
    """

    title: str
    n_layer: int
    n_head: int
    n_kv_head: int
    d_model: int
    causal: bool
    tokens: list[str]
    weights: np.ndarray
    scores: dict[str, list[list[float]]]
    chance: dict[str, float]
    marked: dict[str, np.ndarray]
    costs: list[list[float]]
    asked: str
    unit: str
    names: list[str]
    said: list[float]
    missing: str

    def sent(self) -> dict[str, Any]:
        """The same as the browser gets it; 143 KB of weights for both models together."""
        marked = {role: mask.astype(np.uint8).tobytes() for role, mask in self.marked.items()}
        return {**vars(self), "weights": self.weights.tobytes(), "marked": marked}

    def has(self, layer: int, head: int) -> bool:
        """Whether there is such a head."""
        return layer < self.n_layer and head < self.n_head

    def row(self, layer: int, head: int, place: int) -> np.ndarray:
        """What a token gives to each: [seq]; the last token where there is no such place."""
        return self.weights[layer, head, min(place, len(self.tokens) - 1)] / WHOLE


def facts_of(model: str) -> Facts:
    """Return what is recorded of a model, and whether it is on this machine."""
    shape, kept, roles = SHAPES[model], _recorded("atlas")[model], _recorded("roles")[model]
    tokens, size = kept["tokens"], (shape.n_layer, shape.n_head)
    causal = model == "smollm2"
    masks = role_masks(tokens, causal=causal)
    asked, unit = ASKED[model]
    return Facts(
        title={name: title for title, name in NAMES.items()}[model],
        n_layer=shape.n_layer,
        n_head=shape.n_head,
        n_kv_head=shape.n_kv_head,
        d_model=shape.d_model,
        causal=causal,
        tokens=tokens,
        weights=unpacked(kept["weights"], (*size, len(tokens), len(tokens))),
        scores=roles["scores"],
        chance={role: found["chance"] for role, found in roles["baselines"].items()},
        marked={role: masks[role].numpy() for role in ROLES},
        costs=_recorded("importance")[model]["ablation"],
        asked=asked,
        unit=unit,
        names=kept["answer"]["names"],
        said=kept["answer"]["said"],
        missing=_missing(model),
    )


def sentence(
    facts: Facts, role: str, layer: int, head: int, place: int, silent: bool, said: Said | str
) -> str:
    """What is seen of a head; `said` are names and numbers of what the model says, with and
    without it, or why there are none.
    """
    size = f"{facts.title}: {facts.n_layer} layers, d_model {facts.d_model}, n_head {facts.n_head}"
    if facts.n_kv_head != facts.n_head:
        size += f" ({facts.n_kv_head} for keys and values)"
    if not facts.has(layer, head):
        return (
            f"{size}. There is no head {head} in layer {layer}: layers are 0 to "
            f"{facts.n_layer - 1}, heads 0 to {facts.n_head - 1}."
        )
    cost = f"Recorded: silent, it costs {facts.costs[layer][head]:+.3f} nats."
    heard = _heard(*said) if silent and not isinstance(said, str) else said
    if not silent and not facts.missing:
        heard = "Let it be silent to see the output move."
    return "\n".join(
        [
            f"{size}. {_score(facts, role, layer, head)}",
            reading(facts.tokens, facts.row(layer, head, place), place),
            f"{cost} {heard}".strip(),
        ]
    )


def reading(tokens: Sequence[str], row: np.ndarray, place: int) -> str:
    """A row's largest weights in words."""
    place = min(place, len(tokens) - 1)
    order = sorted(range(len(row)), key=lambda key: (-row[key], key))
    told = [key for key in order[:MOST_READ] if row[key] >= LEAST_READ] or order[:1]
    gives = ", ".join(f"{row[key]:.2f} to “{tokens[key].strip()}” ({key})" for key in told)
    return f"Here “{tokens[place].strip()}” ({place}) gives {gives}."


def _score(facts: Facts, role: str, layer: int, head: int) -> str:
    if role not in facts.scores:
        return f"It sees only what came before, so no head can look at the {role} token."
    given = facts.scores[role][layer][head]
    return (
        f"Head {head} of layer {layer} gives {given:.2f}; "
        f"by chance it would be {facts.chance[role]:.2f}."
    )


def _heard(names: Sequence[str], whole: Sequence[float], now: Sequence[float]) -> str:
    moved = [abs(a - b) for a, b in zip(now, whole, strict=True)]
    most = moved.index(max(moved))
    return f"Silent, it moves the output by at most {moved[most]:.3f}, at “{names[most].strip()}”."


def _missing(model: str) -> str:
    try:
        require(model)
    except (MissingModel, BrokenModel) as error:
        return str(error)
    return ""


@cache
def _recorded(name: str) -> dict[str, Any]:
    return recorded(name)
