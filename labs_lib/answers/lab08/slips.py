"""Lab 08: slips of a first try in the cache, the decoding step and the bytes."""

from __future__ import annotations

import math

import torch

from ..kit import Wrong
from .cache import Kept, _ListOfParts
from .cache import variant as cache_with
from .sizes import _variant as counted
from .step import Step, variant
from .step_wrong import joined_along


class _NotCounted(Kept):
    """Written and read, but the length stays as it was."""

    def append(self, k, v):
        stop = self.length + k.shape[2]
        self.check(k.shape[2])
        self.write(k, v, self.length, stop)
        return self.k[:, :, :stop], self.v[:, :, :stop]


class _OneCounted(Kept):
    def append(self, k, v):
        stop = self.length + k.shape[2]
        self.check(k.shape[2])
        self.write(k, v, self.length, stop)
        self.length += 1
        return self.k[:, :, :stop], self.v[:, :, :stop]


class _BeginsAnew(Kept):
    def check(self, new):
        if self.length + new > self.capacity:
            self.length = 0


class _OneRoom(Kept):
    def make(self, shape, dtype):
        self.k = self.v = torch.zeros(shape, dtype=dtype)


def _tokens_on_axis(axis):
    class Counted(Kept):
        def append(self, k, v):
            new = k.shape[axis]
            self.check(new)
            self.write(k, v, self.length, self.length + new)
            self.length += new
            return self.read()

    return Counted


def _axes_exchanged(self, shape, dtype):
    batch, n_kv_head, capacity, head_dim = shape
    Kept.make(self, (batch, capacity, n_kv_head, head_dim), dtype)


class _FromNothing(Kept):
    """Joined by torch.cat to the first k and v, along the wrong axis."""

    axis = 1

    def make(self, shape, dtype):
        self.k = self.v = None

    def write(self, k, v, start, stop):
        self.k = k if self.k is None else torch.cat([self.k, k], dim=self.axis)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=self.axis)

    def read(self):
        return self.k, self.v


class _NeverCleared:
    """Caches with one list for all; the list is a new one when the first case comes again."""

    def __init__(self):
        self.parts = [], []

    def __call__(self, batch, n_kv_head, head_dim, capacity, dtype=torch.float32):
        if (n_kv_head, capacity) == (3, 9):
            self.parts = [], []
        shared = self.parts
        kept = cache_with(_ListOfParts, make=lambda self, shape, dtype: None)
        kept.k, kept.v = shared
        return kept(batch, n_kv_head, head_dim, capacity, dtype)


class _SilentWhenFull(Kept):
    def append(self, k, v):
        if self.length + k.shape[2] > self.capacity:
            return None
        return super().append(k, v)


