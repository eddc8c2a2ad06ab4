"""The decoding step of lab 08: its parts, and right programs."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from ..kit import Right


class Step:
    """The right step in parts, so that a variant replaces one of them."""

    def __call__(self, x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
        past = self.past(cache)
        q, k, v = (self.split(x @ W, n_head) for W in (W_Q, W_K, W_V))
        q, k, v = self.turn(q, k, v, rotate, past)
        keys, values = self.joined(cache, k, v)
        out = self.mix(self.attend(q, keys, values, k.shape[2]), W_O)
        return out, self.kept(keys, values)

    def past(self, cache):
        return 0 if cache is None else cache[0].shape[2]

    def split(self, x, n_head):
        return x.unflatten(-1, (n_head, -1)).transpose(1, 2)

    def turn(self, q, k, v, rotate, past):
        return rotate(q, past), rotate(k, past), v

    def joined(self, cache, k, v):
        if cache is None:
            return k, v
        return torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)

    def attend(self, q, k, v, new):
        scores = q @ k.mT / self.divisor(q)
        return self.weigh(scores.masked_fill(~self.mask(new, k.shape[2]), -math.inf)) @ v

    def divisor(self, q):
        return math.sqrt(q.shape[-1])

    def weigh(self, scores):
        return scores.softmax(dim=-1)

    def mask(self, new, tokens):
        return torch.ones(new, tokens, dtype=torch.bool).tril(tokens - new)

    def mix(self, heads, W_O):
        return heads.transpose(1, 2).flatten(2) @ W_O

    def kept(self, keys, values):
        return keys, values


def variant(**parts):
    """The right step with some of its parts replaced."""
    return type("Variant", (Step,), parts)()


def _token_by_token(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
    """Every token in a step of its own, every head in a loop; no mask is needed."""
    head_dim, outs = W_Q.shape[1] // n_head, []
    keys, values = cache if cache is not None else (None, None)
    for i in range(x.shape[1]):
        token = x[:, i : i + 1]
        place = 0 if keys is None else keys.shape[2]
        answers, new_k, new_v = [], [], []
        for h in range(n_head):
            own = slice(h * head_dim, (h + 1) * head_dim)
            q, k, v = rotate(token @ W_Q[:, own], place), token @ W_K[:, own], token @ W_V[:, own]
            k = rotate(k, place)
            all_k = k if keys is None else torch.cat([keys[:, h], k], dim=1)
            all_v = v if values is None else torch.cat([values[:, h], v], dim=1)
            weights = torch.softmax(q @ all_k.transpose(1, 2) / head_dim**0.5, dim=2)
            answers.append(weights @ all_v)
            new_k.append(all_k)
            new_v.append(all_v)
        keys, values = torch.stack(new_k, dim=1), torch.stack(new_v, dim=1)
        outs.append(torch.cat(answers, dim=2) @ W_O)
    return torch.cat(outs, dim=1), (keys, values)


def _einsum(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None, *, fill=-1e9):
    """Einsum, a large negative fill, the pair as a list, queries scaled beforehand."""
    q, k, v = (
        torch.einsum("btd,dhe->bhte", x, W.view(W.shape[0], n_head, -1)) for W in (W_Q, W_K, W_V)
    )
    past = cache[0].size(2) if cache else 0
    q, k = rotate(q, past) * q.size(3) ** -0.5, rotate(k, past)
    if cache:
        k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
    place = torch.arange(past, past + x.size(1))[:, None]
    scores = torch.einsum("bhie,bhje->bhij", q, k)
    scores = torch.where(torch.arange(k.size(2)) <= place, scores, fill)
    heads = torch.einsum("bhij,bhje->bihe", scores.softmax(-1), v)
    return heads.reshape(*x.shape[:2], -1) @ W_O, [k, v]


def _torchs_attention(self, q, k, v, new):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask(new, k.shape[2]))


def _float64_inside(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
    wide = [t.double() for t in (x, W_Q, W_K, W_V, W_O)]
    pair = None if cache is None else tuple(t.double() for t in cache)
    out, kept = Step()(*wide, n_head, rotate, pair)
    return out.to(x.dtype), tuple(t.to(x.dtype) for t in kept)


def _written_into_new_room(self, cache, k, v):
    """Room for all tokens, filled from both sides; the old pair stays as it is."""
    if cache is None:
        return k.clone(), v.clone()
    past, new = cache[0].shape[2], k.shape[2]
    rooms = [k.new_empty(*k.shape[:2], past + new, k.shape[3]) for _ in range(2)]
    for room, old, fresh in zip(rooms, cache, (k, v), strict=True):
        room[:, :, :past] = old
        room[:, :, past:] = fresh
    return tuple(rooms)


RIGHT = (
    Right("parts", Step()),
    Right("a_method", Step().__call__),
    Right("token_by_token", _token_by_token),
    Right("einsum_and_a_finite_fill", _einsum),
    Right("torchs_attention", variant(attend=_torchs_attention)),
    Right("float64_inside", _float64_inside),
    Right("written_into_new_room", variant(joined=_written_into_new_room)),
    Right("a_lambda", lambda *given: Step()(*given)),
)
