"""Rotary positions: a query and a key are turned by angles that grow with their places."""

import torch
from torch import Tensor


def rotate(x: Tensor, start: int | Tensor = 0, base: float = 10_000.0) -> Tensor:
    """Return x with each pair of its numbers turned by an angle that grows with the position.

    x is [..., seq, head_dim]. Its first token stands at position `start`, the others follow; a
    tensor of positions, broadcastable to [..., seq], may stand in its place. Numbers 2i and
    2i + 1 are turned by position / base^(2i / head_dim), so the product of a turned query and a
    turned key depends on the distance of the two and not on where they stand.
    Raises ValueError for an odd head_dim.
    Source: Su et al. 2021, arXiv 2104.09864, equations 15 and 34.
    """
    seq, head_dim = x.shape[-2:]
    if head_dim % 2:
        raise ValueError(f"head_dim={head_dim} is odd; numbers are turned in pairs")
    if not isinstance(start, Tensor):
        start = torch.arange(start, start + seq, device=x.device)
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float64, device=x.device) / head_dim
    angle = start.to(torch.float64).unsqueeze(-1) * base**-exponent  # [..., seq, head_dim / 2]
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
