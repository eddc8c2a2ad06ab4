"""Packed keys and values in lab 08: reference, wrong programs and right programs."""

from __future__ import annotations

import torch

from labs_lib.attention.latent import mla_compress

from ..kit import Answer, Right, Wrong


class Packed:
    """The right program in parts, so that a variant replaces one of them."""

    def __call__(self, x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
        past = self.past(cache)
        latent, rotary = self.packed(x, W_DKV, W_KR, rotate, past)
        latent, rotary = self.joined(cache, latent, rotary)
        k = self.keys(self.split(latent @ W_UK, n_head), rotary, rotate)
        v = self.values(self.split(latent @ W_UV, n_head), rotate)
        return k, v, self.kept(latent, rotary, k, v)

    def past(self, cache):
        return 0 if cache is None else cache[0].shape[1]

    def packed(self, x, W_DKV, W_KR, rotate, past):
        return x @ W_DKV, rotate(x @ W_KR, past)

    def joined(self, cache, latent, rotary):
        if cache is None:
            return latent, rotary
        return torch.cat([cache[0], latent], dim=1), torch.cat([cache[1], rotary], dim=1)

    def split(self, x, n_head):
        return x.unflatten(-1, (n_head, -1)).transpose(1, 2)

    def keys(self, own, rotary, rotate):
        shared = rotary.unsqueeze(1).expand(-1, own.shape[1], -1, -1)
        return torch.cat([own, shared], dim=-1)

    def values(self, v, rotate):
        return v

    def kept(self, latent, rotary, k, v):
        return latent, rotary


def variant(**parts):
    """The right program with some of its parts replaced."""
    return type("Variant", (Packed,), parts)()


def _head_by_head(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None, **more):
    """Tokens in one tensor that holds both parts, heads in a loop, the pair as a list."""
    past = cache[1].size(1) if cache else 0
    latent, rotary = torch.matmul(x, W_DKV), rotate(torch.matmul(x, W_KR), past)
    if cache:
        latent, rotary = torch.cat([cache[0], latent], 1), torch.cat([cache[1], rotary], 1)
    keys, values = [], []
    for own_k, own_v in zip(W_UK.chunk(n_head, 1), W_UV.chunk(n_head, 1), strict=True):
        keys.append(torch.cat([latent @ own_k, rotary], -1))
        values.append(latent @ own_v)
    return torch.stack(keys, 1), torch.stack(values, 1), [latent, rotary]


def _einsum(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
    """Einsum, and the key written into room made for it."""
    past = 0 if cache is None else len(cache[0][0])
    new = torch.einsum("btd,dr->btr", x, W_DKV), rotate(torch.einsum("btd,dr->btr", x, W_KR), past)
    latent, rotary = new if cache is None else (
        torch.hstack([old, fresh]) for old, fresh in zip(cache, new, strict=True)
    )  # fmt: skip
    own = torch.einsum("btr,rhe->bhte", latent, W_UK.unflatten(1, (n_head, -1)))
    v = torch.einsum("btr,rhe->bhte", latent, W_UV.unflatten(1, (n_head, -1)))
    k = own.new_zeros(*own.shape[:3], own.shape[3] + rotary.shape[2])
    k[..., : own.shape[3]] = own
    k[..., own.shape[3] :] = rotary[:, None]
    return k, v, (latent, rotary)


def _float64_inside(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
    wide = [t.double() for t in (x, W_DKV, W_KR, W_UK, W_UV)]
    pair = None if cache is None else tuple(t.double() for t in cache)
    k, v, (latent, rotary) = Packed()(*wide, n_head, rotate, pair)
    return k.to(x.dtype), v.to(x.dtype), (latent.to(x.dtype), rotary.to(x.dtype))


RIGHT = (
    Right("parts", Packed()),
    Right("head_by_head", _head_by_head),
    Right("einsum", _einsum),
    Right("float64_inside", _float64_inside),
    Right("a_method", Packed().__call__),
    Right("a_lambda", lambda *given: Packed()(*given)),
)


def _keeps_unpacked(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
    """Right keys and values, unpacked at once and kept like that."""
    past = 0 if cache is None else cache[0].shape[2]
    k, v, _ = variant(past=lambda self, cache: past)(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate)
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    return k, v, (k, v)


def _keeps_rotary_for_every_head(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
    pair = None if cache is None else (cache[0], cache[1][:, 0])
    k, v, (latent, rotary) = Packed()(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, pair)
    return k, v, (latent, rotary.unsqueeze(1).expand(-1, n_head, -1, -1))


def _keeps_x(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
    tokens = x if cache is None else torch.cat([cache[0], x], dim=1)
    k, v, _ = Packed()(tokens, W_DKV, W_KR, W_UK, W_UV, n_head, rotate)
    return k, v, (tokens, tokens)


class _TurnedWhenRead(Packed):
    def packed(self, x, W_DKV, W_KR, rotate, past):
        return x @ W_DKV, x @ W_KR

    def keys(self, own, rotary, rotate):
        return super().keys(own, rotate(rotary, 0), rotate)


class _PairChangedInPlace(Packed):
    def __call__(self, x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
        k, v, pair = super().__call__(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache)
        if cache is None:
            return k, v, list(pair)
        if isinstance(cache, list):
            cache[:] = pair
        return k, v, cache


class _OldPairReturned(Packed):
    def __call__(self, x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache=None):
        k, v, pair = super().__call__(x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate, cache)
        return k, v, pair if cache is None else cache


class _NewAlone(Packed):
    """The new tokens' keys and values; the pair is right."""

    def packed(self, x, W_DKV, W_KR, rotate, past):
        self.new = x.shape[1]
        return super().packed(x, W_DKV, W_KR, rotate, past)

    def keys(self, own, rotary, rotate):
        return super().keys(own, rotary, rotate)[:, :, -self.new :]

    def values(self, v, rotate):
        return v[:, :, -self.new :]


def _rotary_in_front(self, own, rotary, rotate):
    return Packed.keys(self, own, rotary, rotate).roll(rotary.shape[-1], dims=-1)


def _added(self, own, rotary, rotate):
    width = min(own.shape[-1], rotary.shape[-1])
    k = torch.cat(
        [own, torch.zeros_like(own[..., :1].expand(*own.shape[:3], rotary.shape[-1]))], -1
    )
    k[..., :width] = k[..., :width] + rotary[:, None, :, :width]
    return k


def _packed_at(latent=None, rotary=0, by=0):
    """Which of the two is turned (None: not), and how far the position is off."""

    def packed(self, x, W_DKV, W_KR, rotate, past):
        start = past + by if past else 0
        made = x @ W_DKV, x @ W_KR
        turned = zip(made, (latent, rotary), strict=True)
        return tuple(t if how is None else rotate(_even(t), start)[..., : t.shape[-1]]
                     for t, how in turned)  # fmt: skip

    return packed


def _even(t):
    """An odd width filled up by a zero, so that all numbers have a partner."""
    return t if t.shape[-1] % 2 == 0 else torch.nn.functional.pad(t, (0, 1))


def _from_zero(self, x, W_DKV, W_KR, rotate, past):
    return x @ W_DKV, rotate(x @ W_KR, 0)


def _turned_again(self, cache, latent, rotary):
    latent, rotary = Packed.joined(self, cache, latent, rotary)
    return latent, rotary if cache is None else self.rotate(rotary, 0)


class _TurnedAgain(Packed):
    joined = _turned_again

    def packed(self, x, W_DKV, W_KR, rotate, past):
        self.rotate = rotate
        return x @ W_DKV, rotate(x @ W_KR, past) if past == 0 else x @ W_KR


def _in_front(self, cache, latent, rotary):
    if cache is None:
        return latent, rotary
    return torch.cat([latent, cache[0]], dim=1), torch.cat([rotary, cache[1]], dim=1)


WRONG = (
    Wrong("keeps_unpacked", _keeps_unpacked,
        "Keys and values are right, but they are kept unpacked: that is an ordinary cache with\n"
        "two more products. Keep the latents, and unpack them in each step."),
    Wrong("rotary_key_for_every_head", _keeps_rotary_for_every_head,
        "The rotary key is kept once for every head. All heads share one; give it an axis for\n"
        "heads when it is used, not when it is kept."),
    Wrong("keeps_the_tokens", _keeps_x,
        "What is kept are the tokens themselves, d_model numbers each, and all of them are packed\n"
        "again in each step. Keep what comes out of W_DKV and W_KR."),
    Wrong("turned_when_read", _TurnedWhenRead(),
        "Keys and values are right, but the rotary keys are kept as projected and all of them are\n"
        "turned in each step. Keep them turned; then only new ones need it."),
    Wrong("turned_again", _TurnedAgain(),
        "The kept rotary keys are turned once more in each step. They were turned when they came."),
    Wrong("positions_from_zero", variant(packed=_from_zero),
        "New rotary keys are turned as if their tokens stood at the start of the text. The first\n"
        "of them stands behind all kept ones."),
    Wrong("position_off_by_one", variant(packed=_packed_at(by=1)),
        "New rotary keys are turned one place too far: behind `past` kept tokens the next one\n"
        "stands at position past."),
    Wrong("position_one_too_low", variant(packed=_packed_at(by=-1)),
        "New rotary keys are turned one place too little: the first of them shares the position\n"
        "of the last kept one."),
    Wrong("not_turned", variant(packed=_packed_at(rotary=None)),
        "The rotary keys are not turned at all, so no key says where its token stands."),
    Wrong("latents_turned", variant(packed=_packed_at(latent=0)),
        "The latents are turned too. Then W_UK couldn't be absorbed any more, and values would\n"
        "carry positions: that is why the rotary part is apart."),
    Wrong("whole_keys_turned", variant(keys=lambda self, own, rotary, rotate: Packed.keys(
        self, rotate(_even(own), 0)[..., : own.shape[-1]], rotary, rotate)),
        "The heads' own numbers are turned as well. Only the rotary key carries the position."),
    Wrong("values_turned", variant(values=lambda self, v, rotate: rotate(v, 0)
        if v.shape[-1] % 2 == 0 else rotate(_even(v), 0)[..., :-1]),
        "The values are turned. Positions decide who is looked at; a value is handed on as it is."),
    Wrong("rotary_in_front", variant(keys=_rotary_in_front),
        "The rotary key stands in front of the head's own numbers. The queries have it behind."),
    Wrong("rotary_added", variant(keys=_added),
        "The rotary key is added to the head's own numbers. It stands behind them, with numbers\n"
        "of its own."),
    Wrong("rotary_left_out", variant(keys=lambda self, own, rotary, rotate: own),
        "The keys are the heads' own numbers alone: the rotary key is kept and never used."),
    Wrong("new_alone", _NewAlone(),
        "Only the new tokens' keys and values come back. Unpack all latents, the kept ones too."),
    Wrong("cache_ignored", variant(joined=lambda self, cache, latent, rotary: (latent, rotary)),
        "The pair that comes in is never joined: the step knows its own tokens alone."),
    Wrong("old_pair_returned", _OldPairReturned(),
        "The old pair is returned: the new latents are used in this step and then lost."),
    Wrong("new_in_front", variant(joined=_in_front),
        "The new latents stand in front of the kept ones. Token j is to stand at place j."),
    Wrong("pair_changed_in_place", _PairChangedInPlace(),
        "The pair that came in is changed. Somebody may still go on from it in another way, so\n"
        "return a new pair and leave the old one alone."),
    Wrong("pair_exchanged", variant(kept=lambda self, latent, rotary, k, v: (rotary, latent)),
        "The pair is returned as (rotary keys, latents), and the next step takes it the other way\n"
        "round."),
    Wrong("keys_and_values_exchanged", lambda x, W_DKV, W_KR, W_UK, W_UV, n_head, rotate,
        cache=None: Packed()(x, W_DKV, W_KR, W_UV, W_UK, n_head, rotate, cache),
        "W_UK and W_UV are exchanged: the keys are unpacked with the matrix of the values."),
    Wrong("direct_split", variant(
        split=lambda self, x, n: x.reshape(x.shape[0], n, x.shape[1], -1)),
        "The unpacked width is cut into heads by a direct reshape, which mixes tokens. Cut it\n"
        "first, then swap the axes."),
    Wrong("split_dealt_out", variant(
        split=lambda self, x, n: x.unflatten(-1, (-1, n)).movedim(-1, 1)),
        "Head h takes every n_head-th column of the unpacked width. A head's columns stand\n"
        "together."),
)  # fmt: skip

COMPRESS = Answer(reference=mla_compress, wrong=WRONG, right=RIGHT)
