"""Answers to flash_gqa: which head reads which, and without copies."""

from __future__ import annotations

import torch

from labs_lib.attention.flash import flash_attention
from labs_lib.exercises.lab11_torch import COPIES_HEADS

from ..kit import Answer, Right, Wrong
from .parts import changed

_tiles = changed()


def flash_gqa(q, k, v, block_q=16, block_k=16):
    """The reference under the exercise's name and signature."""
    return flash_attention(q, k, v, block_q=block_q, block_k=block_k, return_lse=True)


def _refuse(q, k):
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"{k.shape[1]} key/value heads can't be shared by {q.shape[1]} heads")


def _with(share, refuse=_refuse, **parts):
    """k and v brought to n_head heads by `share(t, n_head)`."""

    def program(q, k, v, block_q=16, block_k=16):
        refuse(q, k)
        return changed(**parts)(q, *(share(t, q.shape[1]) for t in (k, v)), block_q, block_k)

    return program


def _neighbours(t, n_head):
    return t.repeat_interleave(n_head // t.shape[1], 1)


def _expanded(t, n_head):
    """A view at first; joining its axes copies."""
    group = n_head // t.shape[1]
    return t[:, :, None].expand(-1, -1, group, -1, -1).flatten(1, 2)


def _dealt(t, n_head):
    return t.repeat(1, n_head // t.shape[1], 1, 1)


def _first(t, n_head):
    return t[:, :1].expand(-1, n_head, -1, -1)


def _mean(t, n_head):
    return t.mean(1, keepdim=True).expand(-1, n_head, -1, -1)


def _reversed(t, n_head):
    return _neighbours(t.flip(1), n_head)


def _by_number(t, n_head):
    """h // n_kv_head in the place of h // group."""
    return t[:, [min(h // t.shape[1], t.shape[1] - 1) for h in range(n_head)]]


def _remainder(t, n_head):
    return t[:, [h % (n_head // t.shape[1]) % t.shape[1] for h in range(n_head)]]


def _only_values(q, k, v, block_q=16, block_k=16):
    _refuse(q, k)
    return _tiles(q, _dealt(k, q.shape[1]), _neighbours(v, q.shape[1]), block_q, block_k)


def _too_lax(q, k):
    if k.shape[1] > q.shape[1]:
        raise ValueError("too many key/value heads")


def _cut_to_fit(q, k, v, block_q=16, block_k=16):
    group = -(-q.shape[1] // k.shape[1])
    k, v = (t.repeat_interleave(group, 1)[:, : q.shape[1]] for t in (k, v))
    return _tiles(q, k, v, block_q, block_k)


def _asserts(q, k, v, block_q=16, block_k=16):
    assert q.shape[1] % k.shape[1] == 0, "can't be shared"
    return flash_gqa(q, k, v, block_q, block_k)


def _as_rows_unrefused(q, k, v, block_q=16, block_k=16):
    """All queries of a group as rows of one product; nothing is looked at first."""
    rows = q.unflatten(1, (k.shape[1], -1)).flatten(2, 3)  # [batch, n_kv_head, group * seq_q, d]
    out, lse = _tiles(rows, k, v, block_q, block_k)
    back = (-1, q.shape[2])
    return out.unflatten(2, back).flatten(1, 2), lse.unflatten(2, back).flatten(1, 2)


def _as_rows(q, k, v, block_q=16, block_k=16):
    _refuse(q, k)
    return _as_rows_unrefused(q, k, v, block_q, block_k)


def _mixed_rows(q, k, v, block_q=16, block_k=16):
    """As rows, and back in the wrong order."""
    _refuse(q, k)
    rows = q.unflatten(1, (k.shape[1], -1)).transpose(2, 3).flatten(2, 3)
    out, lse = _tiles(rows, k, v, block_q, block_k)
    back = (-1, q.shape[2])
    return out.unflatten(2, back).flatten(1, 2), lse.unflatten(2, back).flatten(1, 2)


def _mixed_on_the_way_back(q, k, v, block_q=16, block_k=16):
    _refuse(q, k)
    rows = q.unflatten(1, (k.shape[1], -1)).flatten(2, 3)
    back = (q.shape[2], -1)
    return [
        part.unflatten(2, back).transpose(2, 3).flatten(1, 2)
        for part in _tiles(rows, k, v, block_q, block_k)
    ]


def _straight(q, k, v, block_q=16, block_k=16):
    _refuse(q, k)
    return _tiles(q, k, v, block_q, block_k)


def _left_joined(q, k, v, block_q=16, block_k=16):
    _refuse(q, k)
    return _tiles(q.unflatten(1, (k.shape[1], -1)).flatten(2, 3), k, v, block_q, block_k)


def _lse_left_joined(q, k, v, block_q=16, block_k=16):
    return _as_rows(q, k, v, block_q, block_k)[0], _left_joined(q, k, v, block_q, block_k)[1]


def _output_left_joined(q, k, v, block_q=16, block_k=16):
    return _left_joined(q, k, v, block_q, block_k)[0], _as_rows(q, k, v, block_q, block_k)[1]


def _left_apart(q, k, v, block_q=16, block_k=16):
    made = _left_joined(q, k, v, block_q, block_k)
    return [part.unflatten(2, (-1, q.shape[2])) for part in made]


def _head_by_head(q, k, v, block_q=16, block_k=16):
    if q.shape[1] % k.shape[1] != 0:
        raise ValueError(q.shape, k.shape)
    group = q.shape[1] // k.shape[1]
    made = []
    for h in range(q.shape[1]):
        one = slice(h // group, h // group + 1)
        made.append(_tiles(q[:, h : h + 1], k[:, one], v[:, one], block_q, block_k))
    return [torch.cat(part, 1) for part in zip(*made, strict=True)]


def _one_of_each_group_at_a_time(q, k, v, block_q=16, block_k=16):
    """Query head g of every group in one call, so that q has as many heads as k and v."""
    _refuse(q, k)
    group = q.shape[1] // k.shape[1]
    made = [_tiles(q[:, g::group], k, v, block_q, block_k) for g in range(group)]
    out, lse = (torch.stack(part, 2).flatten(1, 2) for part in zip(*made, strict=True))
    return out, lse


FLASH_GQA = Answer(
    reference=flash_gqa,
    wrong=(
        Wrong(
            "dealt_out",
            _with(_dealt),
            "Heads are dealt out like cards: query head h reads head h % n_kv_head. Neighbours\n"
            "share: h // (n_head // n_kv_head).",
        ),
        Wrong(
            "divided_by_the_number_of_heads",
            _with(_by_number),
            "Query head h reads head h // n_kv_head. The divisor is how many share one head,\n"
            "n_head // n_kv_head.",
        ),
        Wrong(
            "remainder_of_the_group",
            _with(_remainder),
            "Query head h reads a head found by a remainder of the group's size. Neighbours share\n"
            "one head: the quotient counts.",
        ),
        Wrong(
            "first_head_for_all",
            _with(_first),
            "All query heads read key/value head 0. That is right with one such head only.",
        ),
        Wrong(
            "mean_of_the_heads",
            _with(_mean),
            "The key/value heads were averaged, and all query heads read their mean.",
        ),
        Wrong(
            "from_the_last_on",
            _with(_reversed),
            "The key/value heads are taken from the last on.",
        ),
        Wrong(
            "only_values_shared_rightly",
            _only_values,
            "The values come from the right heads, the keys from others. Both are shared alike.",
        ),
        Wrong(
            "rows_mixed_up",
            _mixed_rows,
            "The queries of a group became rows, and on the way back group and query were taken\n"
            "for each other. What was joined as (group, rows) is cut as (group, rows).",
        ),
        Wrong(
            "rows_mixed_up_on_the_way_back",
            _mixed_on_the_way_back,
            "The queries of a group became rows as (group, rows), and on the way back they are\n"
            "cut as (rows, group). Cut them as they were joined.",
        ),
        Wrong(
            "heads_meet_in_one_product",
            _straight,
            "n_head and n_kv_head meet in one product, and torch can't line them up. Make the\n"
            "queries of a group rows first, or take one key/value head at a time.",
        ),
        Wrong(
            "rows_left_joined",
            _left_joined,
            "The group's rows are still joined: a head of the result has group * seq_q queries,\n"
            "and there are n_kv_head of them. The way back is missing, for both results.",
        ),
        Wrong(
            "rows_of_lse_left_joined",
            _lse_left_joined,
            "The output found its way back, and in lse the group's rows are still joined.",
        ),
        Wrong(
            "rows_of_the_output_left_joined",
            _output_left_joined,
            "lse found its way back, and in the output the group's rows are still joined.",
        ),
        Wrong(
            "group_left_apart",
            _left_apart,
            "The group is still an axis of its own. Joined with n_kv_head it gives n_head.",
        ),
        Wrong(
            "not_refused",
            _as_rows_unrefused,
            "Head counts that don't divide end in an error of torch's, somewhere inside. Test\n"
            "them first, and raise a ValueError that says so.",
        ),
        Wrong(
            "cut_to_fit",
            _cut_to_fit,
            "Head counts that don't divide are made to fit, and nobody is told. Refuse them.",
        ),
        Wrong(
            "refuses_too_many_only",
            _with(
                lambda t, n: t[:, [h * t.shape[1] // n for h in range(n)]], refuse=_too_lax),
            "Three query heads for two key/value heads go through, and 3 isn't a multiple of 2.\n"
            "Refuse what doesn't divide.",
        ),
        Wrong(
            "asserts",
            _asserts,
            "The test is right, but it is an assert, and `python -O` leaves asserts out. Raise a\n"
            "ValueError.",
        ),
        Wrong(
            "no_scale",
            _with(_neighbours, scale=lambda d: 1.0),
            "The scores are not divided by the root of head_dim.",
        ),
        Wrong(
            "o_not_rescaled",
            _with(_neighbours, factor_o=lambda m, n: torch.ones_like(m)),
            "o is never rescaled, only l is. Both are sums of exp(score - m).",
        ),
        Wrong("copied", _with(_neighbours), COPIES_HEADS),
        Wrong("expanded_and_joined", _with(_expanded), COPIES_HEADS),
    ),
    right=(
        Right("rows_of_one_product", _as_rows),
        Right("head_by_head", _head_by_head),
        Right("one_of_each_group_at_a_time", _one_of_each_group_at_a_time),
    ),
)  # fmt: skip
