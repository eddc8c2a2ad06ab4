"""Answers to smear_keys."""

from __future__ import annotations

import torch

from labs_lib.attention import induction

from ..kit import Answer, Right, Wrong


def _share(own):
    return own[:, None, None]


def _mix(k, own, other):
    return _share(own) * k + (1 - _share(own)) * other


def _shifted(k, steps=1):
    """Keys moved along by some places; the first keep their own."""
    if k.shape[2] <= steps:
        return k
    return torch.cat([k[:, :, :steps], k[:, :, :-steps]], dim=2)


def _from_the_next(k, own):
    return _mix(k, own, torch.cat([k[:, :, 1:], k[:, :, -1:]], dim=2))


def _wraps(k, own):
    return _mix(k, own, k.roll(1, dims=2))


def _nothing_before(k, own):
    return _mix(k, own, torch.cat([torch.zeros_like(k[:, :, :1]), k[:, :, :-1]], dim=2))


def _first_lost(k, own):
    return _share(own) * k[:, :, 1:] + (1 - _share(own)) * k[:, :, :-1]


def _over_heads(k, own):
    before = torch.cat([k[:, :1], k[:, :-1]], dim=1)
    return _mix(k, own, before)


def _over_numbers(k, own):
    before = torch.cat([k[..., :1], k[..., :-1]], dim=3)
    return _mix(k, own, before)


def _running(k, own):
    rows = [k[:, :, 0]]
    for t in range(1, k.shape[2]):
        rows.append(own[:, None] * k[:, :, t] + (1 - own[:, None]) * rows[-1])
    return torch.stack(rows, dim=2)


def _own_by(axis):
    """A program that lines the shares up with another axis, by going round where it is longer."""

    def program(k, own):
        shape = [1] * 4
        shape[axis] = k.shape[axis]
        share = own[torch.arange(k.shape[axis]) % len(own)].view(shape)
        return share * k + (1 - share) * _shifted(k)

    return program


def _added(k, own):
    return torch.cat([k[:, :, :1], k[:, :, 1:] + (1 - _share(own)) * k[:, :, :-1]], dim=2)


def _loop(k, own):
    out = k.clone()
    for head in range(k.shape[1]):
        for t in range(1, k.shape[2]):
            out[:, head, t] = own[head] * k[:, head, t] + (1 - own[head]) * k[:, head, t - 1]
    return out


def _as_a_matrix(k, own):
    """Smearing is a product with a matrix over places that has two diagonals."""
    seq = k.shape[2]
    eye = torch.eye(seq, dtype=k.dtype)
    below = torch.eye(seq, dtype=k.dtype).roll(1, dims=0)
    below[0] = eye[0]
    return (_share(own) * eye + (1 - _share(own)) * below) @ k


def _rolled(k, own):
    mixed = _wraps(k, own)
    return torch.cat([k[:, :, :1], mixed[:, :, 1:]], dim=2)


SHARES_FIT_NOWHERE = (
    "own has one number for each head, and meets the numbers or the places of k: the last axes\n"
    "meet first. Heads are axis 1, so two axes have to stand behind that of own."
)