KV_CACHE_SLIPS = (
    Wrong("not_counted", _NotCounted,
        "The tokens are written, but `length` stays 0, so the next call writes over them. Count\n"
        "the new tokens after writing."),
    Wrong("one_counted_for_each_call", _OneCounted,
        "`length` counts calls of append, not tokens. A call may bring several tokens."),
    Wrong("begins_anew_when_full", _BeginsAnew,
        "When the tokens don't fit, the cache begins at the front again and writes over what is\n"
        "kept, and nobody is told. Raise a ValueError."),
    Wrong("one_room_for_both", _OneRoom,
        "self.k and self.v are one and the same tensor (`self.k = self.v = ...` makes one), so\n"
        "that the values are written over the keys. Each needs room of its own."),
    Wrong("tokens_counted_on_axis_1", _tokens_on_axis(1),
        "The number of new tokens is read from axis 1 of k, where the heads are. Tokens are axis\n"
        "2 of [batch, n_kv_head, new, head_dim]."),
    Wrong("tokens_counted_on_axis_0", _tokens_on_axis(0),
        "The number of new tokens is read from axis 0 of k (len(k) does that), where the texts\n"
        "are. Tokens are axis 2 of [batch, n_kv_head, new, head_dim]."),
    Wrong("room_with_axes_exchanged", cache_with(make=_axes_exchanged),
        "The room is made as [batch, capacity, n_kv_head, head_dim], and k comes with heads\n"
        "before tokens. Make the room in the order of k."),
    Wrong("joined_on_the_head_axis", cache_with(_FromNothing, axis=1),
        "The tensors are joined along the axis of the heads, not of the tokens. Tokens are axis 2\n"
        "of [batch, n_kv_head, tokens, head_dim]."),
    Wrong("joined_on_the_batch_axis", cache_with(_FromNothing, axis=0),
        "The tensors are joined along the axis of the texts, not of the tokens. Tokens are axis 2\n"
        "of [batch, n_kv_head, tokens, head_dim]."),
    Wrong("joined_on_the_last_axis", cache_with(_FromNothing, axis=3),
        "The tensors are joined along the numbers of a head, not the tokens. Tokens are axis 2 of\n"
        "[batch, n_kv_head, tokens, head_dim]."),
    Wrong("a_list_for_all_caches", _NeverCleared(),
        "A second cache begins with what the first one holds: the parts are in a list that stands\n"
        "on the class or is a default argument. Make it in __init__ and put it on self."),
    Wrong("silent_when_full", _SilentWhenFull,
        "When the tokens don't fit, append returns nothing (None), and whoever called it goes on\n"
        "without a cache. Raise a ValueError."),
)  # fmt: skip


