"""The two small problems that kernels without a GPU are timed on, and what they must give."""

from __future__ import annotations

import numpy as np

N, HEAD_DIM, TILE = 64, 64, 16
QUERIES = 32  # of a block of the flash kernel


def product() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, b [N, N] in float32, and a @ b in float64."""
    a, b = _uniform(0, 2, N, N)
    return a, b, a.astype(np.float64) @ b


def flash() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q, k, v [N, HEAD_DIM] in float32, and their attention in float64."""
    q, k, v = _uniform(1, 3, N, HEAD_DIM)
    scores = q.astype(np.float64) @ k.T / HEAD_DIM**0.5
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return q, k, v, weights / weights.sum(1, keepdims=True) @ v


def _uniform(seed: int, count: int, *shape: int) -> np.ndarray:
    made = np.random.Generator(np.random.PCG64(seed)).random((count, *shape)) * 4 - 2
    return made.astype(np.float32)
