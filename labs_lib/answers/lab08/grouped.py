"""Shared heads in lab 08: reference, wrong programs and right programs."""

from __future__ import annotations

import math

import torch

from labs_lib.attention import grouped
from labs_lib.exercises.lab08 import REPEATS

from ..kit import Answer, Right, Wrong


def _plain(share, *, scale=None, weigh=None, hide=None, check=None):
    """Attention after k and v were spread over the query heads by `share(t, n_head, group)`."""

    def program(q, k, v, mask=None):
        n_head, n_kv_head = q.shape[1], k.shape[1]
        (check or _checked)(n_head, n_kv_head)
        k, v = (share(t, n_head, max(n_head // n_kv_head, 1)) for t in (k, v))
        scores = q @ k.mT / (scale(q, k) if scale else math.sqrt(q.shape[-1]))
        scores = (hide or _hidden)(scores, mask)
        return (weigh or _softmax)(scores, mask) @ v

    return program


def _checked(n_head, n_kv_head):
    if n_head % n_kv_head:
        raise ValueError(f"{n_kv_head} key/value heads for {n_head}")


def _softmax(scores, mask):
    return scores.softmax(dim=-1)


def _hidden(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def _neighbours(t, n_head, group):
    """A view: neighbouring query heads see the same head, and nothing is copied yet."""
    return t[:, [min(h // group, t.shape[1] - 1) for h in range(n_head)]]


def _folded(fold=None, unfold=None, mask_rows=None):
    """The queries of a group as rows of one product, with a step replaced."""

    def program(q, k, v, mask=None):
        batch, n_head, seq_q, _ = q.shape
        n_kv_head = k.shape[1]
        _checked(n_head, n_kv_head)
        group = n_head // n_kv_head
        rows = (fold or _by_head)(q, n_kv_head, group)
        scores = rows @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            full = mask.expand(batch, n_head, seq_q, k.shape[2])
            full = (mask_rows or _by_head)(full, n_kv_head, group)
            scores = scores.masked_fill(~full, -math.inf)
        return (unfold or _by_head_again)(scores.softmax(-1) @ v, n_head, seq_q)

    return program


def _by_head(t, n_kv_head, group):
    return t.reshape(t.shape[0], n_kv_head, group * t.shape[2], t.shape[3])


def _by_head_again(out, n_head, seq_q):
    return out.reshape(out.shape[0], n_head, seq_q, -1)


def _by_token(t, n_kv_head, group):
    """Rows token by token, the heads of a group beside one another."""
    return t.unflatten(1, (n_kv_head, group)).transpose(2, 3).flatten(2, 3)


def _by_token_again(out, n_head, seq_q):
    out = out.unflatten(2, (seq_q, -1)).transpose(2, 3)
    return out.flatten(1, 2)


def _interleaved(t, n_kv_head, group):
    """A mask for all heads, each of its rows as often as a group has heads; others as they lie."""
    if t.stride(1):
        return _by_head(t, n_kv_head, group)
    return t[:, :n_kv_head].repeat_interleave(group, 2)


def _dealt_out(t, n_kv_head, group):
    """Head h goes to group h % n_kv_head."""
    return t.unflatten(1, (group, n_kv_head)).transpose(1, 2).flatten(2, 3)


def _loop(q, k, v, mask=None):
    """Head after head; each reads its key/value head where it lies."""
    _checked(q.shape[1], k.shape[1])
    group, outs = q.shape[1] // k.shape[1], []
    for h in range(q.shape[1]):
        scores = q[:, h] @ k[:, h // group].transpose(1, 2) / q.shape[-1] ** 0.5
        if mask is not None:
            own = mask.expand(*q.shape[:3], k.shape[2])[:, h]
            scores = scores.masked_fill(~own, -1e9)
        outs.append(torch.softmax(scores, dim=2) @ v[:, h // group])
    return torch.stack(outs, dim=1)


def _groups_in_a_loop(q, k, v, mask=None, *, dim=1):
    """Group after group, by chunk."""
    if q.size(dim) % k.size(dim):
        raise ValueError("the heads can't be shared evenly")
    full = None if mask is None else mask.expand(*q.shape[:3], k.shape[2])
    masks = [None] * k.size(1) if full is None else full.chunk(k.size(1), 1)
    outs = []
    for own_q, own_k, own_v, own in zip(
        q.chunk(k.size(1), 1), k.unbind(1), v.unbind(1), masks, strict=True
    ):
        scores = own_q.flatten(1, 2) @ own_k.mT / math.sqrt(q.size(3))
        scores = scores.unflatten(1, own_q.shape[1:3])
        if own is not None:
            scores = scores.masked_fill(own.logical_not(), -math.inf)
        outs.append((scores.softmax(3).flatten(1, 2) @ own_v).unflatten(1, own_q.shape[1:3]))
    return torch.cat(outs, dim=1)


def _einsum(q, k, v, mask=None):
    """Einsum over [n_kv_head, group], scaled queries, a large negative fill."""
    n_kv_head = k.shape[1]
    _checked(q.shape[1], n_kv_head)
    rows = q.unflatten(1, (n_kv_head, -1)) * q.shape[-1] ** -0.5
    scores = torch.einsum("bkgid,bkjd->bkgij", rows, k)
    if mask is not None:
        full = mask.expand(*q.shape[:3], k.shape[2]).unflatten(1, (n_kv_head, -1))
        scores = torch.where(full, scores, -1e9)
    return torch.einsum("bkgij,bkjd->bkgid", scores.softmax(-1), v).flatten(1, 2)


def _float64_inside(q, k, v, mask=None):
    return _folded()(q.double(), k.double(), v.double(), mask).to(q.dtype)


def _by_broadcasting(q, k, v, mask=None):
    """Broadcast axes; the product copies k and v to make them equal."""
    n_kv_head = k.shape[1]
    _checked(q.shape[1], n_kv_head)
    rows = q.unflatten(1, (n_kv_head, -1))  # [batch, n_kv_head, group, seq_q, head_dim]
    scores = rows @ k.unsqueeze(2).mT / math.sqrt(q.shape[-1])
    scores = _hidden(scores.flatten(1, 2), mask).unflatten(1, (n_kv_head, -1))
    return (scores.softmax(-1) @ v.unsqueeze(2)).flatten(1, 2)


def _mean_of_queries(q, k, v, mask=None):
    _checked(q.shape[1], k.shape[1])
    q = q.unflatten(1, (k.shape[1], -1)).mean(2)
    if mask is not None and mask.ndim == 4:
        mask = mask[:, : k.shape[1]]
    scores = _hidden(q @ k.mT / math.sqrt(q.shape[-1]), mask)
    return scores.softmax(-1) @ v


def _values_tiled(q, k, v, mask=None):
    _checked(q.shape[1], k.shape[1])
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat(1, group, 1, 1)
    return _hidden(q @ k.mT / math.sqrt(q.shape[-1]), mask).softmax(-1) @ v


def _keys_tiled(q, k, v, mask=None):
    _checked(q.shape[1], k.shape[1])
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, group, 1, 1), v.repeat_interleave(group, 1)
    return _hidden(q @ k.mT / math.sqrt(q.shape[-1]), mask).softmax(-1) @ v


def _asserts(n_head, n_kv_head):
    assert n_head % n_kv_head == 0


RIGHT = (
    Right("loop_over_heads", _loop),
    Right("loop_over_groups", _groups_in_a_loop),
    Right("einsum", _einsum),
    Right("rows_token_by_token", _folded(_by_token, _by_token_again, _by_token)),
    Right("rows_head_by_head", _folded()),
    Right("float64_inside", _float64_inside),
    Right("a_lambda", lambda q, k, v, mask=None: _folded()(q, k, v, mask)),
)

WRONG = (
    Wrong("tile", _plain(lambda t, n, group: t.repeat(1, group, 1, 1)),
        "The shared heads are tiled: 0, 1, 2, 0, 1, 2. Query head h uses key/value head\n"
        "h // (n_head // n_kv_head), so neighbours share: 0, 0, 1, 1, 2, 2."),
    Wrong("values_tiled", _values_tiled,
        "The keys are shared by neighbours and the values are tiled. A query head needs keys and\n"
        "values of the same key/value head."),
    Wrong("keys_tiled", _keys_tiled,
        "The values are shared by neighbours and the keys are tiled. A query head needs keys and\n"
        "values of the same key/value head."),
    Wrong("queries_dealt_out", _folded(_dealt_out, None, _dealt_out),
        "Query head h is sent to group h % n_kv_head, and the answers come out in another order\n"
        "of heads. Groups are blocks of neighbours."),
    Wrong("group_size_for_n_kv_head", _plain(lambda t, n, group: t[:, [
        min(h // t.shape[1], t.shape[1] - 1) for h in range(n)]]),
        "n_kv_head is taken for the size of a group. Six heads that share two make groups of\n"
        "three: n_head // n_kv_head heads each."),
    Wrong("first_head_for_all", _plain(lambda t, n, group: t[:, :1].expand(-1, n, -1, -1)),
        "All query heads use key/value head 0, as if n_kv_head were 1. Each group has its own."),
    Wrong("mean_head_for_all", _plain(
        lambda t, n, group: t.mean(1, keepdim=True).expand(-1, n, -1, -1)),
        "All query heads use the mean of the key/value heads. Each group has its own head."),
    Wrong("queries_averaged", _mean_of_queries,
        "The queries of a group are averaged, so n_kv_head heads come out. All n_head queries\n"
        "stay apart; they only meet the same keys."),
    Wrong("answers_token_by_token", _folded(_by_token, None, _by_token),
        "The queries of a group are put under one another token by token and the answers are read\n"
        "head by head. Undo the same order that you made."),
    Wrong("mask_of_other_rows", _folded(None, None, _by_token),
        "The mask's rows stand in another order than the queries': they are laid token by token,\n"
        "and the queries head by head."),
    Wrong("mask_rows_one_by_one", _folded(None, None, _interleaved),
        "Each row of the mask stands several times in a row, once for each head of a group. The\n"
        "queries lie head by head, so the mask as a whole has to come again."),
    Wrong("mask_ignored", _plain(_neighbours, hide=lambda s, mask: s),
        "The mask changes nothing: masked keys still get weight."),
    Wrong("mask_inverted", _plain(_neighbours, hide=lambda s, mask: (
        s if mask is None else s.masked_fill(mask, -1e9))),
        "The mask is read the wrong way round. True means: may attend."),
    Wrong("mask_after_softmax", _plain(_neighbours, hide=lambda s, mask: s,
        weigh=lambda s, mask: s.softmax(-1) * (1.0 if mask is None else mask)),
        "The mask comes after the softmax: the masked weights are gone, and what is left no\n"
        "longer sums to 1. Mask the scores."),
    Wrong("scale_by_width", _plain(_neighbours, scale=lambda q, k: (
        math.sqrt(q.shape[1] * q.shape[-1]))),
        "The scores are divided by the root of the whole width. A head's query and key have only\n"
        "head_dim numbers."),
    Wrong("no_scale", _plain(_neighbours, scale=lambda q, k: 1.0),
        "The scores are not divided at all."),
    Wrong("softmax_over_queries", _plain(_neighbours, weigh=lambda s, mask: (
        s.softmax(-2).nan_to_num())),
        "The softmax runs over the queries. Each query's row of weights over the keys sums to 1."),
    Wrong("softmax_over_heads", _plain(_neighbours, weigh=lambda s, mask: (
        s.softmax(1).nan_to_num())),
        "The softmax runs over the heads, so that they compete with one another. Sharing keys\n"
        "doesn't mean sharing weights."),
    Wrong("not_refused", _plain(_neighbours, check=lambda n_head, n_kv_head: None),
        "An n_kv_head that doesn't divide n_head goes through without an error: the last heads\n"
        "share what is left, or nothing comes back. Refuse it with a ValueError."),
    Wrong("asserts", _plain(_neighbours, check=_asserts),
        "The test is right, but it is an assert, and `python -O` leaves asserts out. Raise a\n"
        "ValueError, which is always there."),
    Wrong("repeat_interleave", _plain(lambda t, n, group: t.repeat_interleave(group, 1)), REPEATS),
    Wrong("expanded", _plain(lambda t, n, group: (
        t.unsqueeze(2).expand(-1, -1, group, -1, -1).flatten(1, 2))), REPEATS),
    Wrong("broadcast_product", _by_broadcasting, REPEATS),
)  # fmt: skip

GROUPED = Answer(reference=grouped.grouped_query_attention, wrong=WRONG, right=RIGHT)
