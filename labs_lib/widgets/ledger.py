"""Lab 04: a model's ledger: which part has the parameters, the operations and the bytes.

Nothing here is a formula. The layers are made on torch's meta device, where a tensor has a shape
and no numbers, and then counted: parameters by numel(), operations as torch's own counter does.
front/ledger.mjs counts the same in the browser; a student's own function runs here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import nn

from ..arithmetic.flops import SOFTMAX_OPS
from ..config import AttentionConfig, LatentAttention
from ..exercises.measure import flops
from ..plots.style import COLOURS
from .explorer import Explorer
from .knobs import Knob, choice, head_knobs, slider, tick
from .rules import Misfit, group_rule
from .still import students_own

Layer = AttentionConfig | LatentAttention
Counts = Mapping[str, Mapping[str, int]]
BYTES = 2  # of a number in float16
HEADS, LATENT = "keys and values", "a latent (MLA)"
UNITS = {"parameters": "", "operations": "", "bytes": "B"}
_PART_COLOURS = {
    "attention": COLOURS[0],
    "projections": COLOURS[0],
    "scores": COLOURS[3],
    "softmax": COLOURS[5],
    "MLP": COLOURS[1],
    "embeddings": COLOURS[2],
    "logits": COLOURS[2],
    "weights": COLOURS[4],
    "cache": COLOURS[2],
}
_STEPS = ("", "k", "M", "G", "T", "P", "E")


def ledger(
    attention_params: Callable[..., int] | None = None,
    *,
    n_head: int = 12,
    d_model: int = 768,
    n_kv_head: int | None = None,
    n_layer: int = 12,
    context: int = 1024,
    vocab: int = 8449,
    tied: bool = False,
) -> Explorer:
    """An explorer that counts a model of any size; at first it shows ANDREA-120M.

    With `attention_params`, a function like the lab's, the sentence below the picture compares
    what it says of one layer with the numel() of a real one.
    """
    knobs = [
        *_layer_knobs(n_head, d_model, n_kv_head or n_head),
        slider("n_layer", n_layer, 1, 128, "how many layers"),
        slider("context", context, 1, 131072, "tokens of one text"),
        slider("vocab", vocab, 256, 262144, "tokens that the model knows"),
        tick("tied", tied, "tied: the output uses the table of tokens again"),
    ]

    def draw(figure: Figure, **settings: Any) -> str:
        layer, more = _layer(**settings)
        rows = counted(layer, **more)
        _draw_rows(figure, rows)
        own = [] if attention_params is None else [_compared(attention_params, layer)]
        return "\n".join([*_sentences(rows, layer), *own])

    def ask(**settings: Any) -> dict[str, str] | None:
        if attention_params is None:
            return None
        return {"line": _compared(attention_params, _layer(**settings)[0])}

    return Explorer(
        "The ledger of a model",
        knobs,
        draw,
        script="ledger",
        ask=ask,
        follow={"n_kv_head": "n_head"},
        data={"asks": attention_params is not None, "softmax_ops": SOFTMAX_OPS},
        rules=(_groups,),
    )


def counted(config: Layer, n_layer: int, context: int, vocab: int, tied: bool) -> Counts:
    """Count a model by part: its parameters, the operations of one pass over `context` tokens,
    and the bytes that it holds: weights, cached keys and values, the scores of one layer.
    """
    params = _parameters(config, context, vocab)
    layers = {name: n_layer * params[name] for name in ("attention", "MLP")}
    tables = params["tokens"] * (1 if tied else 2) + params["places"]
    work = _operations(config, context, vocab)
    scores = config.n_head * context**2
    return {
        "parameters": {**layers, "embeddings": tables},
        "operations": {
            "projections": n_layer * work["projections"],
            "scores": n_layer * work["scores"],
            "softmax": n_layer * SOFTMAX_OPS * scores,
            "MLP": n_layer * work["MLP"],
            "logits": work["logits"],
        },
        "bytes": {
            "weights": BYTES * (sum(layers.values()) + tables),
            "cache": BYTES * n_layer * context * _kept(config),
            "scores": BYTES * scores,
        },
    }


def _layer_knobs(n_head: int, d_model: int, n_kv_head: int) -> list[Knob]:
    return [
        *head_knobs(n_head, d_model, most_heads=128, most_width=16384),
        slider("n_kv_head", n_kv_head, 1, 128, "heads of keys and values"),
        choice("cached", (HEADS, LATENT), "what is kept of a token: of its heads, or one latent"),
        slider("rank", 512, 8, 2048, "numbers of a latent in MLA"),
        slider("rotary", 64, 2, 256, "numbers of its rotary key", step=2),
    ]


def _groups(values: Mapping[str, Any]) -> Misfit | None:
    return None if values["cached"] == LATENT else group_rule(values)


def _layer(
    n_head: int, d_model: int, n_kv_head: int, cached: str, rank: int, rotary: int, **more: Any
) -> tuple[Layer, dict[str, Any]]:
    """The sizes of one layer, and the settings that say nothing about it."""
    if cached == HEADS:
        return AttentionConfig(d_model, n_head, n_kv_head), more
    head_dim = d_model // n_head
    return LatentAttention(d_model, n_head, rank, head_dim, rotary, head_dim), more


def _compared(own: Callable[..., int], c: Layer) -> str:
    if isinstance(c, LatentAttention):
        return "attention_params counts layers that keep keys and values; this one keeps a latent."
    try:
        with students_own():
            said = own(c.d_model, c.n_head, c.n_kv_head, c.head_dim)
    except NotImplementedError:
        return "Write attention_params and check it; then this line compares it."
    real = _parameters(c, 1, 1)["attention"]
    same = "the same" if said == real else "not the same"
    shown = f"{said:,}" if isinstance(said, (int, float)) else repr(said)
    return f"Your attention_params says {shown} a layer, a real layer has {real:,}: {same}."


def _draw_rows(figure: Figure, rows: Counts) -> None:
    for index, (name, parts) in enumerate(rows.items(), 1):
        ax = figure.add_subplot(len(rows), 1, index)
        total, left = sum(parts.values()), 0.0
        for part, count in parts.items():
            width = 100 * count / total
            ax.barh(0, width, left=left, color=_PART_COLOURS[part], edgecolor="white", lw=1.0)
            if width > 9:
                words = f"{part}\n{width:.1f} %"
                ax.text(left + width / 2, 0, words, ha="center", va="center", color="white", size=8)
            left += width
        ax.set_xlim(0, 100)
        ax.set_yticks([0], [f"{name}\n{short(total, UNITS[name])}"])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        if index < len(rows):
            ax.set_xticks([])
    ax.set_xlabel("share (%)")
    figure.axes[0].set_title(_title(rows))


def _title(rows: Counts) -> str:
    parts, work = rows["parameters"], rows["operations"]
    attention = sum(work[name] for name in ("projections", "scores", "softmax"))
    return (
        f"Attention has {100 * parts['attention'] / sum(parts.values()):.1f} % of the parameters "
        f"and {100 * attention / sum(work.values()):.1f} % of the operations"
    )


def _sentences(rows: Counts, config: Layer) -> list[str]:
    lines = []
    for name, parts in rows.items():
        listed = ", ".join(f"{part} {short(count, UNITS[name])}" for part, count in parts.items())
        lines.append(f"{name}: {listed}.")
    if isinstance(config, LatentAttention):
        head_dim, rotary = config.v_head_dim, config.qk_rope_head_dim
        kind = f"MLA with a latent of {config.kv_lora_rank} and a rotary key of {rotary}"
    else:
        head_dim, kind = config.head_dim, config.kind
    heads = f"{config.n_head} heads of {head_dim}" if config.n_head > 1 else "one head"
    return [f"{heads}, {kind}.", *lines]


def short(count: int, unit: str = "") -> str:
    """A count with four digits and its size: M for a million, G for a thousand of these."""
    value, step = float(count), 0
    while value >= 1000 and step < len(_STEPS) - 1:
        value, step = value / 1000, step + 1
    return f"{value:.4g} {_STEPS[step]}{unit}" if step > 1 else f"{count:,} {unit}".rstrip()


@lru_cache(maxsize=64)
def _parameters(config: Layer, context: int, vocab: int) -> dict[str, int]:
    tables = {"tokens": nn.Embedding(vocab, config.d_model, device="meta")}
    tables["places"] = nn.Embedding(context, config.d_model, device="meta")
    modules = {"attention": _projections(config), "MLP": _mlp(config.d_model), **tables}
    return {name: sum(p.numel() for p in m.parameters()) for name, m in modules.items()}


@lru_cache(maxsize=64)
def _operations(config: Layer, context: int, vocab: int) -> dict[str, int]:
    """The operations of one layer over `context` tokens, and of the output's product."""
    c = config
    latent = isinstance(c, LatentAttention)
    compared, answered = (c.qk_head_dim, c.v_head_dim) if latent else (c.head_dim, c.head_dim)
    q = torch.empty(c.n_head, context, compared, device="meta")
    v = torch.empty(c.n_head, context, answered, device="meta")
    weights = torch.empty(c.n_head, context, context, device="meta")
    W = _linear(c.d_model, vocab)
    work = {
        "projections": lambda: _run(_projections(c), context),
        "scores": lambda: (q @ q.mT, weights @ v),
        "MLP": lambda: _run(_mlp(c.d_model), context),
        "logits": lambda: _run([W], context),
    }
    return {name: flops(job) for name, job in work.items()}


