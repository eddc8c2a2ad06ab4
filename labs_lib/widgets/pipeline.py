"""Lab 12: the five steps of one layer's attention, with the shapes that go in and come out.

front/pipeline.mjs computes the same in the browser.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ..config import AttentionConfig
from ..plots.style import COLOURS, INK
from .explorer import Explorer
from .knobs import head_knobs, slider
from .rules import group_rule

MOST_HEADS, MOST_WIDTH = 32, 2048


@dataclass(frozen=True)
class Step:
    """One step: its name, the tensors that come out with their shapes, and its products."""

    name: str
    out: Mapping[str, tuple[int, ...]]
    flops: int
    products: int


def pipeline(
    *, n_head: int = 9, d_model: int = 576, n_kv_head: int = 3, new: int = 7, past: int = 0
) -> Explorer:
    """An explorer of the five steps; at first it shows SmolLM2's layer as it reads seven tokens."""
    knobs = [
        *head_knobs(n_head, d_model, most_heads=MOST_HEADS, most_width=MOST_WIDTH),
        slider("n_kv_head", n_kv_head, 1, MOST_HEADS, "heads of keys and values"),
        slider("new", new, 1, 1024, "tokens that come in"),
        slider("past", past, 0, 8191, "tokens in the cache"),
    ]
    return Explorer(
        "The five steps of a layer's attention",
        knobs,
        _draw,
        script="pipeline",
        rules=(group_rule,),
        size=(9.0, 3.2),
    )


def steps(config: AttentionConfig, new: int, past: int, batch: int = 1) -> list[Step]:
    """The five steps of one layer for `new` tokens behind `past` kept ones.

    Operations count each multiplication and each addition of the products, as torch's counter does.
    """
    seq, d, width, kv = past + new, config.d_model, config.width, config.kv_width
    q = (batch, config.n_head, new, config.head_dim)
    k = (batch, config.n_kv_head, seq, config.head_dim)
    rows = 2 * batch * new
    return [
        Step(
            "1 project",
            {"q": (batch, new, width), "k": (batch, new, kv), "v": (batch, new, kv)},
            rows * d * (width + 2 * kv),
            3,
        ),
        Step("2 split", {"q": q, "k": k, "v": k}, 0, 0),
        Step("3 attend", {"heads": q}, 2 * rows * seq * width, 2),
        Step("4 merge", {"merged": (batch, new, width)}, 0, 0),
        Step("5 W_O", {"out": (batch, new, d)}, rows * width * d, 1),
    ]


def _draw(figure: Figure, n_head: int, d_model: int, n_kv_head: int, new: int, past: int) -> str:
    config = AttentionConfig(d_model, n_head, n_kv_head)
    done = steps(config, new, past)
    _boxes(figure.add_subplot(), config, done, new, past)
    return "\n".join(_sentences(config, done, new, past))


def _boxes(ax: Axes, config: AttentionConfig, done: list[Step], new: int, past: int) -> None:
    ax.set_xlim(0, 5)
    ax.set_ylim(-0.22, 1.0)
    ax.axis("off")
    works = {"2 split": "moves nothing", "4 merge": "one copy"}
    for place, step in enumerate(done):
        colour = COLOURS[0] if step.products else COLOURS[4]
        box = FancyBboxPatch(
            (place + 0.06, 0.0), 0.82, 0.92, boxstyle="round,pad=0.02,rounding_size=0.04",
            facecolor="white", edgecolor=colour, linewidth=1.6,
        )  # fmt: skip
        ax.add_patch(box)
        ax.text(place + 0.47, 0.83, step.name, ha="center", color=colour, weight="bold")
        for line, (name, shape) in enumerate(step.out.items()):
            ax.text(place + 0.47, 0.66 - 0.24 * line, name, ha="center", fontsize=9, color=INK)
            ax.text(place + 0.47, 0.56 - 0.24 * line, str(list(shape)), ha="center", fontsize=8.5)
        words = f"{in_words(step.flops)} operations" if step.products else works[step.name]
        ax.text(place + 0.47, -0.13, words, ha="center", fontsize=8.5, color=colour)
        if place < 4:
            ax.annotate(
                "", (place + 1.05, 0.46), (place + 0.9, 0.46),
                arrowprops={"arrowstyle": "->", "color": INK},
            )  # fmt: skip
    share = done[2].flops / sum(step.flops for step in done)
    keys = "key" if new + past == 1 else "keys"
    ax.set_title(
        f"x is [1, {new}, {config.d_model}]; attending to {new + past:,} {keys} is "
        f"{100 * share:.0f} % of the work"
    )


def _sentences(config: AttentionConfig, done: list[Step], new: int, past: int) -> list[str]:
    products = sum(step.products for step in done)
    weights = config.d_model * (2 * config.width + 2 * config.kv_width)
    kept = 2 * config.kv_width * (past + new)
    tokens = "1 token" if new == 1 else f"{new:,} tokens"
    return [
        f"{config.n_head} query heads of {config.head_dim}, {config.n_kv_head} of keys and values "
        f"({config.kind}), {tokens} behind {past:,}.",
        f"{products} products, {in_words(sum(s.flops for s in done))} operations, {weights:,} "
        f"weights; {kept:,} numbers are in the layer's cache afterwards.",
    ]


def in_words(count: int) -> str:
    """A count with three digits and a unit: 6.29 M."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)
