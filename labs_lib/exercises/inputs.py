"""Inputs for cases: uniform numbers of numpy's PCG64, equal on every machine.

Heads, tokens and widths are chosen so that they never hide a bug: three heads, seven tokens,
distinct q, k and v of standard deviation 2.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def uniform(
    rng: np.random.Generator,
    *shape: int,
    std: float = 2.0,
    mean: float = 0.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """A tensor of the given shape, uniform with the given mean and standard deviation."""
    half_width = std * math.sqrt(3.0)
    values = rng.uniform(mean - half_width, mean + half_width, size=shape)
    return torch.from_numpy(np.asarray(values)).to(dtype)


def weight(
    rng: np.random.Generator, d_in: int, d_out: int, dtype: torch.dtype = torch.float32
) -> Tensor:
    """A weight matrix [d_in, d_out] of standard deviation 1/sqrt(d_in), used as `x @ W`."""
    return uniform(rng, d_in, d_out, std=d_in**-0.5, dtype=dtype)


def qkv(
    rng: np.random.Generator,
    *,
    batch: int = 2,
    n_head: int = 3,
    seq_q: int = 7,
    seq_k: int | None = None,
    head_dim: int = 4,
    v_dim: int | None = None,
    std: float = 2.0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct q [batch, n_head, seq_q, head_dim], k [..., seq_k, head_dim], v [..., seq_k, v_dim].

    seq_k is seq_q and v_dim is head_dim unless given.
    """
    seq_k = seq_q if seq_k is None else seq_k
    v_dim = head_dim if v_dim is None else v_dim
    q = uniform(rng, batch, n_head, seq_q, head_dim, std=std, dtype=dtype)
    k = uniform(rng, batch, n_head, seq_k, head_dim, std=std, dtype=dtype)
    v = uniform(rng, batch, n_head, seq_k, v_dim, std=std, dtype=dtype)
    return q, k, v
