"""What is told of an output by its digits: float64 that is no finer than float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .kit import Case

NARROWED = "no number here has more digits than float32 keeps: float64 was narrowed on the way"
ENOUGH = 8  # different numbers, so that zeros and a few round values tell nothing


def call_at_full_width(program: Callable[..., Any], case: Case) -> Any:
    """Run the program; told apart is a first result in float64 that was computed in float32.

    In which order its sums were added changes the last digits and not the mistake.
    """
    found = program(*case.args)
    wide = any(isinstance(arg, Tensor) and arg.dtype == torch.float64 for arg in case.args)
    first = found[0] if isinstance(found, Sequence) and len(found) else None
    return {"not as asked": NARROWED} if wide and is_narrow(first) else found


def is_narrow(found: Any) -> bool:
    """Whether a float64 tensor of many different numbers loses nothing when it becomes float32."""
    if not isinstance(found, Tensor) or found.dtype != torch.float64:
        return False
    plain = found.detach()
    if plain.unique().numel() < ENOUGH or not plain.isfinite().all():
        return False
    return torch.equal(plain.float().double(), plain)
