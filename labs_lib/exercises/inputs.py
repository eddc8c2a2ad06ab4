"""Inputs for cases and rules: uniform numbers of numpy's PCG64, equal on every machine.

Heads, tokens and widths are chosen so that they never hide a bug: three heads, seven tokens,
distinct q, k and v of standard deviation 2.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import torch
from torch import Tensor

_RULE_SEED: ContextVar[int] = ContextVar("seed of rules", default=0)


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


def causal_pairs(seq_q: int, seq_k: int) -> Tensor:
    """Which keys a query may attend to, the last query being the newest token: [seq_q, seq_k]."""
    return torch.ones(seq_q, seq_k, dtype=torch.bool).tril(seq_k - seq_q)


def own_masks(rng: np.random.Generator, seq: int) -> Tensor:
    """A mask for each of two sequences, [2, 1, seq, seq]; every query may attend to itself."""
    free = torch.from_numpy(rng.random((2, 1, seq, seq)) < 0.5)
    return free | torch.eye(seq, dtype=torch.bool)


@contextmanager
def rules_drawn_from(seed: int) -> Generator[None]:
    """Inside of it rules draw their inputs, and their launches, from this seed."""
    token = _RULE_SEED.set(seed)
    try:
        yield
    finally:
        _RULE_SEED.reset(token)


def rule_seed() -> int:
    """The seed that rules draw from; 0 outside of `rules_drawn_from`."""
    return _RULE_SEED.get()


def rule_generator(number: int) -> np.random.Generator:
    """What draws a rule's inputs: new ones in each run, since what is returned for them counts."""
    return np.random.Generator(np.random.PCG64([rule_seed(), number]))
