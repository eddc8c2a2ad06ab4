"""Inputs that wrong online softmaxes don't survive, shared by the tests of flash kernels."""

from __future__ import annotations

from math import inf

import numpy as np
import torch


def numbers(*shape, seed=0):
    made = np.random.Generator(np.random.PCG64(seed)).random(shape) * 4 - 2
    return torch.from_numpy(made).float()


def killer(shape):
    """Scores as rows [n] plus columns [n]: multiples of 1/4, so that float32 holds them exactly."""
    n = {"minus 200": 64, "minus 60000": 65, "minus 8": 17}.get(shape, 97)
    step = torch.arange(n) / (n - 1)
    columns = {
        "rising": -10 + 20 * step,
        "falling": 10 - 20 * step,
        "minus 200": -200 + step,
        "minus 60000": -60000 + step,
        "jump": torch.where(step < 0.3, 100.0, -100.0),
        "90 to 110": 90 + 20 * step,
        "300 to 310": 300 + 10 * step,
        "rows alternate": step,
        "minus 8": torch.full((n,), -8.0),
        "100 to 120": 100 + 20 * step,
        "left padding": torch.where(torch.arange(n) < 20, -inf, -20000 + step),
        "first tile masked": torch.where(torch.arange(n) < 32, -inf, -150 + step),
        "a row masked": step,
    }[shape]
    rows, at = torch.zeros(n), torch.arange(n)
    if shape == "rows alternate":
        rows = torch.where(at % 2 == 0, 150.0, -150.0)
    if shape == "a row masked":
        rows[5] = -inf
    return rows, (columns * 4).round() / 4


KILLERS = ["rising", "falling", "minus 200", "minus 60000", "jump", "90 to 110", "300 to 310"]
KILLERS += ["rows alternate", "minus 8", "100 to 120", "left padding", "first tile masked"]
KILLERS += ["a row masked"]


def from_logits(shape, head_dim=16):
    """q, k, v [1, 1, n, head_dim] whose scores q k^T / 4 are the killer's, to the bit."""
    rows, columns = killer(shape)
    n = len(rows)
    q, k = torch.zeros(2, n, head_dim)
    q[:, 0], q[:, 1] = 4.0, rows * 4
    k[:, 0], k[:, 1] = columns, 1.0
    v = numbers(n, head_dim) + torch.arange(n)[:, None] / 32
    return q[None, None], k[None, None], v[None, None]
