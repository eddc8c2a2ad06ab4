"""Attention on latents in lab 08: reference, wrong programs and right programs."""

from __future__ import annotations

import math

import torch

from labs_lib.attention.latent import mla_absorb
from labs_lib.exercises.lab08 import UNPACKS

from ..kit import Answer, Right, Wrong


class Absorbed:
    """The right program in parts, so that a variant replaces one of them."""

    def __call__(self, q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
        n_head = q.shape[1]
        W_UK, W_UV = self.cut(W_UK, n_head), self.cut(W_UV, n_head)  # [n_head, rank, width]
        scores = self.own(q, latent, W_UK) + self.rotary(q_rotary, rotary_key)
        scores = self.hidden(scores / self.divisor(q, q_rotary, latent), mask)
        return self.answers(self.weigh(scores, mask), latent, W_UV)

    def cut(self, W, n_head):
        return W.unflatten(1, (n_head, -1)).transpose(0, 1)

    def own(self, q, latent, W_UK):
        return (q @ W_UK.mT) @ latent.unsqueeze(1).mT

    def rotary(self, q_rotary, rotary_key):
        return q_rotary @ rotary_key.unsqueeze(1).mT

    def divisor(self, q, q_rotary, latent):
        return math.sqrt(q.shape[-1] + q_rotary.shape[-1])

    def hidden(self, scores, mask):
        return scores if mask is None else scores.masked_fill(~mask, -math.inf)

    def weigh(self, scores, mask):
        return scores.softmax(dim=-1)

    def answers(self, weights, latent, W_UV):
        return (weights @ latent.unsqueeze(1)) @ W_UV


def variant(**parts):
    """The right program with some of its parts replaced."""
    return type("Variant", (Absorbed,), parts)()


def _head_by_head(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    """Heads in a loop, a large negative fill."""
    n_head, outs = q.shape[1], []
    for h, (own_k, own_v) in enumerate(
        zip(W_UK.chunk(n_head, 1), W_UV.chunk(n_head, 1), strict=True)
    ):
        scores = (q[:, h] @ own_k.T) @ latent.transpose(1, 2)
        scores = scores + q_rotary[:, h] @ rotary_key.transpose(1, 2)
        scores = scores / (q.shape[3] + q_rotary.shape[3]) ** 0.5
        if mask is not None:
            full = mask.expand(*q.shape[:3], latent.shape[1])[:, h]
            scores = scores.masked_fill(~full, -1e9)
        outs.append(scores.softmax(2) @ latent @ own_v)
    return torch.stack(outs, dim=1)


def _einsum(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    """Einsum in two-operand steps, queries scaled beforehand."""
    n_head = q.size(1)
    W_UK, W_UV = W_UK.view(W_UK.size(0), n_head, -1), W_UV.view(W_UV.size(0), n_head, -1)
    scale = (q.size(-1) + q_rotary.size(-1)) ** -0.5
    asked = torch.einsum("bhie,rhe->bhir", q * scale, W_UK)
    scores = torch.einsum("bhir,bjr->bhij", asked, latent)
    scores = scores + torch.einsum("bhie,bje->bhij", q_rotary * scale, rotary_key)
    if mask is not None:
        scores = torch.where(mask, scores, -1e9)
    found = torch.einsum("bhij,bjr->bhir", torch.softmax(scores, -1), latent)
    return torch.einsum("bhir,rhe->bhie", found, W_UV)


def _one_product(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    """As multi-query attention: one key of rank + rope numbers, one value of rank."""
    n_head = q.shape[1]
    W_UK, W_UV = (W.unflatten(1, (n_head, -1)).movedim(1, 0) for W in (W_UK, W_UV))
    asked = torch.cat([q @ W_UK.transpose(1, 2), q_rotary], dim=-1)
    keys = torch.cat([latent, rotary_key], dim=-1)
    scores = asked.flatten(1, 2).bmm(keys.mT).unflatten(1, q.shape[1:3])
    scores = scores.div(math.sqrt(q.shape[-1] + q_rotary.shape[-1]))
    if mask is not None:
        scores.masked_fill_(mask.logical_not(), -math.inf)
    found = scores.softmax(-1).flatten(1, 2).bmm(latent).unflatten(1, q.shape[1:3])
    return torch.matmul(found, W_UV)


def _float64_inside(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    wide = [t.double() for t in (q, q_rotary, latent, rotary_key, W_UK, W_UV)]
    return Absorbed()(*wide, mask).to(q.dtype)


RIGHT = (
    Right("parts", Absorbed()),
    Right("head_by_head", _head_by_head),
    Right("einsum", _einsum),
    Right("as_multi_query_attention", _one_product),
    Right("float64_inside", _float64_inside),
    Right("a_lambda", lambda *given: Absorbed()(*given)),
)


def _unpacked(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    """Keys and values unpacked first."""
    n_head = q.shape[1]
    k, v = ((latent @ W).unflatten(-1, (n_head, -1)).transpose(1, 2) for W in (W_UK, W_UV))
    k = torch.cat([k, rotary_key.unsqueeze(1).expand(-1, n_head, -1, -1)], dim=-1)
    q = torch.cat([q, q_rotary], dim=-1)
    scores = Absorbed().hidden(q @ k.mT / math.sqrt(q.shape[-1]), mask)
    return scores.softmax(-1) @ v


def _exchanged(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    return Absorbed()(q, q_rotary, latent, rotary_key, W_UV, W_UK, mask)


def _rotary_after_the_scale(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    root = math.sqrt(q.shape[-1] + q_rotary.shape[-1])
    return Absorbed()(q, q_rotary * root, latent, rotary_key, W_UK, W_UV, mask)


def _causal_always(self, scores, mask):
    seq_q, seq_k = scores.shape[-2:]
    return scores.masked_fill(
        ~torch.ones(seq_q, seq_k, dtype=torch.bool).tril(seq_k - seq_q), -math.inf
    )


WRONG = (
    Wrong("unpacked", _unpacked, UNPACKS),
    Wrong("keys_unpacked", variant(
        own=lambda self, q, latent, W_UK: q @ (latent.unsqueeze(1) @ W_UK).mT), UNPACKS),
    Wrong("values_unpacked", variant(
        answers=lambda self, weights, latent, W_UV: weights @ (latent.unsqueeze(1) @ W_UV)),
        UNPACKS),
    Wrong("rotary_left_out", variant(rotary=lambda self, q, k: 0.0),
        "The rotary scores are missing: heads can't tell near tokens from far ones."),
    Wrong("rotary_unscaled", _rotary_after_the_scale,
        "The rotary scores are added after the scale and so they are too large. Add both parts\n"
        "first, then divide the sum."),
    Wrong("scale_by_own_part", variant(divisor=lambda self, q, r, c: math.sqrt(q.shape[-1])),
        "The scores are divided by the root of the head's own numbers. A query has the rotary\n"
        "ones as well."),
    Wrong("scale_by_rank", variant(
        divisor=lambda self, q, r, c: math.sqrt(c.shape[-1] + r.shape[-1])),
        "The scores are divided by the root of rank + rope. The products are those of unpacked\n"
        "keys, whatever way they are computed: nope + rope numbers."),
    Wrong("scale_by_width", variant(
        divisor=lambda self, q, r, c: math.sqrt(q.shape[1] * (q.shape[-1] + r.shape[-1]))),
        "The scores are divided by the root of the count of all heads' numbers. A score is a sum\n"
        "over one head's: nope + rope."),
    Wrong("no_scale", variant(divisor=lambda self, q, r, c: 1.0),
        "The scores are not divided at all."),
    Wrong("latents_as_answers", variant(
        answers=lambda self, weights, latent, W_UV: weights @ latent.unsqueeze(1)),
        "What comes out are means of latents, rank numbers each. They still have to be unpacked,\n"
        "once for each query."),
    Wrong("keys_as_values", variant(
        answers=lambda self, weights, latent, W_UV: Absorbed.answers(
            self, weights, latent, self.W_UK[..., : W_UV.shape[-1]]),
        own=lambda self, q, latent, W_UK: (
            setattr(self, "W_UK", W_UK), Absorbed.own(self, q, latent, W_UK))[1]),
        "The means of latents are unpacked with W_UK, the matrix of the keys."),
    Wrong("exchanged", _exchanged,
        "W_UK and W_UV are exchanged: the queries are brought over with the matrix of the values."),
    Wrong("heads_by_direct_reshape", variant(
        cut=lambda self, W, n: W.reshape(n, W.shape[0], -1)),
        "The matrices are cut into heads by a direct reshape, which mixes rows and columns. Cut\n"
        "the columns first, then bring the heads to the front."),
    Wrong("heads_dealt_out", variant(
        cut=lambda self, W, n: W.unflatten(1, (-1, n)).movedim(-1, 0)),
        "Head h takes every n_head-th column. A head's columns stand together."),
    Wrong("first_head_for_all", variant(
        cut=lambda self, W, n: Absorbed.cut(self, W, n)[:1].expand(n, -1, -1)),
        "All heads use head 0's block of the matrices. They share latents; each unpacks its own."),
    Wrong("mask_ignored", variant(hidden=lambda self, s, mask: s),
        "The mask changes nothing: masked tokens still get weight."),
    Wrong("mask_inverted", variant(
        hidden=lambda self, s, mask: s if mask is None else s.masked_fill(mask, -1e9)),
        "The mask is read the wrong way round. True means: may attend."),
    Wrong("masked_scores_are_zero", variant(
        hidden=lambda self, s, mask: s if mask is None else s * mask),
        "Masked scores are set to 0, and exp(0) = 1: such tokens still get weight."),
    Wrong("mask_after_softmax", variant(hidden=lambda self, s, mask: s,
        weigh=lambda self, s, mask: s.softmax(-1) * (1.0 if mask is None else mask)),
        "The mask comes after the softmax: what is left no longer sums to 1. Mask the scores."),
    Wrong("always_causal", variant(hidden=_causal_always),
        "A causal mask is applied whatever is given. Use the mask that comes in, if any."),
    Wrong("softmax_over_queries", variant(
        weigh=lambda self, s, mask: s.softmax(-2).nan_to_num()),
        "The softmax runs over the queries. Each query's row of weights sums to 1."),
    Wrong("softmax_over_heads", variant(
        weigh=lambda self, s, mask: s.softmax(1).nan_to_num()),
        "The softmax runs over the heads, so that they compete with one another."),
    Wrong("no_softmax", variant(
        weigh=lambda self, s, mask: s if mask is None else s.masked_fill(~mask, 0.0)),
        "The scores are used as weights: there is no softmax."),
)  # fmt: skip

ABSORB = Answer(reference=mla_absorb, wrong=WRONG, right=RIGHT)
