"""Rows of scores that have broken softmax programs, by what they look like."""

import math

import torch

INF = math.inf


def hard_rows(n=64, dtype=torch.float64):
    """Name -> a row of n scores; each breaks some way to write an online softmax."""
    step = torch.arange(n, dtype=dtype) / max(n - 1, 1)
    first = torch.arange(n) < min(20, n - 1)
    return {
        "rising": -10 + 20 * step,
        "falling": 10 - 20 * step,
        "90 to 110": 90 + 20 * step,
        "300 to 310": 300 + 10 * step,
        "all -200": torch.full_like(step, -200.0) + step,
        "all -6e4": torch.full_like(step, -6e4) + step,
        "all 6e4": torch.full_like(step, 6e4) + step,
        "-2e4 behind padding": (-2e4 + step).masked_fill(first, -INF),
        "-150 behind padding": (-150 + step).masked_fill(first, -INF),
        "100, then -100": torch.where(step < 0.5, 100 + step, -100 - step),
        "-100, then 100": torch.where(step < 0.5, -100 - step, 100 + step),
        "one key only": torch.full_like(step, -INF).index_fill(0, torch.tensor(n // 2), -7.0),
        "no key at all": torch.full_like(step, -INF),
    }


def exact(row):
    """(softmax, log-sum-exp) of one row in Python's own floats, by the definition."""
    seen = [s for s in row.tolist() if s > -INF]
    if not seen:
        return [0.0] * len(row), -INF
    top = max(seen)
    total = math.fsum(math.exp(s - top) for s in seen)
    weights = [math.exp(s - top) / total if s > -INF else 0.0 for s in row.tolist()]
    return weights, top + math.log(total)
