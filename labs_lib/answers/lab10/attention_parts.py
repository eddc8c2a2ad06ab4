"""attention_one_pass with one part changed: what most of its wrong programs are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from .parts import INF, finish, stand_in


def hide(scores, visible):
    """The scores with -inf where a key is hidden."""
    return scores.masked_fill(~visible, -INF)


@dataclass(frozen=True)
class OnePass:
    """The right program. A changed part takes the place of one line of it."""

    scale: Callable[..., Any] = lambda head_dim: 1 / math.sqrt(head_dim)
    start: float = -INF
    starts: Callable[..., Any] = lambda n_key, block: range(0, n_key, block)
    part: Callable[..., Any] = lambda mask, start, block: mask[..., start : start + block]
    hide: Callable[..., Any] = hide
    block: Callable[..., Any] = lambda k, v: (k, v)
    top: Callable[..., Any] = lambda m, scores, raw: torch.maximum(m, scores.amax(-1))
    looked_at: Callable[..., Any] = lambda scores, unhidden: scores  # by the maximum
    power: Callable[..., Any] = torch.exp
    below: Callable[..., Any] = stand_in
    factor_l: Callable[..., Any] = lambda m, m_new, power: power(m - stand_in(m_new))
    factor_o: Callable[..., Any] | None = None
    total: Callable[..., Any] = lambda p: p.sum(-1)
    after: Callable[..., Any] = lambda l, o: (l, o)
    finish: Callable[..., Any] = finish
    fits: bool = True  # whether the mask's part is cut to the width of the scores

    def __call__(self, q, k, v, mask=None, block=16):
        """Run it."""
        m = q.new_full(q.shape[:-1], self.start)
        l, o = q.new_zeros(q.shape[:-1]), q.new_zeros(*q.shape[:-1], v.shape[-1])
        for start in self.starts(k.shape[-2], block):
            k_b, v_b = self.block(*(t[..., start : start + block, :] for t in (k, v)))
            raw = q @ k_b.mT
            scores = unhidden = raw * self.scale(q.shape[-1])
            if mask is not None:
                visible = self.part(mask, start, block)
                visible = visible[..., : scores.shape[-1]] if self.fits else visible
                scores = self.hide(scores, visible)
            m_new = self.top(m, self.looked_at(scores, unhidden), raw)
            p = self.power(scores - self.below(m_new)[..., None])
            f_l = self.factor_l(m, m_new, self.power)
            f_o = self.factor_o(m, m_new, self.power) if self.factor_o else f_l
            l = l * f_l + self.total(p)
            o = o * f_o[..., None] + p @ v_b
            l, o = self.after(l, o)
            m = m_new
        return self.finish(m, l, o)


def changed(**parts: Any) -> OnePass:
    """The right program with some of its parts changed."""
    return replace(OnePass(), **parts)
