"""Lab 08: the cases of its exercises on caches and shared heads, and how programs meet them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .inputs import causal_pairs, qkv, uniform, weight
from .kit import Case
from .refusals import refusal


def turn(t: Tensor, start: int) -> Tensor:
    """Rotary positions from `start` on: pairs of numbers of t [..., seq, width] turned by angles.

    Numbers 2i and 2i + 1 are turned by position / 10000^(2i / width). Su et al. 2021.
    """
    seq, width = t.shape[-2:]
    places = torch.arange(start, start + seq, dtype=torch.float64)
    speeds = 10_000.0 ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = places[:, None] * speeds
    turned = torch.polar(torch.ones_like(angles), angles)  # [seq, width / 2], complex
    pairs = torch.view_as_complex(t.to(torch.float64).unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turned).flatten(-2).to(t.dtype)


def cache_cases(rng: np.random.Generator) -> list[Case]:
    """Sizes of a cache and the keys and values that are appended to it, part by part."""

    def case(name, capacity, parts, *, batch=2, n_kv_head=3, head_dim=4, dtype=torch.float32):
        sizes = batch, n_kv_head, head_dim, capacity, dtype
        appended = [
            tuple(uniform(rng, batch, n_kv_head, new, head_dim, dtype=dtype) for _ in range(2))
            for new in parts
        ]
        return Case(name, sizes, {"parts": appended})

    return [
        case("four tokens, then one by one", 9, [4, 1, 1, 1]),
        case("one by one from the start", 8, [1] * 5, n_kv_head=2),
        case("float64", 12, [3, 2, 4], batch=3, dtype=torch.float64),
        case("exactly full", 7, [4, 3]),
        case("k and v are overwritten afterwards", 9, [2, 3, 1]),
        case("two caches by turns", 9, [2, 3, 1, 2]),
        case("refuse: one too many, then one that fits", 6, [5, 2, 1]),
        case("refuse: more than there is room for at all", 4, [7, 4]),
    ]


def call_cache(make: Callable[..., Any], case: Case) -> Any:
    """Make a cache, append the parts, and tell after each what is there."""
    parts = case.kwargs["parts"]
    if case.name == "two caches by turns":
        caches = [make(*case.args), make(*case.args)]
        return {f"append {i + 1}": _appended(caches[i % 2], *p) for i, p in enumerate(parts)}
    cache, seen = make(*case.args), {}
    for i, (k, v) in enumerate(parts):
        if case.name.startswith(("refuse", "exactly full")):
            seen[f"append {i + 1}"] = _appended_or_refused(cache, k, v)
            continue
        seen[f"append {i + 1}"] = _appended(cache, k, v)
        if "overwritten" in case.name:
            k.zero_()
            v.zero_()
    return seen


def _appended(cache: Any, k: Tensor, v: Tensor) -> dict[str, Any]:
    returned = cache.append(k, v)
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise TypeError("append returns two tensors: all keys and all values so far")
    keys, values = (t.clone() if isinstance(t, Tensor) else t for t in returned)
    return {"length": cache.length, "keys": keys, "values": values}


def _appended_or_refused(cache: Any, k: Tensor, v: Tensor) -> dict[str, Any]:
    refused, appended = refusal(lambda: _appended(cache, k, v))
    return refused | (appended or {"length": cache.length})


def step_cases(rng: np.random.Generator) -> list[Case]:
    """A layer's weights and a text x [batch, seq, d_model], cut into steps."""

    def case(
        name, split, *, d_model=12, n_head=3, head_dim=4, dtype=torch.float32, grad=False, batch=2
    ):
        width = n_head * head_dim
        x = uniform(rng, batch, sum(split), d_model, std=1.0, dtype=dtype)
        sizes = ((d_model, width),) * 3 + ((width, d_model),)
        W = [uniform(rng, *size, std=1.5 * size[0] ** -0.5, dtype=dtype) for size in sizes]
        return Case(name, (x, *W, n_head, turn), {"split": split}, grad)

    return [
        case("four tokens, then one by one", [4, 1, 1, 1]),
        case("one by one from the start", [1] * 5),
        case("four tokens, then three at once", [4, 3]),
        case("all at once", [7], dtype=torch.float64),
        case("heads wider than the model", [2, 1, 2], d_model=10, head_dim=6),
        case("four heads in float64", [3, 2, 1], n_head=4, head_dim=2, dtype=torch.float64),
        case("two ways to go on from one text", [3, 1, 2]),
        case("gradients", [3, 1], head_dim=2, dtype=torch.float64, grad=True),
    ]


def call_steps(program: Callable[..., Any], case: Case) -> Any:
    """Run the layer step by step, each with what the step before kept; then new texts without."""
    (x, *rest), split = case.args, case.kwargs["split"]
    seen: dict[str, Any] = {}
    kept: tuple[Any, ...] = ()
    for i, part in enumerate(x.split(split, dim=1)):
        returned = program(part, *rest, *kept)
        if case.name.startswith("two ways") and i:
            returned = program(part.flip(1) + 1.0, *rest, *kept)  # the same past, another step
        out, cache = _results(returned)
        names = NAMES.get(len(out), ())
        kept_now = dict(zip(names[len(out) :], cache, strict=True)) if names else tuple(cache)
        seen[f"step {i + 1}"] = _named_as(out) | {"kept": kept_now}
        kept = (cache,)
    seen["a new text of one token"] = _named_as(_results(program(x[:, :1], *rest))[0])
    seen["the whole text anew"] = _named_as(_results(program(x, *rest))[0])
    return seen


