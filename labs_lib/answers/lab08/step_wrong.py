"""The decoding step of lab 08 as students get it wrong."""

from __future__ import annotations

import math

import torch

from labs_lib.attention.cache import decode_step

from ..kit import Answer, Wrong
from .step import RIGHT, Step, variant


def _keeps_x(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
    """All tokens are kept, and projected anew in each step."""
    tokens = x if cache is None else torch.cat([cache[0], x], dim=1)
    out, _ = Step()(tokens, W_Q, W_K, W_V, W_O, n_head, rotate)
    return out[:, -x.shape[1] :], (tokens, tokens)


def _turns_all_when_read(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
    """Keys are kept as projected and turned anew in each step."""
    step = Step()
    past = step.past(cache)
    q, k, v = (step.split(x @ W, n_head) for W in (W_Q, W_K, W_V))
    k, v = step.joined(cache, k, v)
    heads = step.attend(rotate(q, past), rotate(k, 0), v, x.shape[1])
    return step.mix(heads, W_O), (k, v)


def _turned_again(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
    """The kept keys, turned when they came, are turned once more in each step."""
    step = Step()
    past = step.past(cache)
    q, k, v = (step.split(x @ W, n_head) for W in (W_Q, W_K, W_V))
    k, v = step.joined(cache, k, v)
    k = rotate(k, 0)
    return step.mix(step.attend(rotate(q, past), k, v, x.shape[1]), W_O), (k, v)


class _PairChangedInPlace(Step):
    """The list that came in is changed, and so whoever still holds it is surprised."""

    def __call__(self, x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
        given = cache
        out, pair = super().__call__(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache)
        if given is None:
            return out, list(pair)
        if isinstance(given, list):
            given[:] = pair
        return out, given


class _GoesOnWithTheLastText(Step):
    """One token without a cache is taken for the next one of the text before."""

    last = None

    def __call__(self, x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
        if cache is None and x.shape[1] == 1 and self._fits(x, W_K, n_head):
            cache = self.last[1]
        out, pair = super().__call__(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache)
        self.last = W_K, pair
        return out, pair

    def _fits(self, x, W_K, n_head):
        return self.last is not None and self.last[0] is W_K


class _ReadNotStored(Step):
    def __call__(self, x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
        out, pair = super().__call__(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache)
        return out, pair if cache is None else cache


class _NewestStored(Step):
    def kept(self, keys, values):
        return keys[:, :, -self.new :], values[:, :, -self.new :]

    def turn(self, q, k, v, rotate, past):
        self.new = k.shape[2]
        return super().turn(q, k, v, rotate, past)


class _StoredAfterwards(Step):
    """Attends to the kept tokens alone, and stores the new ones after that."""

    def attend(self, q, k, v, new):
        if k.shape[2] == new:
            return super().attend(q, k, v, new)
        return (q @ k[:, :, :-new].mT / self.divisor(q)).softmax(-1) @ v[:, :, :-new]


def joined_along(axis):
    """Old and new joined along another axis than the tokens'."""

    def joined(self, cache, k, v):
        if cache is None:
            return k, v
        return torch.cat([cache[0], k], dim=axis), torch.cat([cache[1], v], dim=axis)

    return joined


def _new_in_front(self, cache, k, v):
    if cache is None:
        return k, v
    return torch.cat([k, cache[0]], dim=2), torch.cat([v, cache[1]], dim=2)


def _over_the_last(self, cache, k, v):
    return (k, v) if cache is None else Step.joined(self, [t[:, :, :-1] for t in cache], k, v)


def _only_k_joined(self, cache, k, v):
    if cache is None:
        return k, v
    keys = torch.cat([cache[0], k], dim=2)
    return keys, torch.cat([v[:, :, :1].expand_as(cache[1]), v], dim=2)


def _detached(self, cache, k, v):
    return Step.joined(self, None if cache is None else [t.detach() for t in cache], k, v)


def turned(q=0, k=0, v=None):
    """Positions off by the given numbers; None for not turned at all."""

    def turn(self, *given):
        *parts, rotate, past = given
        pairs = zip(parts, (q, k, v), strict=True)
        return [t if by is None else rotate(t, max(past + by, 0)) for t, by in pairs]

    return turn


def from_zero(self, q, k, v, rotate, past):
    """New tokens turned as if they stood at the start."""
    return rotate(q, 0), rotate(k, 0), v


def one_more_place(self, q, k, v, rotate, past):
    """New tokens turned one place too far where something is kept."""
    past = past + 1 if past else 0
    return rotate(q, past), rotate(k, past), v


def _one_place_less(self, q, k, v, rotate, past):
    return rotate(q, max(past - 1, 0)), rotate(k, max(past - 1, 0)), v


def _all_at_the_first_place(self, q, k, v, rotate, past):
    q, k = (
        torch.cat([rotate(t[:, :, i : i + 1], past) for i in range(t.shape[2])], dim=2)
        for t in (q, k)
    )
    return q, k, v


def _new_block_alone(self, new, tokens):
    mask = torch.zeros(new, tokens, dtype=torch.bool)
    mask[:, -new:] = torch.ones(new, new, dtype=torch.bool).tril()
    return mask


WRONG = (
    Wrong("mask_top_left", variant(
        mask=lambda self, new, tokens: torch.ones(new, tokens, dtype=torch.bool).tril()),
        "The mask starts in the top left corner: with one new token it sees key 0 and nothing\n"
        "else. The last row belongs to the newest token, which sees every key."),
    Wrong("no_mask", variant(
        mask=lambda self, new, tokens: torch.ones(new, tokens, dtype=torch.bool)),
        "There is no mask. One new token may see all, but of several new ones the first must not\n"
        "see the second."),
    Wrong("mask_hides_the_past", variant(mask=_new_block_alone),
        "The new tokens see one another and nothing of what is kept: the mask hides it, or it is\n"
        "never joined before attention runs. Every new token may see all kept ones."),
    Wrong("one_key_too_many", variant(mask=lambda self, new, tokens: torch.ones(
        new, tokens, dtype=torch.bool).tril(tokens - new + 1)),
        "Every new token sees one key too many, that of the token after it."),
    Wrong("one_key_too_few", variant(mask=lambda self, new, tokens: torch.ones(
        new, tokens, dtype=torch.bool).tril(max(tokens - new - 1, 0))),
        "A new token doesn't see itself: the mask ends one key too early, or attention runs\n"
        "before the new keys are joined to the kept ones."),
    Wrong("positions_from_zero", variant(turn=from_zero),
        "The new tokens are turned as if they stood at the start of the text. The first of them\n"
        "stands behind all kept ones."),
    Wrong("position_off_by_one", variant(turn=one_more_place),
        "The new tokens are turned one place too far. Positions count from 0: behind `past` kept\n"
        "tokens the next one stands at position past."),
    Wrong("position_one_too_low", variant(turn=_one_place_less),
        "The new tokens are turned one place too little: the first of them shares the position of\n"
        "the last kept one."),
    Wrong("one_position_for_all", variant(turn=_all_at_the_first_place),
        "All new tokens are turned for the position of the first. Right as long as one comes at a\n"
        "time; rotate knows where the others stand if it gets them all at once."),
    Wrong("not_turned", variant(turn=turned(None, None)),
        "Nothing is turned: rotate is never called; the layer can't tell where a token stands."),
    Wrong("queries_not_turned", variant(turn=turned(None, 0)),
        "The keys are turned and the queries are not. The product depends on the distance of the\n"
        "two only if both are."),
    Wrong("keys_not_turned", variant(turn=turned(0, None)),
        "The queries are turned and the keys are not. The product depends on the distance of the\n"
        "two only if both are."),
    Wrong("values_turned", variant(turn=turned(0, 0, 0)),
        "The values are turned too. Positions decide who is looked at, so they belong in\n"
        "queries and keys; a value is handed on as it is."),
    Wrong("turned_again", _turned_again,
        "The kept keys are turned once more in every step. They were turned when they came; only\n"
        "the new ones are to be turned."),
    Wrong("turned_when_read", _turns_all_when_read,
        "The outputs are right, but keys are kept as they were projected and all of them are\n"
        "turned in every step. Keep them turned; then only new ones need it."),
    Wrong("keeps_the_tokens", _keeps_x,
        "The outputs are right, but what is kept are the tokens themselves, and all of them are\n"
        "projected again in each step. That is decoding without a cache: keep keys and values."),
    Wrong("cache_ignored", variant(joined=lambda self, cache, k, v: (k, v)),
        "The cache that comes in is never used: each step sees its own tokens and nothing before."),
    Wrong("read_not_stored", _ReadNotStored(),
        "The old pair is returned: the new keys and values are used in this step and then lost."),
    Wrong("newest_stored", _NewestStored(),
        "Only the new keys and values are returned; what came in before is lost after this step."),
    Wrong("stored_afterwards", _StoredAfterwards(),
        "The new tokens are stored after attending, so they don't see themselves. Join first."),
    Wrong("joined_on_heads", variant(joined=joined_along(1)),
        "Old and new keys are joined along the axis of the heads. Tokens are axis 2 of\n"
        "[batch, n_head, tokens, head_dim]."),
    Wrong("joined_on_texts", variant(joined=joined_along(0)),
        "Old and new keys are joined along the axis of the texts. Tokens are axis 2 of\n"
        "[batch, n_head, tokens, head_dim]."),
    Wrong("new_in_front", variant(joined=_new_in_front),
        "The new keys stand in front of the kept ones. The mask takes the last columns for the\n"
        "newest tokens, so they belong behind."),
    Wrong("over_the_last", variant(joined=_over_the_last),
        "The new keys are written over the last kept token, which is lost."),
    Wrong("old_values_lost", variant(joined=_only_k_joined),
        "The keys are joined and the old values are lost: in their place stands the new one."),
    Wrong("pair_changed_in_place", _PairChangedInPlace(),
        "The pair that came in is changed. Somebody may still go on from it in another way, so\n"
        "return a new pair and leave the old one alone."),
    Wrong("goes_on_with_the_last_text", _GoesOnWithTheLastText(),
        "A call without a cache goes on with the text before: something is remembered between\n"
        "calls. Without a cache a new text begins, and all that is kept is in the pair."),
    Wrong("detached", variant(joined=_detached),
        "The kept keys and values are cut off from the graph, so no gradient reaches the tokens\n"
        "before. Leave out .detach() and no_grad() here."),
    Wrong("pair_swapped", variant(kept=lambda self, keys, values: (values, keys)),
        "The pair is returned as (values, keys), and the next step takes them for (keys, values)."),
    Wrong("keys_kept_twice", variant(kept=lambda self, keys, values: (keys, keys)),
        "The pair holds the keys twice: the values are lost after the step."),
    Wrong("scale_by_d_model", variant(
        divisor=lambda self, q: math.sqrt(q.shape[-1] * q.shape[1])),
        "The scores are divided by the root of the whole width. A head's query and key have only\n"
        "head_dim numbers."),
    Wrong("no_scale", variant(divisor=lambda self, q: 1.0),
        "The scores are not divided at all; the scale of lab 01 is missing."),
    Wrong("softmax_over_queries", variant(weigh=lambda self, s: s.softmax(-2).nan_to_num()),
        "The softmax runs over the queries. With one new token every key then gets weight 1."),
    Wrong("direct_split", variant(
        split=lambda self, x, n: x.reshape(x.shape[0], n, x.shape[1], -1)),
        "The width is cut into heads by a direct reshape, which mixes tokens. With one token it\n"
        "makes no difference, with several it does: cut first, then swap the axes."),
    Wrong("direct_merge", variant(
        mix=lambda self, heads, W_O: heads.reshape(heads.shape[0], heads.shape[2], -1) @ W_O),
        "The heads are joined by a direct reshape, which mixes tokens. With one token it makes no\n"
        "difference, with several it does: swap the axes first, then join."),
    Wrong("w_o_forgotten", variant(mix=lambda self, heads, W_O: heads.transpose(1, 2).flatten(2)),
        "W_O is never used: these are the heads side by side."),
    Wrong("newest_answer_alone", variant(
        mix=lambda self, heads, W_O: Step.mix(self, heads[:, :, -1:], W_O)),
        "Only the last new token gets an answer. Every new token does: a text that is read in one\n"
        "go is a step as well."),
)  # fmt: skip

DECODE_STEP = Answer(reference=decode_step, wrong=WRONG, right=RIGHT)
