"""Lab 08: slips of a first try with packed keys and values."""

from __future__ import annotations

import math

import torch

from ..kit import Wrong
from .absorb import Absorbed
from .absorb import variant as absorbed
from .compress import Packed, variant


class _UnpackedTakenForPacked(Packed):
    """What is kept is unpacked, and joined to latents in the next step."""

    def kept(self, latent, rotary, k, v):
        return k, v


def _joined_along(axis):
    def joined(self, cache, latent, rotary):
        if cache is None:
            return latent, rotary
        return tuple(torch.cat([old, new], axis)
                     for old, new in zip(cache, (latent, rotary), strict=True))  # fmt: skip

    return joined


class _KeptUnturned(Packed):
    """New rotary keys are turned for this step, and what is kept of them is not."""

    def __call__(self, x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
        k, v, (latent, _) = super().__call__(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache)
        bare = x @ W_KR
        return k, v, (latent, bare if cache is None else torch.cat([cache[1], bare], 1))


class _NewestKept(Packed):
    def packed(self, x, W_DKV, W_KR, rotate, past):
        self.new = x.shape[1]
        return super().packed(x, W_DKV, W_KR, rotate, past)

    def kept(self, latent, rotary, k, v):
        return latent[:, -self.new :], rotary[:, -self.new :]


class _ValuesFirst(Packed):
    def __call__(self, *given):
        k, v, pair = super().__call__(*given)
        return v, k, pair


def _rotary_as(shape):
    """Keys with the rotary part shaped by shape(rotary, n_head) and joined."""

    def keys(self, own, rotary, rotate):
        return torch.cat([own, shape(rotary, own.shape[1])], dim=-1)

    return keys


def _started_at(place):
    def packed(self, x, W_DKV, W_KR, rotate, past):
        latent = x @ W_DKV
        return latent, rotate(x @ W_KR, place(past, x.shape[1], latent.shape[2]))

    return packed


def _values_with_rotary(self, v, rotate):
    return torch.cat([v, self.shared], dim=-1)


def _shared_kept(self, own, rotary, rotate):
    self.shared = rotary.unsqueeze(1).expand(-1, own.shape[1], -1, -1)
    return torch.cat([own, self.shared], dim=-1)


AXES = (
    "Something with an axis for heads is joined to something without one. Is what you keep still\n"
    "packed, [batch, tokens, numbers]? And has the rotary key got an axis for heads before it is\n"
    "put behind each head's own numbers?"
)

COMPRESS_SLIPS = (
    Wrong("unpacked_taken_for_packed", _UnpackedTakenForPacked(), AXES),
    Wrong("rotary_without_head_axis", variant(keys=_rotary_as(lambda r, n: r)), AXES),
    Wrong("rotary_not_expanded", variant(keys=_rotary_as(lambda r, n: r.unsqueeze(1))),
        "The rotary key has one head and the unpacked keys n_head. torch.cat doesn't spread:\n"
        "expand it first."),
    Wrong("rotary_head_axis_behind_tokens", variant(keys=_rotary_as(
        lambda r, n: r.unsqueeze(2).expand(-1, -1, n, -1))),
        "The rotary key's axis for heads stands behind the tokens. The unpacked keys are\n"
        "[batch, n_head, tokens, nope]."),
    Wrong("whole_width_turned", variant(
        keys=lambda self, own, rotary, rotate: rotate(Packed.keys(self, own, rotary, rotate), 0)),
        "The whole key is turned, unpacked numbers and rotary ones. Only x @ W_KR carries the\n"
        "position."),
    Wrong("own_numbers_turned", variant(
        keys=lambda self, own, rotary, rotate: Packed.keys(self, rotate(own, 0), rotary, rotate)),
        "The heads' own numbers are turned as well. Only the rotary key carries the position."),
    Wrong("latents_turned_whole", variant(packed=lambda self, x, W_DKV, W_KR, rotate, past: (
        rotate(x @ W_DKV, past), rotate(x @ W_KR, past))),
        "The latents are turned too. Only x @ W_KR carries the position: keys and values are\n"
        "unpacked from a latent that doesn't know where it stands."),
    Wrong("positions_from_one", variant(packed=_started_at(lambda past, new, rank: past + 1)),
        "Every rotary key is turned one place too far, the first of the text too. Positions count\n"
        "from 0."),
    Wrong("start_of_the_last_token", variant(
        packed=_started_at(lambda past, new, rank: past + new - 1)),
        "rotate is given the position of the last new token. It asks for that of the first, and\n"
        "counts on from there."),
    Wrong("length_of_the_pair", variant(
        packed=_started_at(lambda past, new, rank: 2 if past else 0)),
        "Whatever is kept, new rotary keys are turned for position 2: len(cache) is the length of\n"
        "the pair, len(cache[0]) the number of texts. Tokens are axis 1 of what is kept."),
    Wrong("rank_for_tokens", variant(
        packed=_started_at(lambda past, new, rank: rank if past else 0)),
        "The width of a latent is taken for the number of kept tokens. Kept is\n"
        "[batch, tokens, rank]: there are no heads, so tokens are axis 1 here."),
    Wrong("kept_unturned", _KeptUnturned(),
        "The rotary keys that are kept are not the turned ones, and the next step takes them as\n"
        "they are. Keep them turned, as they were used."),
    Wrong("newest_kept", _NewestKept(),
        "Only the new latents and rotary keys are returned; what came in before is lost after\n"
        "this step."),
    Wrong("joined_on_the_last_axis", variant(joined=_joined_along(2)),
        "Old and new are joined along the numbers of a token. What is kept is\n"
        "[batch, tokens, numbers], without heads: tokens are axis 1."),
    Wrong("joined_on_the_batch_axis", variant(joined=_joined_along(0)),
        "Old and new are joined along the axis of the texts. What is kept is\n"
        "[batch, tokens, numbers], without heads: tokens are axis 1."),
    Wrong("heads_and_tokens_unswapped", variant(
        split=lambda self, x, n: x.unflatten(-1, (n, -1)),
        keys=lambda self, own, rotary, rotate: torch.cat(
            [own, rotary.unsqueeze(1).expand(-1, own.shape[2], -1, -1)], dim=-1)),
        "The unpacked width is cut into heads, but tokens still stand before heads. Swap the two\n"
        "axes, as split_heads of lab 02 does."),
    Wrong("values_with_rotary_numbers", variant(keys=_shared_kept, values=_values_with_rotary),
        "The rotary numbers are put behind the values too. A value is what is unpacked, alone."),
    Wrong("values_first", _ValuesFirst(),
        "The values come back before the keys: k first, then v, then the pair."),
)  # fmt: skip


def _each_part_by_its_own(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    whole = q.shape[-1] + q_rotary.shape[-1]
    q, q_rotary = (t * math.sqrt(whole / t.shape[-1]) for t in (q, q_rotary))
    return Absorbed()(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask)


def _uncut(q, q_rotary, latent, rotary_key, W_UK, W_UV, mask=None):
    return (q @ W_UK.mT) @ latent.unsqueeze(1).mT


ABSORB_SLIPS = (
    Wrong("each_part_by_its_own_root", _each_part_by_its_own,
        "Each part of the score is divided by the root of its own width. They are one product of\n"
        "nope + rope numbers: add both, then divide the sum once."),
    Wrong("scale_by_rank_alone", absorbed(divisor=lambda self, q, r, c: math.sqrt(c.shape[-1])),
        "The scores are divided by the root of rank. The products are those of unpacked keys,\n"
        "whatever way they are computed: nope + rope numbers."),
    Wrong("latent_without_head_axis", absorbed(
        own=lambda self, q, latent, W_UK: (q @ W_UK.mT) @ latent.mT),
        "The latents are [batch, tokens, rank], without heads, and torch takes their batch for\n"
        "heads. Give them an axis of length 1 for the heads."),
    Wrong("matrix_not_turned_round", absorbed(own=lambda self, q, latent, W_UK: (
        q @ W_UK) @ latent.unsqueeze(1).mT),
        "A query has nope numbers and a head's W_UK is [rank, nope]: to bring the query over to\n"
        "the latents take the matrix the other way round, .mT."),
    Wrong("matrix_uncut", _uncut,
        "W_UK is used whole, with the columns of all heads. Each head has its own block: cut it\n"
        "to [n_head, rank, nope] first."),
    Wrong("heads_joined", lambda *given: Absorbed()(*given).transpose(1, 2).flatten(2),
        "The heads are joined to one width. Wanted are the heads' answers, still apart."),
)  # fmt: skip
