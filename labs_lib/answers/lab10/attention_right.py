"""attention_one_pass: odd but right programs."""

from __future__ import annotations

import math
from functools import reduce

import torch
from torch.nn import functional as F

from labs_lib.attention.online_softmax import attention_one_pass, finish, merge_softmax_states

from ..kit import Right
from .attention_parts import changed
from .parts import INF, LOG2_E, stand_in


def _split_keys(q, k, v, mask=None, block=16):
    """Each third of the keys on its own, merged afterwards: lse and 1 are a state's m and l."""
    states = []
    size = -(-k.shape[-2] // 3)
    for start in range(0, k.shape[-2], size):
        own = slice(start, start + size)
        seen = None if mask is None else mask[..., own]
        out, lse = attention_one_pass(q, k[..., own, :], v[..., own, :], seen, block)
        states.append((lse, torch.ones_like(lse), out))
    return finish(reduce(merge_softmax_states, reversed(states)))


def _by_lse(q, k, v, mask=None, block=16):
    """A softmax for each block, weighted by how the log-sum-exps compare."""
    lse = q.new_full(q.shape[:-1], -INF)
    out = q.new_zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, k.shape[-2], block):
        k_b, v_b = (t[..., start : start + block, :] for t in (k, v))
        scores = torch.einsum("...id,...jd->...ij", q, k_b)
        scores = scores / q.shape[-1] ** 0.5
        if mask is not None:
            scores = torch.where(mask[..., start : start + block], scores, -INF)
        own = scores.logsumexp(-1)
        both = torch.logaddexp(lse, own)
        weight = (scores - stand_in(both)[..., None]).exp()
        out = out * (lse - stand_in(both)).exp()[..., None] + weight @ v_b
        lse = both
    return out, lse


def _powers_of_two(q, k, v, mask=None, block=16, *, slack=6.0):
    """Scores in units of log 2 throughout; the maximum moves only when it grew by a lot."""
    q = q * (LOG2_E / math.sqrt(q.shape[-1]))
    m = q.new_full((*q.shape[:-1], 1), -INF)
    l, o = torch.zeros_like(m), q.new_zeros(*q.shape[:-1], v.shape[-1])
    for k_b, v_b, start in zip(
        k.split(block, -2), v.split(block, -2), range(0, k.shape[-2], block), strict=True
    ):
        s = q @ k_b.transpose(-1, -2)
        if mask is not None:
            s = s.masked_fill(mask[..., start : start + block].logical_not(), -INF)
        top = s.max(-1, keepdim=True).values
        used = torch.where(top > m + slack, top, m)
        safe = stand_in(used)
        p, factor = torch.exp2(s - safe), torch.exp2(m - safe)
        l, o, m = l * factor + p.sum(-1, keepdim=True), o * factor + p @ v_b, used
    out = torch.where(l > 0, o / torch.where(l > 0, l, 1.0), 0.0)
    return out, ((m + l.log2()) / LOG2_E)[..., 0]


def _sentinel(q, k, v, mask=None, block=16):
    lowest = torch.finfo(torch.float32).min / 2
    m = torch.full(q.shape[:-1], lowest, dtype=q.dtype)
    l, o = torch.zeros_like(m), 0.0
    for start in range(0, k.shape[-2], block):
        k_b, v_b = (t[..., start : start + block, :] for t in (k, v))
        s = q / math.sqrt(q.shape[-1]) @ k_b.mT
        p_mask = 1.0 if mask is None else mask[..., start : start + block].to(q.dtype)
        s = s if mask is None else s.masked_fill(p_mask == 0, lowest)
        m_new = torch.maximum(m, s.amax(-1))
        p = torch.exp(s - m_new.unsqueeze(-1)) * p_mask
        factor = torch.exp(m - m_new)
        l, o = (
            l * factor + p.sum(-1),
            o * factor.unsqueeze(-1) + p @ v_b,
        )
        m = m_new
    return o / l.clamp(min=1e-30).unsqueeze(-1), torch.where(l > 0, m + l.log(), -INF)


def _key_by_key(q, k, v, mask=None, block=16):
    return attention_one_pass(q, k, v, mask, 1)


def _backwards(q, k, v, mask=None, block=16):
    flipped = None if mask is None else mask.flip(-1)
    return attention_one_pass(q, k.flip(-2), v.flip(-2), flipped, block + 1)


def _padded_and_hidden(q, k, v, mask=None, block=16):
    short = -k.shape[-2] % block
    if mask is None:
        mask = torch.ones(1, k.shape[-2], dtype=torch.bool)
    mask = F.pad(mask, (0, short), value=False)
    k, v = (F.pad(t, (0, 0, 0, short)) if short else t for t in (k, v))
    return attention_one_pass(q, k, v, mask, block)


def _wide(q, k, v, mask=None, block=16):
    out, lse = attention_one_pass(q.double(), k.double(), v.double(), mask, block)
    return [out.to(q.dtype), lse.to(q.dtype)]


def _head_by_head(q, k, v, mask=None, block=16):
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
    results = []
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            seen = None if mask is None else mask[b, h]
            results.append(attention_one_pass(q[b, h], k[b, h], v[b, h], seen, block))
    out, lse = (torch.stack(parts) for parts in zip(*results, strict=True))
    return out.view(*q.shape[:-1], -1), lse.view(q.shape[:-1])


class _Object:
    def run(self, q, k, v, mask=None, block=16, scale=None, dropout=0.0):
        return changed()(q, k, v, mask, block)


RIGHT = (
    Right("keys_split_and_merged", _split_keys),
    Right("block_softmax_and_lse", _by_lse),
    Right("powers_of_two_and_lazy_rescaling", _powers_of_two),
    Right("sentinel_that_is_handled", _sentinel),
    Right("key_by_key", _key_by_key),
    Right("last_key_first", _backwards),
    Right("padded_and_hidden", _padded_and_hidden),
    Right("float64_inside", _wide),
    Right("head_by_head", _head_by_head),
    Right("a_method", _Object().run),
    Right("nan_made_zero_at_the_end", changed(finish=lambda m, l, o: (
        (o / l[..., None]).nan_to_num(0.0), m + l.log()))),
    Right("added_next_to_nothing", changed(finish=lambda m, l, o: (
        o / (l + 1e-8)[..., None], m + l.log()))),
)  # fmt: skip