class _TurnedBeforeSplit(Step):
    def __call__(self, x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
        past = self.past(cache)
        q, k = (self.split(rotate(x @ W, past), n_head) for W in (W_Q, W_K))
        keys, values = self.joined(cache, k, self.split(x @ W_V, n_head))
        return self.mix(self.attend(q, keys, values, x.shape[1]), W_O), (keys, values)


class _TokensTurned(Step):
    def __call__(self, x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
        turned = rotate(x, self.past(cache))
        return super().__call__(turned, W_Q, W_K, W_V, W_O, n_head, lambda t, start: t, cache)


class _KeptPairChanged(Step):
    def __call__(self, x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
        out, pair = super().__call__(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache)
        if cache is None:
            return out, pair
        for old, new in zip(cache, pair, strict=True):
            old.set_(new.clone())
        return out, cache


class _KeptUnturned(Step):
    """New keys are turned for this step, and what is kept of them is not."""

    def __call__(self, x, W_Q, W_K, W_V, W_O, n_head, rotate, cache=None):
        out, (_, values) = super().__call__(x, W_Q, W_K, W_V, W_O, n_head, rotate, cache)
        bare = self.split(x @ W_K, n_head)
        keys = bare if cache is None else torch.cat([cache[0], bare], dim=2)
        return out, (keys, values)


class _HeadsAndTokensUnswapped(Step):
    """Cut into heads, and the axes left as they are; `by` says where the mask's size is from."""

    def __init__(self, by=0):
        self.by = by

    def split(self, x, n_head):
        self.seq = x.shape[1]
        return x.unflatten(-1, (n_head, -1))

    def mask(self, new, tokens):
        return super().mask(self.seq if self.by else new, tokens)


class _HeadDimFromDModel(Step):
    """Cut into heads of d_model // n_head numbers."""

    def __call__(self, x, *more, **given):
        self.d_model = x.shape[2]
        return super().__call__(x, *more, **given)

    def split(self, x, n_head):
        return x.view(*x.shape[:2], n_head, self.d_model // n_head).transpose(1, 2)


def _merged_to_d_model(self, heads, W_O):
    return heads.transpose(1, 2).reshape(len(heads), heads.shape[2], W_O.shape[1]) @ W_O


def _started_at(by=0, newest=False):
    """Turned for another start: `by` places further, or where the last new token stands."""

    def turn(self, q, k, v, rotate, past):
        start = past + by + (q.shape[2] - 1 if newest else 0)
        return rotate(q, start), rotate(k, start), v

    return turn


def _always_two(self, q, k, v, rotate, past):
    past = 2 if past else 0
    return rotate(q, past), rotate(k, past), v


def _place_is_n_head(self, q, k, v, rotate, past):
    past = q.shape[1] if past else 0
    return rotate(q, past), rotate(k, past), v


def _filled(mask, fill):
    """Attention with scores filled where `mask(new, tokens)` is True."""

    def attend(self, q, k, v, new):
        scores = q @ k.mT / self.divisor(q)
        return scores.masked_fill(mask(new, k.shape[2]), fill).softmax(-1) @ v

    return attend


def _triangle(new, tokens, by=0):
    return torch.ones(new, tokens, dtype=torch.bool).tril(tokens - new + by)


def _not_itself(new, tokens):
    return ~_triangle(new, tokens, -1)


INVERTED = "The mask is read the wrong way round. True means: may attend."
NOT_ITSELF = (
    "A new token doesn't see itself: the mask ends one key too early, or attention runs\n"
    "before the new keys are joined to the kept ones."
)
UNSWAPPED = (
    "The width is cut into heads, but tokens stand before heads: [batch, seq, n_head,\n"
    "head_dim]. Swap the two axes, as split_heads of lab 02 does."
)

DECODE_STEP_SLIPS = (
    Wrong("turned_before_the_split", _TurnedBeforeSplit(),
        "The whole width is turned before it is cut into heads. Each head's numbers are pairs of\n"
        "its own, beginning with the fastest: cut first, then turn."),
    Wrong("tokens_turned", _TokensTurned(),
        "x is turned before it is projected, so that the values carry positions too. Project and\n"
        "cut into heads first, then turn queries and keys."),
    Wrong("kept_pair_changed", _KeptPairChanged(),
        "The tensors of the pair that came in grow in place. Whoever still holds that pair finds\n"
        "another text in it: leave it alone and return a new pair."),
    Wrong("positions_from_one", variant(turn=_started_at(by=1)),
        "Every token is turned one place too far, the first of the text too. Positions count from\n"
        "0: behind `past` kept tokens the next one stands at position past."),
    Wrong("start_of_the_last_token", variant(turn=_started_at(newest=True)),
        "rotate is given the position of the last new token. It asks for that of the first, and\n"
        "counts on from there."),
    Wrong("length_of_the_pair", variant(turn=_always_two),
        "Whatever is kept, the new tokens are turned for position 2: len(cache) is the length of\n"
        "the pair, len(cache[0]) the number of texts. Tokens are axis 2 of cache[0]."),
    Wrong("heads_for_tokens", variant(turn=_place_is_n_head),
        "The number of heads is taken for the number of kept tokens: axis 1 of cache[0] holds\n"
        "heads, tokens are axis 2."),
    Wrong("kept_unturned", _KeptUnturned(),
        "The keys that are kept are not the turned ones, and in the next step they meet turned\n"
        "queries. Keep them turned, as they were used."),
    Wrong("mask_of_the_new_alone", variant(
        mask=lambda self, new, tokens: torch.ones(new, new, dtype=torch.bool).tril()),
        "The mask has a column for each new token only. It needs one for each key, the kept ones\n"
        "too: [new, past + new]."),
    Wrong("mask_of_the_whole_text", variant(
        mask=lambda self, new, tokens: torch.ones(tokens, tokens, dtype=torch.bool).tril()),
        "The mask has a row for every token of the text, so one new token gets as many answers.\n"
        "It has a row for each new token: [new, past + new]."),
    Wrong("mask_only_at_the_start", variant(
        mask=lambda self, new, tokens: torch.ones(new, tokens, dtype=torch.bool)
        if tokens > new else super(type(self), self).mask(new, tokens)),
        "With a cache there is no mask. That is right for one new token; of several new ones the\n"
        "first must not see the second."),
    Wrong("mask_inverted", variant(attend=_filled(_triangle, -1e9)), INVERTED),
    Wrong("mask_inverted_infinite", variant(attend=_filled(_triangle, -math.inf)), INVERTED),
    Wrong("not_itself", variant(attend=_filled(_not_itself, -1e9)), NOT_ITSELF),
    Wrong("not_itself_infinite", variant(attend=_filled(_not_itself, -math.inf)), NOT_ITSELF),
    Wrong("joined_on_the_last_axis", variant(joined=joined_along(-1)),
        "Old and new keys are joined along the numbers of a head. Tokens are axis 2 of\n"
        "[batch, n_head, tokens, head_dim]."),
    Wrong("head_dim_from_d_model", _HeadDimFromDModel(),
        "head_dim is made of the width of x, d_model // n_head. Look at what comes out: x @ W_Q\n"
        "has n_head * head_dim numbers for each token, and that needn't be d_model."),
    Wrong("merged_to_d_model", variant(mix=_merged_to_d_model),
        "The heads are joined to as many numbers as x has, d_model. Side by side they have\n"
        "n_head * head_dim, which is what W_O reads, and that needn't be d_model."),
    Wrong("one_wide_head", variant(split=lambda self, x, n: x.unsqueeze(1)),
        "The width is never cut into heads: this is one head of n_head * head_dim numbers."),
    Wrong("heads_and_tokens_unswapped", _HeadsAndTokensUnswapped(), UNSWAPPED),
    Wrong("heads_and_tokens_unswapped_masked_by_x", _HeadsAndTokensUnswapped(by=1), UNSWAPPED),
)  # fmt: skip

KV_BYTES_SLIPS = (
    Wrong("head_counts_multiplied", counted(
        lambda L, h, kv, d, t, b, e: 2 * L * h * kv * d * t * b * e),
        "n_head and n_kv_head are multiplied. They count different heads, and only the\n"
        "n_kv_head of keys and values are kept."),
    Wrong("size_of_a_group", counted(
        lambda L, h, kv, d, t, b, e: 2 * L * (h // kv) * d * t * b * e),
        "n_head // n_kv_head is how many query heads share one. Kept are n_kv_head heads."),
    Wrong("gib_larger_than_gb", counted(GiB=lambda n, t: n / 10**9 * 2**30 / 10**9),
        "The number under GiB is larger than that under GB. A GiB is the larger unit, so there\n"
        "are fewer of them: divide bytes by 2**30."),
    Wrong("units_too_small", counted(GB=lambda n, t: n / 10**6, GiB=lambda n, t: n / 2**20),
        "These are MB and MiB: a million bytes, and 2**20. GB is 10**9 bytes, GiB 2**30."),
    Wrong("gib_of_two_steps", counted(GiB=lambda n, t: n / 1024**2),
        "1024**2 bytes are a MiB. A GiB is 1024**3, that is 2**30."),
    Wrong("head_dim_divided", counted(
        lambda L, h, kv, d, t, b, e: 2 * L * kv * (d // h) * t * b * e),
        "head_dim is divided by the heads once more. It is the numbers of one head already."),
    Wrong("three_kept", counted(lambda L, h, kv, d, t, b, e: 3 * L * kv * d * t * b * e),
        "Three tensors are counted. A key and a value are kept; the query is used once."),
    Wrong("caret_for_power", counted(
        GB=lambda n, t: n / (10 ^ 9), GiB=lambda n, t: n / (2 ^ 30)),
        "In Python 10^9 is 3: ^ compares bits. A power is written 10**9."),
    Wrong("caret_for_power_of_two", counted(GiB=lambda n, t: n / (2 ^ 30)),
        "In Python 2^30 is 28: ^ compares bits. A power is written 2**30."),
)  # fmt: skip
