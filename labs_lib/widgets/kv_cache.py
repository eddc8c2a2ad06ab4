"""Lab 08: what one token costs in the cache, in four ways to keep it, and how long a text fits.

Nothing here is a formula: one token's keys and values, or its latent, are made on torch's meta
device, where a tensor has a shape and no numbers, and their bytes are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from matplotlib.figure import Figure

from ..config import AttentionConfig, nearest_n_head
from ..plots.rows import split_bar
from ..plots.style import COLOURS
from .panel import Panel, head_controls, slider

GIB = 2**30


def kv_cache(
    kv_bytes: Callable[..., Mapping[str, float]] | None = None,
    *,
    n_head: int = 32,
    d_model: int = 4096,
    n_kv_head: int = 8,
    n_layer: int = 32,
    card: int = 80,
    weights: int = 15,
) -> Panel:
    """A panel of cache sizes; at first it shows Llama-3-8B on a card of 80 GiB.

    With `kv_bytes`, a function like the lab's, the sentences below the picture compare what it says
    of n_kv_head heads with what is counted.
    """
    controls = {
        **head_controls(n_head, d_model, most_heads=128, most_width=16384),
        "n_kv_head": slider("n_kv_head", n_kv_head, 1, 128, "heads of keys and values in GQA"),
        "n_layer": slider("n_layer", n_layer, 1, 128, "how many layers"),
        "rank": slider("rank", 512, 8, 2048, "numbers of a latent in MLA"),
        "rotary": slider("rotary", 64, 2, 256, "numbers of its rotary key"),
        "card": slider("card", card, 4, 192, "memory of the card, GiB"),
        "weights": slider("weights", weights, 0, 192, "memory that the weights take, GiB"),
    }
    return _Caches(controls, kv_bytes)


def bytes_per_token(
    config: AttentionConfig, n_layer: int, rank: int, rotary: int
) -> dict[str, int]:
    """Count what one token adds to the cache of all layers, in float16, for each way to keep it."""
    heads = {"MHA": config.n_head, "GQA": config.n_kv_head, "MQA": 1}
    kept = {
        name: [_token(n_layer, count, config.head_dim) for _ in ("key", "value")]
        for name, count in heads.items()
    }
    kept["MLA"] = [_token(n_layer, rank), _token(n_layer, rotary)]
    return {name: sum(part.nbytes for part in parts) for name, parts in kept.items()}


class _Caches(Panel):
    def __init__(self, controls, kv_bytes: Callable[..., Mapping[str, float]] | None) -> None:
        self.own = kv_bytes
        super().__init__("What a token costs in the cache", controls, self._bars, size=(8.0, 3.2))

    def _picture(self) -> str:
        message = super()._picture()
        if not self.legal:
            return message
        n_head, n_kv_head = self.controls["n_head"].value, self.controls["n_kv_head"].value
        rotary = self.controls["rotary"].value
        if n_head % n_kv_head:
            self.legal = False
            self._offer("n_kv_head", nearest_n_head(n_head, n_kv_head), "n_head", n_head)
        elif rotary % 2:
            self.legal = False
            self._offer("rotary", (rotary - 1, rotary + 1), "n_head", n_head)
        return message

    def _bars(
        self, figure: Figure, n_head: int, d_model: int, n_kv_head: int, rotary: int, **more
    ) -> str:
        try:
            config = AttentionConfig(d_model, n_head, n_kv_head)
        except ValueError as error:
            ax = figure.add_subplot()
            split_bar(n_head, min(n_head, n_kv_head), ax=ax, title="These groups don't fit")
            ax.set_xlabel(f"the {n_head} heads, to be shared out among {n_kv_head} keys")
            return f"Not allowed: {error}."
        if rotary % 2:
            split_bar(rotary, 2, ax=figure.add_subplot(), title="One number has no partner")
            return (
                f"Not allowed: rotary={rotary} is odd, and positions turn numbers in pairs; "
                f"{rotary - 1} and {rotary + 1} would do."
            )
        sizes = bytes_per_token(config, more["n_layer"], more["rank"], rotary)
        room = (more["card"] - more["weights"]) * GIB
        _draw(figure, sizes, room)
        return "\n".join([*_sentences(config, sizes, room, more), *self._compared(config, more)])

    def _compared(self, config: AttentionConfig, more: Mapping[str, int]) -> list[str]:
        if self.own is None:
            return []
        sizes = (more["n_layer"], config.n_head, config.n_kv_head, config.head_dim, 1)
        try:
            said = self.own(*sizes)["bytes"]
        except NotImplementedError:
            return ["Write kv_bytes, and your number stands here."]
        counted = bytes_per_token(config, more["n_layer"], 8, 2)["GQA"]
        verdict = "the same" if said == counted else "not the same"
        return [f"Your kv_bytes says {said:,} B a token, counted are {counted:,} B: {verdict}."]


def _token(n_layer: int, *shape: int) -> torch.Tensor:
    return torch.empty(n_layer, *shape, dtype=torch.float16, device="meta")


def _draw(figure: Figure, sizes: Mapping[str, int], room: int) -> None:
    ax = figure.add_subplot()
    unit, scale = _unit(max(sizes.values()))
    widest = max(sizes.values()) / scale
    for place, size in enumerate(sizes.values()):
        ax.barh(place, size / scale, color=COLOURS[place], height=0.6)
        fits = f"{room // size:,} tokens fit" if room > 0 else "no room"
        words = f"{in_words(size)}: {fits}"
        ax.text(size / scale + 0.01 * widest, place, words, va="center", fontsize=9)
    ax.set_yticks(range(len(sizes)), list(sizes))
    ax.invert_yaxis()
    ax.set_xlim(0, 1.5 * widest)
    ax.set_xlabel(f"{unit} that one token adds, all layers, two bytes a number")
    ax.set_title(_title(sizes))


def _title(sizes: Mapping[str, int]) -> str:
    if sizes["GQA"] == sizes["MHA"]:
        return "Every query head has keys and values of its own"
    return f"Shared heads keep {sizes['GQA'] / sizes['MHA']:.1%} of what ordinary ones keep"


def _sentences(
    config: AttentionConfig, sizes: Mapping[str, int], room: int, more: Mapping[str, int]
) -> list[str]:
    listed = ", ".join(f"{name} {size:,} B" for name, size in sizes.items())
    first = f"{config.n_head} query heads of {config.head_dim}, {config.n_kv_head} to be kept: "
    if room <= 0:
        return [
            f"{first}{listed}, a token.",
            f"The weights ({more['weights']} GiB) leave no room on a card of {more['card']} GiB.",
        ]
    fits = ", ".join(f"{name} {room // size:,}" for name, size in sizes.items())
    return [f"{first}{listed}, a token.", f"Tokens that fit beside the weights: {fits}."]


def in_words(size: int) -> str:
    """Bytes in binary units, four digits."""
    unit, scale = _unit(size)
    return f"{size / scale:.4g} {unit}"


def _unit(size: int) -> tuple[str, int]:
    """The largest unit that the size reaches, and its bytes."""
    units = (("MiB", 2**20), ("KiB", 2**10))
    return next(((name, scale) for name, scale in units if size >= scale), ("B", 1))
