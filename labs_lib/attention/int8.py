"""Numbers as 8-bit integers and a scale."""

from __future__ import annotations

import torch
from torch import Tensor

LEVELS = 127


def quantise_int8(x: Tensor, axis: int | None = None) -> tuple[Tensor, Tensor]:
    """Return x [tokens, channels] as int8 from -127 to 127, and the scale: x is about q * scale.

    One scale for all (axis None, a scalar), for each token (0, [tokens, 1]) or for each channel
    (1, [1, channels]): the largest size that it covers becomes 127. Zeros alone have scale 1.
    """
    size = x.abs()
    largest = size.max() if axis is None else size.amax(dim=1 - axis, keepdim=True)
    scale = torch.where(largest > 0, largest / LEVELS, torch.ones_like(largest))
    return (x / scale).round().to(torch.int8), scale
