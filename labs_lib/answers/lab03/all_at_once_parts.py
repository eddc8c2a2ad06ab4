"""The parts of fused_multi_head, from which right and wrong programs are put together."""

from __future__ import annotations

import math


def split(x, n_head):
    return x.unflatten(-1, (n_head, -1)).transpose(1, 2)  # [batch, n_head, seq, head_dim]


def merge(heads):
    return heads.transpose(1, 2).flatten(2)  # [batch, seq, n_head * head_dim]


def scale(x, q, n_head):
    return math.sqrt(q.shape[-1])


def masked(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def attend(q, k, v, mask, divisor, *, masked=masked, dim=-1):
    return masked(q @ k.mT / divisor, mask).softmax(dim=dim) @ v


def program(split=split, merge=merge, scale=scale, attend=attend, weights=lambda *W: W):
    """The right program, with one of its parts replaced."""

    def program(x, W_Q, W_K, W_V, n_head, mask=None):
        q, k, v = (split(x @ W, n_head) for W in weights(W_Q, W_K, W_V))
        return merge(attend(q, k, v, mask, scale(x, q, n_head)))

    return program


def with_mask(masked):
    return program(attend=lambda *args: attend(*args, masked=masked))


def softmax_over(dim):
    return program(attend=lambda *args: attend(*args, dim=dim))
