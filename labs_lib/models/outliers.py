"""Outliers of a model's activations, and what 8-bit whole numbers make of them.

Source: Sun et al. 2024, arXiv 2402.17762; Xiao et al. 2022, arXiv 2211.10438.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labs_lib.models.hooks import Hooks
from labs_lib.models.model import Model

LEVELS = 127


def residual_of(model: Model, text: str) -> Tensor:
    """Return what enters each layer, and leaves the last: [n_layer + 1, seq, d_model]."""
    hooks = Hooks(keep="residual")
    with torch.no_grad():
        model.look(model.row(text), hooks)
    return hooks.stacked("residual")[:, 0]


def outliers(model: Model, text: str) -> dict[str, list[float]]:
    """Return by layer: the largest number of the first token and of the others, and int8's errors.

    An error is that of the other tokens, root mean square, as a share of their size; one scale for
    the whole tensor, one for each token, or one for each channel.
    """
    x = residual_of(model, text)
    found: dict[str, list[float]] = {
        "first token": x[:, 0].abs().amax(-1).tolist(),
        "other tokens": x[:, 1:].abs().amax((-2, -1)).tolist(),
        "typical": x[:, 1:].square().mean((-2, -1)).sqrt().tolist(),
    }
    for name, dims in {"per tensor": (-2, -1), "per token": (-1,), "per channel": (-2,)}.items():
        back = int8_and_back(x, dims)[:, 1:]
        wrong = (back - x[:, 1:]).square().mean((-2, -1)).sqrt()
        found[name] = (wrong / x[:, 1:].square().mean((-2, -1)).sqrt()).tolist()
    return found


def int8_and_back(x: Tensor, shared: tuple[int, ...]) -> Tensor:
    """Return x, of any shape, through whole numbers from -127 to 127.

    Numbers along the axes `shared` have one scale.
    """
    step = x.abs().amax(shared, keepdim=True).clamp_min(1e-12) / LEVELS
    return (x / step).round() * step