SMEAR_KEYS = Answer(
    reference=induction.smear_keys,
    wrong=(
        Wrong(
            "from_the_next",
            _from_the_next,
            "Each key is mixed with the one after it. That lets a key know what is still to come:\n"
            "the mix is with the token before.",
        ),
        Wrong(
            "wraps_around",
            _wraps,
            "All is right but the first token: its key is mixed with the last one, which roll\n"
            "brings round to the front. That leaks the end of the text. The first keeps its key.",
        ),
        Wrong(
            "nothing_before",
            _nothing_before,
            "All is right but the first token: it is mixed with a key of zeros. It keeps its own\n"
            "key whole.",
        ),
        Wrong(
            "first_lost",
            _first_lost,
            "The first token has no key any more: one place is missing. It keeps its own key.",
        ),
        Wrong(
            "shares_exchanged",
            lambda k, own: induction.smear_keys(k, 1 - own),
            "The shares are exchanged: own is the share of the own key, the rest goes to the\n"
            "key before.",
        ),
        Wrong(
            "running_mean",
            _running,
            "Each key is mixed with the *mixed* key before it, so that a little of every earlier\n"
            "token gets in. Mix with the key as it was.",
        ),
        Wrong(
            "added",
            _added,
            "The key before is added, but the own key isn't scaled down: the shares are to add up\n"
            "to 1.",
        ),
        Wrong(
            "two_back",
            lambda k, own: _mix(k, own, _shifted(k, 2)),
            "The mix is with the key two places back.",
        ),
        Wrong(
            "other_heads",
            _over_heads,
            "Each head is mixed with the head before it: that went along axis 1. The token before\n"
            "is on axis 2.",
        ),
        Wrong(
            "other_numbers",
            _over_numbers,
            "Numbers within a key are mixed with their neighbours: that went along the last axis.\n"
            "The token before is on axis 2.",
        ),
        Wrong(
            "shares_over_numbers",
            _own_by(3),
            "The shares line up with the numbers of a key, as own has no axes but its last. Each\n"
            "head has its own share: own needs two more axes behind.",
        ),
        Wrong(
            "shares_over_places",
            _own_by(2),
            "The shares line up with the places. Each head has its own share: own needs two more\n"
            "axes behind.",
        ),
        Wrong(
            "shares_as_they_come",
            lambda k, own: own * k[:, :, 1:] + (1 - own) * k[:, :, :-1],
            SHARES_FIT_NOWHERE,
        ),
        Wrong(
            "shares_as_they_come_behind",
            lambda k, own: k[:, :, 1:] * own + k[:, :, :-1] * (1 - own),
            SHARES_FIT_NOWHERE,
        ),
        Wrong(
            "shares_one_axis_short",
            lambda k, own: own[:, None] * k[:, :, 1:] + (1 - own[:, None]) * k[:, :, :-1],
            SHARES_FIT_NOWHERE,
        ),
        Wrong(
            "shares_along_the_batch",
            lambda k, own: own[:, None, None, None] * k[:, :, 1:],
            "own has one number for each head, and three new axes behind it bring it to the\n"
            "batch. Heads are axis 1: two axes stand behind them.",
        ),
        Wrong(
            "the_head_before",
            lambda k, own: torch.cat([k[:, :1], (own[:, None, None] * k)[:, 1:] + (
                (1 - own[:, None, None]) * k)[:, :-1]], dim=1),
            "Heads are mixed with the head before: that went along axis 1. The token before is on\n"
            "axis 2.",
        ),
        Wrong(
            "first_key_last",
            lambda k, own: torch.cat([own[:, None, None] * k[:, :, 1:] + (
                1 - own[:, None, None]) * k[:, :, :-1], k[:, :, :1]], dim=2),
            "All keys are there, and the first one stands last, so that each token has the key of\n"
            "the next. It belongs in front.",
        ),
        Wrong(
            "one_share_for_all",
            lambda k, own: induction.smear_keys(k, own.mean().expand_as(own)),
            "All heads have the same share, the mean. Each has its own.",
        ),
        Wrong(
            "first_share_for_all",
            lambda k, own: induction.smear_keys(k, own[:1].expand_as(own)),
            "All heads have the share of head 0. Each has its own.",
        ),
        Wrong(
            "squashed",
            lambda k, own: induction.smear_keys(k, own.sigmoid()),
            "own went through a sigmoid. Olsson et al. do that to the number that they train;\n"
            "here own is a share already.",
        ),
        Wrong(
            "only_the_key_before",
            lambda k, own: _shifted(k) + 0.0 * own.sum(),
            "The keys have moved along whole: the own key has no part in them.",
        ),
        Wrong(
            "nothing_mixed",
            lambda k, own: k.clone() + 0.0 * own.sum(),
            "The keys are as they were.",
        ),
    ),
    right=(
        Right("loop", _loop),
        Right("as_a_matrix", _as_a_matrix),
        Right("rolled_and_mended", _rolled),
        Right("lerp", lambda k, own: torch.lerp(_shifted(k), k, _share(own).expand_as(k))),
        Right("einsum", lambda k, own: torch.einsum("h,bhtd->bhtd", own, k) + torch.einsum(
            "h,bhtd->bhtd", 1 - own, _shifted(k))),
        Right("float64_inside", lambda k, own: induction.smear_keys(k.double(), own.double()).to(
            k.dtype)),
    ),
)  # fmt: skip
