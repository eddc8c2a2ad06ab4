"""Lab 05: the cases of its exercises, and how a layer meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .inputs import causal_pairs, own_masks, uniform, weight
from .kit import Case
from .refusals import refusal

WEIGHTS = ("W_Q", "W_K", "W_V", "W_O")
MOST_AT_FIRST = 0.3
"""The largest root mean square of a new matrix of 512 rows; 1/√512 is 0.04, and usual."""


def concat_cases(rng: np.random.Generator) -> list[Case]:
    """Heads [batch, n_head, seq, head_dim], new ones and ones that lie as a split left them."""
    split = uniform(rng, 2, 7, 3, 4).transpose(1, 2)
    return [
        Case("three heads, seven tokens", (uniform(rng, 2, 3, 7, 4),)),
        Case("as a split left them", (split,)),
        Case("float64", (uniform(rng, 3, 2, 5, 6, dtype=torch.float64),)),
        Case("as many tokens as heads", (uniform(rng, 2, 4, 4, 5),)),
        Case("one token", (uniform(rng, 2, 5, 1, 3),)),
        Case("one head", (uniform(rng, 2, 1, 6, 3),)),
        Case("gradients", (uniform(rng, 2, 3, 5, 2, dtype=torch.float64),), grad=True),
    ]


def w_o_cases(rng: np.random.Generator) -> list[Case]:
    """concat [batch, seq, width] and W_O [width, d_model]; the first W_O is square."""

    def case(name, batch, seq, width, d_model, dtype=torch.float32, grad=False):
        concat = uniform(rng, batch, seq, width, dtype=dtype)
        return Case(name, (concat, weight(rng, width, d_model, dtype)), grad=grad)

    return [
        case("seven tokens, twelve numbers in and out", 2, 7, 12, 12),
        case("heads wider than the model", 2, 5, 15, 8),
        case("heads narrower than the model", 3, 4, 6, 10, torch.float64),
        case("as many tokens as numbers", 1, 6, 6, 6),
        case("gradients", 2, 3, 6, 4, torch.float64, grad=True),
    ]


def contribution_cases(rng: np.random.Generator) -> list[Case]:
    """Heads [batch, n_head, seq, head_dim] and W_O [n_head * head_dim, d_model]."""

    def case(name, batch, n_head, seq, head_dim, d_model, dtype=torch.float32, grad=False):
        heads = uniform(rng, batch, n_head, seq, head_dim, dtype=dtype)
        return Case(name, (heads, weight(rng, n_head * head_dim, d_model, dtype)), grad=grad)

    return [
        case("three heads, seven tokens", 2, 3, 7, 4, 12),
        case("a model wider than its heads", 2, 4, 5, 2, 11),
        case("a model narrower than its heads", 3, 2, 4, 6, 7, torch.float64),
        case("as many tokens as heads", 2, 4, 4, 4, 16),
        case("one head", 2, 1, 3, 5, 5),
        case("gradients", 2, 3, 4, 2, 6, torch.float64, grad=True),
    ]


def layer_cases(rng: np.random.Generator) -> list[Case]:
    """Sizes that are made, filled with weights and run; then sizes that must be refused."""

    def case(name, sizes, seq=7, context=0, mask=None, dtype=torch.float32, grad=False):
        inputs: dict[str, Any] = {"x": uniform(rng, 2, seq, sizes[0], std=1.0, dtype=dtype)}
        if context:
            inputs["context"] = uniform(rng, 2, context, sizes[0], std=1.0, dtype=dtype)
        if mask is not None:
            inputs["mask"] = mask
        return Case(name, sizes, inputs | _layer_weights(rng, *sizes, dtype=dtype), grad)

    refused = [
        ("three key/value heads for eight", (24, 8, 3)),
        ("no key/value head", (24, 8, 0)),
        ("sixteen key/value heads for eight", (32, 8, 16)),
        ("a negative number of key/value heads", (24, 8, -2)),
        ("a width that eight heads don't divide", (28, 8)),
    ]
    return [
        case("three heads, seven tokens", (12, 3)),
        case("six heads share three", (24, 6, 3)),
        case("a causal mask", (12, 3), mask=causal_pairs(7, 7)),
        case("one key/value head for all", (20, 4, 1), 5),
        case("another sequence of the same length", (12, 3), context=7),
        case("four tokens look at nine", (24, 6, 2), 4, 9, dtype=torch.float64),
        case("four tokens look at nine, causal", (12, 3), 4, 9, causal_pairs(4, 9)),
        case("a mask for each sequence", (20, 4, 2), 6, 0, own_masks(rng, 6), torch.float64),
        case("gradients", (12, 6, 3), 4, 5, dtype=torch.float64, grad=True),
        Case("what a new layer holds", (512, 8, 2)),
        *(Case(f"refuse: {name}", sizes) for name, sizes in refused),
    ]


def call_layer(make: Callable[..., Any], case: Case) -> Any:
    """Make a layer, put the case's weights into it and run it; or tell what it holds, or refuses.

    The layer keeps W_Q, W_K, W_V, W_O as tensors [d_in, d_out] or as nn.Linear; a class that
    keeps them otherwise has a method `load(W_Q, W_K, W_V, W_O)`.
    """
    if case.name.startswith("refuse"):
        return refusal(lambda: make(*case.args))[0]
    layer = make(*case.args)
    if not case.kwargs:
        return _inventory(layer)
    x = case.kwargs["x"]
    if isinstance(layer, nn.Module):
        layer.to(x.dtype)
    try:
        put_weights(layer, {name: case.kwargs[name].detach().clone() for name in WEIGHTS})
    except (AttributeError, ValueError) as error:
        if callable(getattr(layer, "load", None)):
            raise  # the student's own method
        return {"not as asked": str(error)}
    given = {name: case.kwargs[name] for name in ("context", "mask") if name in case.kwargs}
    return layer(x, **given)


def put_weights(layer: Any, weights: dict[str, Tensor]) -> None:
    """Put the weights, each [d_in, d_out], into a layer by its `load` or by its attributes.

    Raises AttributeError for a weight that is missing, ValueError for one of another shape.
    """
    if callable(getattr(layer, "load", None)):
        layer.load(*(weights[name] for name in WEIGHTS))
        return
    for name, wanted in weights.items():
        kept = getattr(layer, name, None)
        if isinstance(kept, nn.Linear):
            kept.weight.data = _fitting(name, wanted.mT.contiguous(), kept.weight)
            if kept.bias is not None:
                kept.bias.data = torch.zeros_like(kept.bias)
        elif isinstance(kept, Tensor):
            kept.data = _fitting(name, wanted, kept)
        else:
            raise AttributeError(
                f"the layer keeps no weight called {name}; keep W_Q, W_K, W_V and W_O as "
                "attributes, or write a method load(W_Q, W_K, W_V, W_O)"
            )


def without_cases(rng: np.random.Generator) -> list[Case]:
    """x [batch, seq, d_model], three matrices and n_head, perhaps a mask; then other widths."""

    def case(name, seq, d_model, n_head, width=0, mask=(), dtype=torch.float32, grad=False):
        x = uniform(rng, 2, seq, d_model, dtype=dtype)
        W = [weight(rng, d_model, width or d_model, dtype) for _ in range(3)]
        return Case(name, (x, *W, n_head, *mask), grad=grad)

    return [
        case("three heads, seven tokens", 7, 12, 3),
        case("a causal mask", 7, 12, 3, mask=(causal_pairs(7, 7),)),
        case("four heads in float64", 5, 20, 4, dtype=torch.float64),
        case("a mask for each sequence", 6, 8, 2, mask=(own_masks(rng, 6),)),
        case("gradients", 4, 6, 3, mask=(causal_pairs(4, 4),), dtype=torch.float64, grad=True),
        case("refuse: heads wider than the model", 4, 9, 3, 12),
        case("refuse: heads narrower than the model", 4, 15, 3, 12),
        case("refuse: another width that is too narrow", 4, 16, 3, 12),
    ]


def call_without(program: Callable[..., Any], case: Case) -> Any:
    """Run the layer; where it must refuse, tell how it did or what it gave instead."""
    if not case.name.startswith("refuse"):
        return program(*case.args)
    refused, made = refusal(lambda: program(*case.args))
    if refused["refused with"] != "no error":
        return refused | {"made instead": "nothing"}
    kind = "None" if made is None else f"a {type(made).__name__}"
    shown = f"a tensor of shape {list(made.shape)}" if isinstance(made, Tensor) else kind
    return refused | {"made instead": shown}


def _inventory(layer: Any) -> dict[str, Any]:
    if not isinstance(layer, nn.Module):
        return {"parameters": f"none: the layer is a {type(layer).__name__}, no nn.Module"}
    kept = list(layer.parameters())
    return {"parameters": sum(p.numel() for p in kept), "its weights at first": _start(kept)}


def _start(kept: list[nn.Parameter]) -> str:
    """What the matrices of a layer of width 512 hold before any training, in words."""
    matrices = [p.detach().double() for p in kept if p.ndim > 1]
    if not all(bool(m.isfinite().all()) for m in matrices):
        return "not finite"  # as memory may be that nobody set
    if any(float(m.square().mean().sqrt()) > MOST_AT_FIRST for m in matrices):
        return "far too large"
    filled = [m for m in matrices if bool((m != 0).any())]
    if not filled:
        return "zero"  # in one matrix alone, such as W_O, zeros can still learn
    equal = any(bool((m == m.flatten()[0]).all()) for m in filled)
    return "all equal" if equal else "small and random"


def _fitting(name: str, wanted: Tensor, kept: Tensor) -> Tensor:
    if kept.shape != wanted.shape:
        raise ValueError(f"{name} is {list(kept.shape)}; wanted is {list(wanted.shape)}")
    return wanted


def _layer_weights(rng, d_model, n_head, n_kv_head=None, *, dtype=torch.float32):
    """Weights that give scores of standard deviation 2 and more, so that softmax rows differ."""
    kv_width = d_model // n_head * (n_kv_head or n_head)
    shapes = ((d_model, d_model), (d_model, kv_width), (d_model, kv_width), (d_model, d_model))
    return {
        name: uniform(rng, *shape, std=1.5 * d_model**-0.5, dtype=dtype)
        for name, shape in zip(WEIGHTS, shapes, strict=True)
    }
