"""A flash forward pass in torch with one part changed: what most wrong programs are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..lab10.parts import INF, finish, stand_in


def widened(t):
    """float32 for 16 bits."""
    return t.float() if t.element_size() == 2 else t


def bottom_right(i, j, seq_q, seq_k):
    """Which pairs a causal mask leaves: i [rows, 1], j [columns]."""
    return j <= i + seq_k - seq_q


def all_keys(start, rows, seq_q, seq_k):
    """Where the inner loop ends."""
    return seq_k


def until_the_last_seen(start, rows, seq_q, seq_k):
    """Where the inner loop ends under a causal mask."""
    return min(seq_k, start + rows + seq_k - seq_q)


@dataclass(frozen=True)
class Flash:
    """The right program. A changed part takes the place of one line of it."""

    scale: Callable[..., Any] = lambda d: 1 / math.sqrt(d)
    start: float = -INF
    wide: Callable[..., Any] = widened
    visible: Callable[..., Any] | None = None
    numbers: Callable[..., Any] = lambda i, j: (i, j)  # of a tile's first query and key
    end: Callable[..., Any] = all_keys
    hidden: float = -INF
    rows: Callable[..., Any] = lambda n, block: range(0, n, block)
    columns: Callable[..., Any] = lambda n, block: range(0, n, block)
    block: Callable[..., Any] = lambda k, v: (k, v)
    top: Callable[..., Any] = lambda m, scores: torch.maximum(m, scores.amax(-1))
    looked_at: Callable[..., Any] = lambda scores, unhidden: scores  # by the maximum
    below: Callable[..., Any] = stand_in
    factor_l: Callable[..., Any] = lambda m, m_new: (m - stand_in(m_new)).exp()
    factor_o: Callable[..., Any] | None = None
    total: Callable[..., Any] = lambda p: p.sum(-1)
    after: Callable[..., Any] = lambda l, o: (l, o)
    finish: Callable[..., Any] = finish

    def __call__(self, q, k, v, block_q=16, block_k=16):
        """Run it."""
        out = q.new_zeros(*q.shape[:3], v.shape[3])
        lse = torch.zeros(q.shape[:3], dtype=widened(q[:0]).dtype)
        for i in self.rows(q.shape[2], block_q):
            part = slice(i, i + block_q)
            rows, sums = self.tile_row(q[:, :, part], k, v, i, q.shape[2], block_k)
            out = torch.cat([out[:, :, :i], rows.to(q.dtype), out[:, :, i + rows.shape[2] :]], 2)
            lse = torch.cat([lse[:, :, :i], sums.to(lse.dtype), lse[:, :, i + rows.shape[2] :]], 2)
        return out, lse

    def tile_row(self, q, k, v, i, seq_q, block_k):
        """Output and log-sum-exp of one tile of queries, which begins at query i."""
        q, seq_k = self.wide(q), k.shape[2]
        m = q.new_full(q.shape[:3], self.start)
        l, o = q.new_zeros(q.shape[:3]), q.new_zeros(*q.shape[:3], v.shape[3])
        for j in self.columns(self.end(i, q.shape[2], seq_q, seq_k), block_k):
            part = slice(j, j + block_k)
            k_tile, v_tile = self.block(self.wide(k[:, :, part]), self.wide(v[:, :, part]))
            scores = unhidden = q @ k_tile.mT * self.scale(q.shape[3])
            if self.visible is not None:
                first_q, first_k = self.numbers(i, j)
                seen = self.visible(
                    first_q + torch.arange(q.shape[2])[:, None],
                    first_k + torch.arange(scores.shape[3]),
                    seq_q,
                    seq_k,
                )
                scores = scores.masked_fill(~seen, self.hidden)
            m_new = self.top(m, self.looked_at(scores, unhidden))
            p = (scores - self.below(m_new)[..., None]).exp()
            f_l = self.factor_l(m, m_new)
            f_o = self.factor_o(m, m_new) if self.factor_o else f_l
            l, o = self.after(l * f_l + self.total(p), o * f_o[..., None] + p @ v_tile)
            m = m_new
        return self.finish(m, l, o)


def changed(**parts: Any) -> Flash:
    """The right program, without a mask, with some of its parts changed."""
    return replace(Flash(), **parts)


def causal(**parts: Any) -> Flash:
    """The right causal program with some of its parts changed."""
    return replace(Flash(visible=bottom_right, end=until_the_last_seen), **parts)
