"""Lab 08: what one token costs in the cache, in four ways to keep it, and how long a text fits.

Nothing here is a formula: one token's keys and values, or its latent, are made on torch's meta
device, where a tensor has a shape and no numbers, and their bytes are counted.
front/kv_cache.mjs counts vectors one after the other in the browser.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from typing import Any

import torch
from matplotlib.figure import Figure

from ..config import AttentionConfig
from ..plots.style import COLOURS
from .explorer import Explorer
from .knobs import head_knobs, slider
from .rules import Misfit, group_rule
from .still import students_own

GIB = 2**30
KvBytes = Callable[..., Mapping[str, float]]


def kv_cache(
    kv_bytes: KvBytes | None = None,
    *,
    n_head: int = 32,
    d_model: int = 4096,
    n_kv_head: int = 8,
    n_layer: int = 32,
    card: int = 80,
    weights: int = 15,
) -> Explorer:
    """An explorer of cache sizes; at first it shows Llama-3-8B on a card of 80 GiB.

    With `kv_bytes`, a function like the lab's, the sentences below the picture compare what it says
    of n_kv_head heads with what is counted.
    """
    knobs = [
        *head_knobs(n_head, d_model, most_heads=128, most_width=16384),
        slider("n_kv_head", n_kv_head, 1, 128, "heads of keys and values in GQA"),
        slider("n_layer", n_layer, 1, 128, "how many layers"),
        slider("rank", 512, 8, 2048, "numbers of a latent in MLA"),
        slider("rotary", 64, 2, 256, "numbers of its rotary key"),
        slider("card", card, 4, 192, "memory of the card, GiB"),
        slider("weights", weights, 0, 192, "memory that the weights take, GiB"),
    ]

    def ask(n_layer: int, **settings: int) -> dict[str, Any] | None:
        config = _config(settings)
        return None if kv_bytes is None else {"message": _compared(kv_bytes, config, n_layer)}

    def draw(figure: Figure, **settings: int) -> str:
        return _draw(figure, kv_bytes, settings)

    return Explorer(
        "What a token costs in the cache",
        knobs,
        draw,
        script="kv_cache",
        ask=ask,
        plays=("rank", "rotary", "card", "weights"),
        data={"asks": kv_bytes is not None},
        rules=(group_rule, rotary_rule),
        size=(8.0, 3.2),
    )


def rotary_rule(values: Mapping[str, Any]) -> Misfit | None:
    """Positions turn numbers in pairs, so a rotary key has an even number of them."""
    rotary = values["rotary"]
    if rotary % 2 == 0:
        return None
    why = f"rotary={rotary} is odd, and positions turn numbers in pairs"
    offers = (("rotary", rotary - 1), ("rotary", rotary + 1))
    label = f"the {rotary} numbers of a rotary key, in two halves"
    return Misfit(why, offers, rotary, 2, "One number has no partner", label)


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


def _config(settings: Mapping[str, int]) -> AttentionConfig:
    return AttentionConfig(settings["d_model"], settings["n_head"], settings["n_kv_head"])


def _draw(figure: Figure, kv_bytes: KvBytes | None, settings: Mapping[str, int]) -> str:
    config, n_layer = _config(settings), settings["n_layer"]
    sizes = bytes_per_token(config, n_layer, settings["rank"], settings["rotary"])
    room = (settings["card"] - settings["weights"]) * GIB
    _draw_bars(figure, sizes, room)
    told = _sentences(config, sizes, room, settings)
    return "\n".join([*told, *([_compared(kv_bytes, config, n_layer)] if kv_bytes else [])])


def _compared(kv_bytes: KvBytes, config: AttentionConfig, n_layer: int) -> str:
    """What a student's function says of one token, beside what is counted."""
    try:
        with students_own():
            made = kv_bytes(n_layer, config.n_head, config.n_kv_head, config.head_dim, 1)
    except NotImplementedError:
        return "Write kv_bytes, and your number stands here."
    said = made.get("bytes") if isinstance(made, Mapping) else None
    if not isinstance(said, numbers.Real):
        return f"Your kv_bytes gave {made!r}; wanted is a dictionary with a number of 'bytes'."
    counted = bytes_per_token(config, n_layer, 8, 2)["GQA"]
    verdict = "the same" if said == counted else "not the same"
    return f"Your kv_bytes says {said:,} B a token, counted are {counted:,} B: {verdict}."


def _token(n_layer: int, *shape: int) -> torch.Tensor:
    return torch.empty(n_layer, *shape, dtype=torch.float16, device="meta")


def _draw_bars(figure: Figure, sizes: Mapping[str, int], room: int) -> None:
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
    heads = "query heads" if config.n_head > 1 else "query head"
    first = f"{config.n_head} {heads} of {config.head_dim}, {config.n_kv_head} to be kept: "
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
