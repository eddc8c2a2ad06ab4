"""One layer's attention in lab 12: reference, right programs and wrong programs."""

from __future__ import annotations

import torch

from ..kit import Right, Wrong
from ..lab08.step_wrong import from_zero, one_more_place, turned


class Assembled:
    """The right program in parts, so that a variant replaces one of them."""

    def __call__(self, x, W, n_head, n_kv_head, rotate, attend, cache=None):
        past = self.past(cache)
        q, k, v = self.project(x, W, n_head, n_kv_head)
        q, k, v = self.turn(q, k, v, rotate, past)
        k, v = self.joined(cache, k, v)
        wide = (self.share(t, n_head // n_kv_head) for t in (k, v))
        heads = self.attend(attend, q, *wide, self.mask(x.shape[1], k.shape[2]))
        return self.mix(heads, W["W_O"]), self.kept(k, v, n_head // n_kv_head)

    def past(self, cache):
        return 0 if cache is None else cache[0].shape[2]

    def project(self, x, W, n_head, n_kv_head):
        return (
            self.split(x @ W["W_Q"], n_head),
            self.split(x @ W["W_K"], n_kv_head),
            self.split(x @ W["W_V"], n_kv_head),
        )

    def split(self, x, count):
        return x.unflatten(-1, (count, -1)).transpose(1, 2)

    def turn(self, q, k, v, rotate, past):
        return rotate(q, past), rotate(k, past), v

    def joined(self, cache, k, v):
        if cache is None:
            return k, v
        return torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)

    def share(self, t, group):
        return t.repeat_interleave(group, dim=1)

    def mask(self, new, tokens):
        return torch.ones(new, tokens, dtype=torch.bool).tril(tokens - new)

    def attend(self, attend, q, k, v, mask):
        return attend(q, k, v, mask)

    def mix(self, heads, W_O):
        return heads.transpose(1, 2).flatten(2) @ W_O

    def kept(self, k, v, group):
        return k, v


def variant(**parts):
    """The right program with some of its parts replaced."""
    return type("Variant", (Assembled,), parts)()


def assemble(x, W, n_head, n_kv_head, rotate, attend, cache=None):
    """The reference under the exercise's name and signature."""
    return Assembled()(x, W, n_head, n_kv_head, rotate, attend, cache)


def _by_index(self, t, group):
    return t[:, [h // group for h in range(t.shape[1] * group)]]


def _by_view(self, t, group):
    return t[:, :, None].expand(-1, -1, group, -1, -1).flatten(1, 2)


def _group_by_group(self, attend, q, k, v, mask):
    """Heads one at a time, one call of attend each."""
    return torch.cat(
        [attend(q[:, h : h + 1], k[:, h : h + 1], v[:, h : h + 1], mask) for h in range(q.size(1))],
        dim=1,
    )


def _chunks(self, x, count):
    return torch.stack(x.chunk(count, dim=-1), dim=1)


def _none_for_one(self, new, tokens):
    return None if new == 1 else Assembled.mask(self, new, tokens)


def _by_einsum(x, W, n_head, n_kv_head, rotate, attend, cache=None):
    """Einsum, the pair as a list, the mask by comparing places."""
    q, k, v = (
        torch.einsum("btd,dhe->bhte", x, W[name].view(x.size(-1), count, -1))
        for name, count in (("W_Q", n_head), ("W_K", n_kv_head), ("W_V", n_kv_head))
    )
    past = cache[0].size(2) if cache else 0
    q, k = rotate(q, past), rotate(k, past)
    if cache:
        k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
    places = torch.arange(k.size(2))
    mask = places <= places[past:, None]
    group = n_head // n_kv_head
    wide_k, wide_v = (torch.repeat_interleave(t, group, 1) for t in (k, v))
    heads = attend(q, wide_k, wide_v, mask)
    return torch.einsum("bhte,hed->btd", heads, W["W_O"].view(n_head, -1, x.size(-1))), [k, v]


RIGHT = (
    Right("parts", Assembled()),
    Right("heads_by_index", variant(share=_by_index)),
    Right("heads_by_view", variant(share=_by_view)),
    Right("one_head_at_a_time", variant(attend=_group_by_group)),
    Right("chunks", variant(split=_chunks)),
    Right("no_mask_for_one_token", variant(mask=_none_for_one)),
    Right("einsum", _by_einsum),
    Right("a_lambda", lambda *given: Assembled()(*given)),
    Right("mask_with_four_axes", variant(
        mask=lambda self, new, tokens: Assembled.mask(self, new, tokens)[None, None])),
)  # fmt: skip


def _tiled(self, t, group):
    return t.repeat(1, group, 1, 1)


def _first_for_all(self, t, group):
    return t[:, :1].expand(-1, t.shape[1] * group, -1, -1)


def _by_group_size(self, t, group):
    """The group's size taken for the number of groups."""
    count = t.shape[1] * group
    return t[:, [min(h // t.shape[1], t.shape[1] - 1) for h in range(count)]]


def _twice(self, q, k, v, rotate, past):
    return rotate(rotate(q, past), past), rotate(rotate(k, past), past), v


class _KeptTurnedAgain(Assembled):
    """Kept keys, turned when they came, are turned once more in each step."""

    def turn(self, q, k, v, rotate, past):
        self.rotate = rotate
        return rotate(q, past), k, v

    def joined(self, cache, k, v):
        k, v = Assembled.joined(self, cache, k, v)
        return self.rotate(k, 0), v


class _KeptUnturned(Assembled):
    """Keys are kept as projected, and all of them turned in each step."""

    def turn(self, q, k, v, rotate, past):
        self.rotate = rotate
        return rotate(q, past), k, v

    def share(self, t, group):
        self.count = getattr(self, "count", 0) + 1
        if self.count % 2:  # k comes first
            t = self.rotate(t, 0)
        return super().share(t, group)


class _TurnedBeforeTheSplit(Assembled):
    def __call__(self, x, W, n_head, n_kv_head, rotate, attend, cache=None):
        self.rotate, self.from_place = rotate, self.past(cache)
        return super().__call__(x, W, n_head, n_kv_head, rotate, attend, cache)

    def project(self, x, W, n_head, n_kv_head):
        q, k = (self.rotate(x @ W[name], self.from_place) for name in ("W_Q", "W_K"))
        return (
            self.split(q, n_head),
            self.split(k, n_kv_head),
            self.split(x @ W["W_V"], n_kv_head),
        )

    def turn(self, q, k, v, rotate, past):
        return q, k, v


def _without_cache(self, cache, k, v):
    return k, v


def _repeated_in_the_cache(self, k, v, group):
    return k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)


class _SharedBeforeKept(Assembled):
    """Keys are repeated first, and joined and kept so."""

    def joined(self, cache, k, v):
        return super().joined(cache, k, v)

    def project(self, x, W, n_head, n_kv_head):
        q, k, v = super().project(x, W, n_head, n_kv_head)
        return q, *(t.repeat_interleave(n_head // n_kv_head, 1) for t in (k, v))

    def share(self, t, group):
        return t


class _NewestKept(Assembled):
    def kept(self, k, v, group):
        return k[:, :, -self.new :], v[:, :, -self.new :]

    def mask(self, new, tokens):
        self.new = new
        return super().mask(new, tokens)


class _OwnSoftmax(Assembled):
    """attend is never called."""

    def attend(self, attend, q, k, v, mask):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v


class _GoesOnWithTheLastText(Assembled):
    last = None

    def joined(self, cache, k, v):
        if cache is None and k.shape[2] == 1 and self.fits(k):
            cache = self.last
        self.last = Assembled.joined(self, cache, k, v)
        return self.last

    def fits(self, k):
        return self.last is not None and self.last[0].shape[1::2] == k.shape[1::2]


def _scaled_before(divisor):
    def attend(self, attend, q, k, v, mask):
        return attend(q / divisor(q), k, v, mask)

    return attend


def _square(new, tokens):
    return torch.ones(new, tokens, dtype=torch.bool)


WRONG = (
    Wrong("tile", variant(share=_tiled),
        "The key/value heads are repeated as a whole, so that three become 0 1 2 0 1 2.\n"
        "Neighbouring query heads share one, so the order is 0 0 1 1 2 2."),
    Wrong("first_head_for_all", variant(share=_first_for_all),
        "All query heads read key/value head 0. Query head h reads h // (n_head // n_kv_head)."),
    Wrong("group_size_for_groups", variant(share=_by_group_size),
        "Query head h reads key/value head h // n_kv_head. The divisor is the size of a group,\n"
        "n_head // n_kv_head."),
    Wrong("not_shared", variant(share=lambda self, t, group: t),
        "attend gets fewer heads in k and v than in q. It knows no groups: repeat each key/value\n"
        "head for the query heads that share it."),
    Wrong("keeps_repeated_heads", variant(kept=_repeated_in_the_cache),
        "The outputs of a first pass are right, but what is kept are repeated heads, n_head of\n"
        "them. Keep n_kv_head; the copies are made again in each step."),
    Wrong("repeats_before_it_keeps", _SharedBeforeKept(),
        "The outputs are right, but keys and values are repeated before they are kept: the cache\n"
        "is n_head // n_kv_head times as large as it has to be. Join first, then repeat."),
    Wrong("position_off_by_one", variant(turn=one_more_place),
        "With a cache the new tokens are turned one place too far. Behind `past` kept tokens the\n"
        "next one stands at position past."),
    Wrong("positions_from_one", variant(turn=turned(1, 1)),
        "Every token is turned one place too far, the first of the text too. Scores depend on\n"
        "distances, so they are right, and the kept keys are not: positions count from 0."),
    Wrong("positions_from_zero", variant(turn=from_zero),
        "The new tokens are turned as if they stood at the start of the text. The first of them\n"
        "stands behind all kept ones."),
    Wrong("not_turned", variant(turn=turned(None, None)),
        "Nothing is turned: the layer can't tell where a token stands."),
    Wrong("queries_not_turned", variant(turn=turned(None, 0)),
        "The keys are turned and the queries are not. Both are, or a product says nothing about\n"
        "their distance."),
    Wrong("keys_not_turned", variant(turn=turned(0, None)),
        "The queries are turned and the keys are not. Both are, or a product says nothing about\n"
        "their distance."),
    Wrong("values_turned", variant(turn=turned(0, 0, 0)),
        "The values are turned too. Positions decide who is looked at; a value is handed on as it\n"
        "is."),
    Wrong("turned_twice", variant(turn=_twice),
        "Queries and keys are turned twice, by twice the angle: every distance counts double."),
    Wrong("kept_keys_turned_again", _KeptTurnedAgain(),
        "The kept keys are turned once more in every step. They were turned when they came; only\n"
        "the new ones are to be turned."),
    Wrong("kept_unturned", _KeptUnturned(),
        "The outputs are right, but keys are kept as they were projected and all of them are\n"
        "turned in every step. Keep them turned; then only new ones need it."),
    Wrong("turned_before_the_split", _TurnedBeforeTheSplit(),
        "The whole width is turned before it is cut into heads. Each head's numbers are pairs of\n"
        "its own: cut first, then turn."),
    Wrong("mask_top_left", variant(
        mask=lambda self, new, tokens: _square(new, tokens).tril()),
        "The mask starts in the top left corner: a single new token sees key 0 and nothing else.\n"
        "Its last row belongs to the newest token, which sees every key."),
    Wrong("no_mask", variant(mask=lambda self, new, tokens: _square(new, tokens)),
        "There is no mask. One new token may see all, but of several the first must not see the\n"
        "second."),
    Wrong("mask_none", variant(mask=lambda self, new, tokens: None),
        "There is no mask. One new token may see all, but of several the first must not see the\n"
        "second."),
    Wrong("mask_inverted", variant(
        mask=lambda self, new, tokens: ~_square(new, tokens).tril(tokens - new)),
        "The mask is read the wrong way round. True means: may attend."),
    Wrong("not_itself", variant(
        mask=lambda self, new, tokens: _square(new, tokens).tril(max(tokens - new - 1, 0))),
        "A new token doesn't see itself: the mask ends one key too early."),
    Wrong("mask_of_the_new_alone", variant(
        mask=lambda self, new, tokens: _square(new, new).tril()),
        "The mask has a column for each new token only. It needs one for every key, the kept ones\n"
        "too: [new, seq_k]."),
    Wrong("cache_ignored", variant(joined=_without_cache),
        "The cache that comes in is never used: each step sees its own tokens and nothing before."),
    Wrong("newest_kept", _NewestKept(),
        "Only the new keys and values are returned; what came in before is lost after this step."),
    Wrong("joined_in_front", variant(
        joined=lambda self, cache, k, v: (k, v) if cache is None
        else (torch.cat([k, cache[0]], 2), torch.cat([v, cache[1]], 2))),
        "The new keys stand in front of the kept ones. The mask takes the last columns for the\n"
        "newest tokens, so they belong behind."),
    Wrong("goes_on_with_the_last_text", _GoesOnWithTheLastText(),
        "A call without a cache goes on with the text before: something is remembered between\n"
        "calls. All that is kept is in the pair."),
    Wrong("own_softmax", _OwnSoftmax(),
        "attend is never called: the attention is computed by a softmax of your own. What is put\n"
        "in from outside has to be used, or no kernel can take its place."),
    Wrong("scaled_twice", variant(attend=_scaled_before(lambda q: q.shape[-1] ** 0.5)),
        "The queries are divided by the root of head_dim, and attend does that itself."),
    Wrong("scaled_by_width", variant(
        attend=_scaled_before(lambda q: (q.shape[-1] * q.shape[1]) ** 0.5)),
        "The queries are divided by the root of the whole width. attend scales by itself, with\n"
        "head_dim."),
    Wrong("keys_as_values", variant(
        attend=lambda self, attend, q, k, v, mask: attend(q, k, k, mask)),
        "attend gets the keys in the place of the values."),
    Wrong("direct_split", variant(
        split=lambda self, x, n: x.reshape(x.shape[0], n, x.shape[1], -1)),
        "The width is cut into heads by a direct reshape, which mixes tokens. Cut first, then\n"
        "swap the axes."),
    Wrong("direct_merge", variant(
        mix=lambda self, heads, W_O: heads.reshape(heads.shape[0], heads.shape[2], -1) @ W_O),
        "The heads are joined by a direct reshape, which mixes tokens. Swap the axes first, then\n"
        "join."),
    Wrong("w_o_transposed", variant(
        mix=lambda self, heads, W_O: heads.transpose(1, 2).flatten(2) @ W_O.T),
        "W_O is turned round. It is [n_head * head_dim, d_model] and used as heads @ W_O."),
    Wrong("w_o_forgotten", variant(mix=lambda self, heads, W_O: heads.transpose(1, 2).flatten(2)),
        "W_O is never used: these are the heads side by side."),
    Wrong("detached", variant(joined=lambda self, cache, k, v: Assembled.joined(
        self, None if cache is None else [t.detach() for t in cache], k, v)),
        "The kept keys and values are cut off from the graph, so no gradient reaches the tokens\n"
        "before. Leave out .detach() and no_grad() here."),
    Wrong("pair_swapped", variant(kept=lambda self, k, v, group: (v, k)),
        "The pair is returned as (v, k), and the next step takes it for (k, v)."),
    Wrong("newest_answer_alone", variant(
        mix=lambda self, heads, W_O: Assembled.mix(self, heads[:, :, -1:], W_O)),
        "Only the last new token gets an answer. Every new token does."),
)  # fmt: skip
