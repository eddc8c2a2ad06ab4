"""Lab 06: every head of the two models with its role score; silence one and see the output move.

Without the models the panel shows what was recorded: scores, and what silencing a head costs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn
from torch.nn import functional as F

from ..models import BrokenModel, Hooks, MissingModel, load
from ..models.minilm import SHAPE as MINILM
from ..models.roles import ROLES
from ..models.smollm2 import SHAPE as SMOLLM2
from ..models.studies import recorded
from ..plots.grids import heatmap
from ..plots.style import COLOURS, INK
from .panel import Panel, choice, slider

SHAPES = {"minilm": MINILM, "smollm2": SMOLLM2}
NAMES = {"MiniLM": "minilm", "SmolLM2": "smollm2"}
SPEAKS, SILENT = "speaks", "is silent"
PROMPT = "The keys to the cabinet are on the table. The keys to the"
SENTENCE = "A cat sleeps on the sofa."
OTHERS = (
    "On the couch lies a kitten.",
    "A dog sleeps on the sofa.",
    "The sofa is on sale.",
    "The train was late.",
)
MOST_LAYERS = max(shape.n_layer for shape in SHAPES.values())
MOST_HEADS = max(shape.n_head for shape in SHAPES.values())
MOST_WORDS = 5


def head_atlas(
    model: str = "minilm", role: str = "previous", layer: int = 0, head: int = 2
) -> Panel:
    """A panel with a cell for every head of a model, coloured by its score for a role.

    `layer` and `head` choose one; let it be silent, and the right half shows what the model says
    with it and without it.
    """
    controls = {
        "model": choice("model", NAMES.items(), "whose heads", value=model),
        "role": choice("role", ROLES, "what a head may look at", value=role),
        "layer": slider("layer", layer, 0, MOST_LAYERS - 1, "counted from the input"),
        "head": slider("head", head, 0, MOST_HEADS - 1, "within its layer"),
        "it": choice("it", (SPEAKS, SILENT), "whether this head adds anything"),
    }
    return Panel("every head of a model, and what it looks at", controls, _draw, size=(9.0, 4.6))


def scores_of(model: str, role: str) -> Tensor | None:
    """Return the recorded score of every head for a role, [n_layer, n_head]; None without one."""
    found = _roles()[model]["scores"].get(role)
    return None if found is None else torch.tensor(found)


def _draw(figure: Figure, model: str, role: str, layer: int, head: int, it: str) -> str:
    shape = SHAPES[model]
    title = {name: shown for shown, name in NAMES.items()}[model]
    size = f"{title}: {shape.n_layer} layers, d_model {shape.d_model}, n_head {shape.n_head}"
    if shape.n_kv_head != shape.n_head:
        size += f" ({shape.n_kv_head} for keys and values)"
    exists = layer < shape.n_layer and head < shape.n_head
    scores = scores_of(model, role)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    if scores is None:
        left.set_axis_off()
        right.set_axis_off()
        return f"{size}. It sees only what came before, so no head can look at the {role} token."
    heatmap(
        scores,
        title=f'{title}: share of weight on "{role}"',
        rows="layer",
        columns="head",
        limits=(0, 1),
        show_numbers=False,
        ax=left,
    )
    left.set_aspect("auto")
    figure.colorbar(left.images[0], ax=left, label="share of its weight")
    if not exists:
        right.set_axis_off()
        return (
            f"{size}. There is no head {head} in layer {layer}: layers are 0 to "
            f"{shape.n_layer - 1}, heads 0 to {shape.n_head - 1}."
        )
    left.add_patch(Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, ec=COLOURS[1], lw=2.5))
    score = f"Head {head} of layer {layer} gives {float(scores[layer, head]):.2f}; "
    known = _roles()[model]["baselines"][role]
    score += f"by chance it would be {known['chance']:.2f}"
    return f"{size}. {score}. {_draw_output(right, model, layer, head, it == SILENT)}"


def _draw_output(ax: Axes, model: str, layer: int, head: int, silent: bool) -> str:
    loaded = _loaded(model)
    if isinstance(loaded, str):
        return _draw_recorded(ax, model, layer, head, loaded)
    names, whole = _output(model, ())
    _, now = _output(model, ((layer, head),) if silent else ())
    places = torch.arange(len(names))
    ax.barh(places - 0.2 * silent, whole, 0.36, color=COLOURS[0], label="all heads speak")
    if silent:
        ax.barh(places + 0.2, now, 0.36, color=COLOURS[1], label="it is silent")
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.legend(fontsize=8)
    ax.set_xlim(min(0.0, float(min(whole.min(), now.min()))), 1)
    if model == "smollm2":
        ax.set_title(f'Next word after "... {PROMPT[-15:]}"', fontsize=10)
        ax.set_xlabel("probability")
    else:
        ax.set_title(f'How near to "{SENTENCE}"', fontsize=10)
        ax.set_xlabel("cosine of the two vectors")
    if not silent:
        return "Let it be silent to see the output move."
    moved = (now - whole).abs()
    most = int(moved.argmax())
    return (
        f"Silent, it moves the output by at most {float(moved[most]):.3f}, "
        f"at {names[most].strip()!r}."
    )


def _draw_recorded(ax: Axes, model: str, layer: int, head: int, why: str) -> str:
    rises = torch.tensor(recorded("importance")[model]["ablation"])
    ax.hist(rises.flatten().numpy(), bins=40, color=COLOURS[0])
    ax.axvline(float(rises[layer, head]), color=COLOURS[1], lw=2)
    ax.axvline(0, color=INK, lw=0.8)
    ax.set_title("What silencing a head costs (recorded)", fontsize=10)
    ax.set_xlabel("rise of the loss (nats)")
    ax.set_ylabel("heads")
    return f"Recorded: silent, it costs {float(rises[layer, head]):+.3f} nats. {why}"


@cache
def _roles() -> dict[str, Any]:
    return recorded("roles")


@cache
def _load(model: str) -> nn.Module:
    return load(model)


def _loaded(model: str) -> nn.Module | str:
    """The model, or the sentence that says how to get it."""
    try:
        return _load(model)
    except (MissingModel, BrokenModel) as error:
        return str(error)


@cache
def _output(model: str, ablate: tuple[tuple[int, int], ...]) -> tuple[list[str], Tensor]:
    """What the model says, by name: probabilities of next words, or nearness of sentences."""
    loaded, hooks = _load(model), Hooks(ablate=ablate)
    with torch.no_grad():
        if model == "minilm":
            vectors = loaded.sentence_vectors([SENTENCE, *OTHERS], hooks=hooks)
            return list(OTHERS), F.cosine_similarity(vectors[:1], vectors[1:])
        likely = loaded(loaded.ids(PROMPT), hooks=hooks, last=True)[0, -1].softmax(-1)
    top = _top_words()
    return loaded.tokenizer.tokens(top), likely[top]


@cache
def _top_words() -> list[int]:
    """The likeliest next tokens of the whole model; they stay, whichever head is silent."""
    loaded = _load("smollm2")
    with torch.no_grad():
        logits = loaded(loaded.ids(PROMPT), last=True)[0, -1]
    return logits.topk(MOST_WORDS).indices.tolist()
