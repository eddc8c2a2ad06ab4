"""Lab 04: a model's ledger: which part has the parameters, the operations and the bytes.

Nothing here is a formula. The layers are made on torch's meta device, where a tensor has a shape
and no numbers, and then counted: parameters by numel(), operations by torch's own counter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import ipywidgets as widgets
import torch
from matplotlib.figure import Figure
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ..arithmetic.flops import SOFTMAX_OPS
from ..config import AttentionConfig, nearest_n_head
from ..plots.rows import split_bar
from ..plots.style import COLOURS
from .panel import Panel, head_controls, slider

Counts = Mapping[str, Mapping[str, int]]
BYTES = 2  # of a number in float16
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
) -> Panel:
    """A panel that counts a model of any size; at first it shows ANDREA-120M.

    With `attention_params`, a function like the lab's, the sentence below the picture compares
    what it says of one layer with the numel() of a real one.
    """
    controls = {
        **head_controls(n_head, d_model, most_heads=128, most_width=16384),
        "n_kv_head": slider("n_kv_head", n_kv_head or n_head, 1, 128, "heads of keys and values"),
        "n_layer": slider("n_layer", n_layer, 1, 128, "how many layers"),
        "context": slider("context", context, 1, 131072, "tokens of one text"),
        "vocab": slider("vocab", vocab, 256, 262144, "tokens that the model knows"),
        "tied": widgets.Checkbox(
            value=tied,
            description="tied: the output uses the table of tokens again",
            tooltip="tied: one table of tokens, or two",
            indent=False,
        ),
    }
    return _Ledger(controls, attention_params)


def counted(config: AttentionConfig, n_layer: int, context: int, vocab: int, tied: bool) -> Counts:
    """Count a model by part: its parameters, the operations of one pass over `context` tokens,
    and the bytes that it holds: weights, cached keys and values, the scores of one layer.
    """
    params = _parameters(config, context, vocab)
    layers = {name: n_layer * params[name] for name in ("attention", "MLP")}
    tables = params["tokens"] * (1 if tied else 2) + params["places"]
    flops = _operations(config, context, vocab)
    scores = config.n_head * context**2
    return {
        "parameters": {**layers, "embeddings": tables},
        "operations": {
            "projections": n_layer * flops["projections"],
            "scores": n_layer * flops["scores"],
            "softmax": n_layer * SOFTMAX_OPS * scores,
            "MLP": n_layer * flops["MLP"],
            "logits": flops["logits"],
        },
        "bytes": {
            "weights": BYTES * (sum(layers.values()) + tables),
            "cache": BYTES * n_layer * context * 2 * config.kv_width,
            "scores": BYTES * scores,
        },
    }


class _Ledger(Panel):
    def __init__(self, controls, attention_params: Callable[..., int] | None) -> None:
        self.own = attention_params
        super().__init__("The ledger of a model", controls, self._draw_ledger, size=(8.0, 3.4))

    def _changed(self, change) -> None:
        """Let n_kv_head follow n_head as long as every head has keys of its own."""
        n_kv_head = self.controls["n_kv_head"]
        if change["owner"] is not self.controls["n_head"] or n_kv_head.value != change["old"]:
            super()._changed(change)
        elif self._held:
            n_kv_head.value = change["new"]
        else:
            with self._hold():
                n_kv_head.value = change["new"]

    def _picture(self) -> str:
        message = super()._picture()
        n_head, n_kv_head = self.controls["n_head"].value, self.controls["n_kv_head"].value
        if not self.legal or n_head % n_kv_head == 0:
            return message
        self.legal = False
        self._offer("n_kv_head", nearest_n_head(n_head, n_kv_head), "n_head", n_head)
        return message

    def _draw_ledger(
        self, figure: Figure, n_head: int, d_model: int, n_kv_head: int, **more
    ) -> str:
        try:
            config = AttentionConfig(d_model, n_head, n_kv_head)
        except ValueError as error:
            ax = figure.add_subplot()
            split_bar(n_head, min(n_head, n_kv_head), ax=ax, title="These groups don't fit")
            ax.set_xlabel(f"the {n_head} heads, to be shared out among {n_kv_head} keys")
            return f"Not allowed: {error}."
        rows = counted(config, **more)
        _draw_rows(figure, rows)
        return "\n".join([*_sentences(rows, config), *self._compared(config)])

    def _compared(self, c: AttentionConfig) -> list[str]:
        if self.own is None:
            return []
        try:
            said = self.own(c.d_model, c.n_head, c.n_kv_head, c.head_dim)
        except NotImplementedError:
            return ["Write attention_params and check it; then this line compares it."]
        real = _parameters(c, 1, 1)["attention"]
        same = "the same" if said == real else "not the same"
        shown = f"{said:,}" if isinstance(said, (int, float)) else repr(said)
        return [f"Your attention_params says {shown} a layer, a real layer has {real:,}: {same}."]


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
    parts, flops = rows["parameters"], rows["operations"]
    params = 100 * parts["attention"] / sum(parts.values())
    work = sum(flops[name] for name in ("projections", "scores", "softmax"))
    return (
        f"Attention has {params:.1f} % of the parameters and "
        f"{100 * work / sum(flops.values()):.1f} % of the operations"
    )


def _sentences(rows: Counts, config: AttentionConfig) -> list[str]:
    lines = []
    for name, parts in rows.items():
        listed = ", ".join(f"{part} {short(count, UNITS[name])}" for part, count in parts.items())
        lines.append(f"{name}: {listed}.")
    heads = f"{config.n_head} heads of {config.head_dim}" if config.n_head > 1 else "one head"
    return [f"{heads}, {config.kind}.", *lines]


def short(count: int, unit: str = "") -> str:
    """A count with four digits and its size: M for a million, G for a thousand of these."""
    value, step = float(count), 0
    while value >= 1000 and step < len(_STEPS) - 1:
        value, step = value / 1000, step + 1
    return f"{value:.4g} {_STEPS[step]}{unit}" if step > 1 else f"{count:,} {unit}".rstrip()


@lru_cache(maxsize=64)
def _parameters(config: AttentionConfig, context: int, vocab: int) -> dict[str, int]:
    tables = {"tokens": nn.Embedding(vocab, config.d_model, device="meta")}
    tables["places"] = nn.Embedding(context, config.d_model, device="meta")
    modules = {"attention": _projections(config), "MLP": _mlp(config.d_model), **tables}
    return {name: sum(p.numel() for p in m.parameters()) for name, m in modules.items()}


@lru_cache(maxsize=64)
def _operations(config: AttentionConfig, context: int, vocab: int) -> dict[str, int]:
    """The operations of one layer over `context` tokens, and of the output's product."""
    c = config
    q = torch.empty(c.n_head, context, c.head_dim, device="meta")
    weights = torch.empty(c.n_head, context, context, device="meta")
    W = _linear(c.d_model, vocab)
    work = {
        "projections": lambda: _run(_projections(c), context),
        "scores": lambda: (q @ q.mT, weights @ q),
        "MLP": lambda: _run(_mlp(c.d_model), context),
        "logits": lambda: _run([W], context),
    }
    flops = {}
    for name, job in work.items():
        with FlopCounterMode(display=False) as counter:
            job()
        flops[name] = counter.get_total_flops()
    return flops


def _projections(c: AttentionConfig) -> nn.ModuleList:
    sides = [(c.d_model, c.width), *[(c.d_model, c.kv_width)] * 2, (c.width, c.d_model)]
    return nn.ModuleList(_linear(*side) for side in sides)


def _mlp(d_model: int) -> nn.ModuleList:
    return nn.ModuleList([_linear(d_model, 4 * d_model), _linear(4 * d_model, d_model)])


def _linear(d_in: int, d_out: int) -> nn.Linear:
    return nn.Linear(d_in, d_out, bias=False, device="meta")


def _run(layers, tokens: int) -> None:
    for layer in layers:
        layer(torch.empty(tokens, layer.in_features, device="meta"))
