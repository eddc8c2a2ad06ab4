"""How numbers are written into a record: as plain data for JSON, with four decimals."""

from __future__ import annotations

from typing import Any

import torch

DECIMALS = 4


def rounded(value: Any) -> Any:
    """Return tensors, tuples and numbers, also in dictionaries, as JSON keeps them, rounded."""
    if isinstance(value, torch.Tensor):
        return rounded(value.tolist())
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return round(value, DECIMALS) if isinstance(value, float) else value