# What a step returns, as the stubs call it, by the number of its outputs; then what it keeps.
NAMES = {1: ("out", "k", "v"), 2: ("k", "v", "latents", "rotary keys")}


def _named_as(out: tuple[Any, ...]) -> dict[str, Any]:
    names = NAMES.get(len(out))
    return dict(zip(names, out, strict=False)) if names else {"computed": out}


def _results(returned: Any) -> tuple[tuple[Any, ...], Any]:
    """What a step returned: its outputs, and last the pair that it keeps."""
    if not isinstance(returned, (tuple, list)) or len(returned) < 2:
        raise TypeError(f"a step returns what it computed and the cache, not {_named(returned)}")
    *out, kept = returned
    if not isinstance(kept, (tuple, list)) or len(kept) != 2:
        raise TypeError(
            f"the cache is a pair of tensors, not {_named(kept)}; it comes last, in one tuple"
        )
    return tuple(out), kept


def _named(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def bytes_cases(rng: np.random.Generator) -> list[Case]:
    """n_layer, n_head, n_kv_head, head_dim, seq, batch and the bytes of an element."""

    def drawn(low: int, high: int) -> int:
        return int(rng.integers(low, high))

    def case(name, batch, element_bytes):
        n_kv_head, group = drawn(2, 12), drawn(2, 9)
        heads = n_kv_head * group, n_kv_head, 2 * drawn(20, 90)
        return Case(name, (drawn(7, 90), *heads, drawn(300, 40_000), batch, element_bytes))

    return [
        Case("Llama-2-70B, 4,096 tokens", (80, 64, 8, 128, 4096)),
        case("another model, one text", 1, 2),
        case("several texts", drawn(3, 30), 2),
        case("float32", 1, 4),
        case("one byte an element", drawn(2, 9), 1),
        Case("one head for all", (drawn(20, 90), 32, 1, 256, drawn(500, 5000), 1, 2)),
        Case("one token", (drawn(20, 90), 24, 24, 64, 1, 1, 2)),
    ]


def grouped_cases(rng: np.random.Generator) -> list[Case]:
    """q [batch, n_head, seq_q, head_dim], k and v [batch, n_kv_head, seq_k, width], and masks."""

    def case(
        name, heads, seq, *, mask=None, v_dim=4, dtype=torch.float32, grad=False, strided=False
    ):
        (n_head, n_kv_head), (seq_q, seq_k) = heads, seq
        draw = partial(qkv, rng, batch=2, seq_q=seq_q, seq_k=seq_k, dtype=dtype)
        q, _, _ = draw(n_head=n_head)
        _, k, v = draw(n_head=n_kv_head, v_dim=v_dim)
        if strided:
            q, k, v = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v))
        return Case(name, (q, k, v) if mask is None else (q, k, v, mask), grad=grad)

    own = torch.from_numpy(rng.random((2, 6, 5, 6)) < 0.5)
    own[..., 0] = True
    return [
        case("six heads share three", (6, 3), (7, 7)),
        case("six heads share two, causal", (6, 2), (4, 9), mask=causal_pairs(4, 9)),
        case("eight heads share four", (8, 4), (5, 3), dtype=torch.float64),
        case("one new token", (6, 3), (1, 8), v_dim=5),
        case("one key/value head for all", (5, 1), (3, 6), mask=causal_pairs(3, 6)),
        case("as many as query heads", (3, 3), (7, 7), mask=causal_pairs(7, 7)),
        case("a mask for each text and head", (6, 2), (5, 6), mask=own),
        case("as a split left them", (6, 3), (4, 4), strided=True),
        case("gradients", (4, 2), (3, 5), dtype=torch.float64, grad=True),
        case("refuse: three key/value heads for eight", (8, 3), (3, 3)),
        case("refuse: four key/value heads for six", (6, 4), (3, 3)),
    ]


def pooling_cases(rng: np.random.Generator) -> list[Case]:
    """W_K and W_V [d_model, n_head * head_dim], n_head and n_kv_head."""

    def case(name, d_model, n_head, head_dim, n_kv_head, dtype=torch.float32, grad=False):
        W = [weight(rng, d_model, n_head * head_dim, dtype) for _ in range(2)]
        return Case(name, (*W, n_head, n_kv_head), grad=grad)

    return [
        case("six heads become three", 12, 6, 4, 3),
        case("six heads become two", 10, 6, 3, 2),
        case("eight heads become one", 9, 8, 2, 1, torch.float64),
        case("twelve heads become four", 8, 12, 4, 4, torch.float64),
        case("as many as before", 7, 3, 5, 3),
        case("gradients", 6, 4, 2, 2, torch.float64, grad=True),
        case("refuse: eight heads become three", 6, 8, 2, 3),
        case("refuse: six heads become four", 12, 6, 2, 4),
    ]