def _projections(c: Layer) -> nn.ModuleList:
    if isinstance(c, LatentAttention):
        rank, rotary = c.kv_lora_rank, c.qk_rope_head_dim
        asks = [(c.d_model, c.n_head * c.qk_head_dim)]
        down, up = [(c.d_model, rank), (c.d_model, rotary)], [(rank, c.width)] * 2
        sides = [*asks, *down, *up, (c.width, c.d_model)]
    else:
        sides = [(c.d_model, c.width), *[(c.d_model, c.kv_width)] * 2, (c.width, c.d_model)]
    return nn.ModuleList(_linear(*side) for side in sides)


def _kept(c: Layer) -> int:
    """How many numbers of one token a layer keeps, counted on the tensors themselves."""
    if isinstance(c, LatentAttention):
        sizes = [(c.kv_lora_rank,), (c.qk_rope_head_dim,)]
    else:
        sizes = [(c.n_kv_head, c.head_dim)] * 2
    return sum(torch.empty(size, device="meta").numel() for size in sizes)


def _mlp(d_model: int) -> nn.ModuleList:
    return nn.ModuleList([_linear(d_model, 4 * d_model), _linear(4 * d_model, d_model)])


def _linear(d_in: int, d_out: int) -> nn.Linear:
    return nn.Linear(d_in, d_out, bias=False, device="meta")


def _run(layers, tokens: int) -> None:
    for layer in layers:
        layer(torch.empty(tokens, layer.in_features, device="meta"))
