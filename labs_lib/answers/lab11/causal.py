"""Answers to flash_causal_skip: which pairs are hidden, and which tiles."""

from __future__ import annotations

import math

import torch

from labs_lib.attention.flash import flash_attention
from labs_lib.attention.online_softmax import attention_one_pass
from labs_lib.exercises.lab11_torch import SKIPS_NOTHING

from ..kit import Answer, Right, Wrong
from ..lab10.parts import MAXIMUM_OVER_HIDDEN
from .parts import INF, all_keys, causal, until_the_last_seen


def flash_causal_skip(q, k, v, block_q=16, block_k=16):
    """The reference under the exercise's name and signature."""
    return flash_attention(q, k, v, causal=True, block_q=block_q, block_k=block_k, return_lse=True)


def _whole_tiles(q, k, v, block_q=16, block_k=16):
    """A tile counts as visible or hidden as a whole."""
    return causal(visible=lambda i, j, n, m: torch.ones(1, 1, dtype=torch.bool))(
        q, k, v, block_q, block_k
    )


def _cut_tiles_left_out(start, rows, seq_q, seq_k):
    return max(0, min(seq_k, start + 1 + seq_k - seq_q))


def _to_the_first_seen(q, k, v, block_q=16, block_k=16):
    return causal(end=_cut_tiles_left_out)(q, k, v, block_q, block_k)


def _whole_blocks_only(q, k, v, block_q=16, block_k=16):
    def end(start, rows, seq_q, seq_k):
        return max(0, _cut_tiles_left_out(start, rows, seq_q, seq_k)) // block_k * block_k

    return causal(end=end)(q, k, v, block_q, block_k)


def _one_key_early(q, k, v, block_q=16, block_k=16):
    def end(start, rows, seq_q, seq_k):
        return max(0, until_the_last_seen(start, rows, seq_q, seq_k) - 1)

    return causal(end=end)(q, k, v, block_q, block_k)


def _one_key_early_for_full_tiles(q, k, v, block_q=16, block_k=16):
    """A short last tile is taken for a full one, and its end is right."""

    def end(start, rows, seq_q, seq_k):
        return max(0, min(seq_k, start + block_q - 1 + seq_k - seq_q))

    return causal(end=end)(q, k, v, block_q, block_k)


def _keys_cut(end):
    """Each tile of queries gets the keys before `end(i, block_q, n, m)` and walks over them."""

    def program(q, k, v, block_q=16, block_k=16):
        n, m = q.shape[2], k.shape[2]
        visible = torch.ones(n, m, dtype=torch.bool).tril(m - n)
        parts = []
        for start in range(0, n, block_q):
            rows, last = slice(start, start + block_q), max(0, end(start, block_q, n, m))
            parts.append(attention_one_pass(
                q[:, :, rows], k[:, :, :last], v[:, :, :last], visible[rows, :last], block_k
            ))  # fmt: skip
        return [torch.cat(part, 2) for part in zip(*parts, strict=True)]

    return program


def _by_numbers_of_tiles(q, k, v, block_q=16, block_k=16):
    def end(start, rows, seq_q, seq_k):
        return min(seq_k, (start // block_q + 1) * block_k)

    return causal(end=end)(q, k, v, block_q, block_k)


def _by_mask(q, k, v, block_q=16, block_k=16):
    """Each tile of queries with a mask of its own, over the keys that it sees."""
    n, m = q.shape[2], k.shape[2]
    visible = torch.ones(n, m, dtype=torch.bool).tril(m - n)
    parts = []
    for start in range(0, n, block_q):
        rows = slice(start, min(start + block_q, n))
        end = max(0, min(m, rows.stop + m - n))
        parts.append(attention_one_pass(
            q[:, :, rows], k[:, :, :end], v[:, :, :end], visible[rows, :end], block_k
        ))  # fmt: skip
    return [torch.cat(part, 2) for part in zip(*parts, strict=True)]


def _tile_by_tile(q, k, v, block_q=16, block_k=16):
    """Every tile is looked at; those without a visible pair are passed over."""
    n, m = q.shape[2], k.shape[2]
    out, lse = [], []
    for i in range(0, n, block_q):
        q_tile = q[:, :, i : i + block_q] * q.shape[3] ** -0.5
        rows = torch.arange(i, min(i + block_q, n))[:, None]
        total = torch.full(q_tile.shape[:3], -INF, dtype=q.dtype)
        mean = torch.zeros(*q_tile.shape[:3], v.shape[3], dtype=q.dtype)
        for j in range(0, m, block_k):
            seen = torch.arange(j, min(j + block_k, m)) <= rows + m - n
            if not seen.any():
                continue
            s = (q_tile @ k[:, :, j : j + block_k].mT).masked_fill(~seen, -INF)
            both = torch.logaddexp(total, s.logsumexp(-1))
            safe = both.masked_fill(both == -INF, 0.0)
            mean = mean * (total - safe).exp()[..., None]
            mean = mean + (s - safe[..., None]).exp() @ v[:, :, j : j + block_k]
            total = both
        out.append(mean)
        lse.append(total)
    return torch.cat(out, 2), torch.cat(lse, 2)


def _left_over(i, j, n, m):
    return j < i + m - n


LAST_KEY = (
    "The keys of a tile of queries end one too early: its last query lacks the last key that it\n"
    "sees. A slice and a range leave out their end."
)

WRONG = (
    Wrong(
        "no_mask",
        causal(visible=None, end=all_keys),
        "Nothing is hidden: every query sees every key.",
    ),
    Wrong(
        "itself_hidden",
        causal(visible=_left_over),
        "A query doesn't see its own token here: the limit is j < i and has to be j <= i, with\n"
        "seq_k - seq_q added.",
    ),
    Wrong(
        "one_key_too_many",
        causal(visible=lambda i, j, n, m: j <= i + 1 + m - n, end=all_keys),
        "Each query sees one key of the future.",
    ),
    Wrong(
        "aligned_at_the_first_token",
        causal(visible=lambda i, j, n, m: j <= i, end=all_keys),
        "The mask is aligned at the first query and the first key. With seq_q = seq_k that is the\n"
        "same; otherwise the last query is the newest token: j <= i + seq_k - seq_q.",
    ),
    Wrong(
        "shifted_the_other_way",
        causal(visible=lambda i, j, n, m: j <= i + n - m, end=all_keys),
        "The shift has the wrong sign: seq_q - seq_k was added where seq_k - seq_q is meant.",
    ),
    Wrong(
        "counted_within_the_tile",
        causal(numbers=lambda i, j: (0, 0), end=all_keys),
        "Queries and keys are numbered anew in each tile, so each tile gets the same triangle.\n"
        "Count from the beginning of the sequence: add where the tile begins.",
    ),
    Wrong(
        "counted_within_the_tile_and_skipped",
        causal(numbers=lambda i, j: (0, 0)),
        "Queries and keys are numbered anew in each tile, so each tile gets the same triangle.\n"
        "Count from the beginning of the sequence: add where the tile begins.",
    ),
    Wrong(
        "keys_counted_within_the_tile",
        causal(numbers=lambda i, j: (i, 0)),
        "The keys of each tile are numbered from 0. Add where the tile begins.",
    ),
    Wrong(
        "queries_counted_within_the_tile",
        causal(numbers=lambda i, j: (0, j), end=all_keys),
        "The queries of each tile are numbered from 0. Add where the tile begins.",
    ),
    Wrong(
        "tiles_hidden_as_a_whole",
        _whole_tiles,
        "Hidden tiles are skipped, but in a tile that the limit cuts everything is seen. Such a\n"
        "tile needs a mask.",
    ),
    Wrong(
        "cut_tiles_left_out",
        _whole_blocks_only,
        "Tiles that the limit cuts are left out altogether. Some of their pairs are visible.",
    ),
    Wrong(
        "ends_where_the_first_query_ends",
        _to_the_first_seen,
        "The inner loop ends at the last key that the first query of the tile sees. The last\n"
        "query of the tile sees more.",
    ),
    Wrong(
        "ends_without_the_shift",
        causal(end=lambda start, rows, seq_q, seq_k: min(seq_k, start + rows)),
        "The inner loop ends at the tile's last query, as if there were as many keys as queries.\n"
        "With more keys that query sees seq_k - seq_q further.",
    ),
    Wrong(
        "mask_upside_down",
        causal(visible=lambda i, j, n, m: j > i + m - n),
        "What may be seen is hidden, and what is hidden is seen: the mask is the wrong way round.",
    ),
    Wrong(
        "ends_one_key_early",
        _one_key_early,
        "The inner loop ends one key too early: where the last query's own key is the first of\n"
        "a tile, that tile is never read. Is it < or <=?",
    ),
    Wrong(
        "ends_one_key_early_in_full_tiles",
        _one_key_early_for_full_tiles,
        "The inner loop ends one key too early: where the last query's own key is the first of\n"
        "a tile, that tile is never read. Is it < or <=?",
    ),
    Wrong(
        "last_key_cut_off",
        _keys_cut(lambda i, block, n, m: min(i + block, n) - 1 + m - n),
        LAST_KEY,
    ),
    Wrong(
        "last_key_cut_off_in_full_tiles",
        _keys_cut(lambda i, block, n, m: min(m, i + block - 1 + m - n)),
        LAST_KEY,
    ),
    Wrong(
        "numbers_of_tiles_compared",
        _by_numbers_of_tiles,
        "Numbers of tiles are compared to tell which are hidden. block_q and block_k may differ,\n"
        "and seq_q and seq_k: compare numbers of queries and keys.",
    ),
    Wrong(
        "future_seen_not_past",
        causal(visible=lambda i, j, n, m: j >= i + m - n, end=all_keys),
        "The triangle is turned round: each query sees the future, not the past.",
    ),
    Wrong(
        "hidden_pairs_at_zero",
        causal(hidden=0.0, end=all_keys),
        "Hidden scores are set to 0, and exp(0) is 1: beside scores of -9 the hidden keys win.\n"
        "Hidden is -inf, before the maximum is taken.",
    ),
    Wrong(
        "maximum_over_hidden_keys",
        causal(looked_at=lambda scores, unhidden: unhidden),
        MAXIMUM_OVER_HIDDEN,
    ),
    Wrong(
        "maximum_over_hidden_keys_of_all_tiles",
        causal(looked_at=lambda scores, unhidden: unhidden, end=all_keys),
        MAXIMUM_OVER_HIDDEN,
    ),
    Wrong(
        "even_for_nobody",
        causal(hidden=-1e9, end=all_keys),
        "A query that may see nothing gets a mean of values: -1e9 everywhere is as good as 0\n"
        "everywhere. It gets zeros, and lse is -inf.",
    ),
    Wrong(
        "nan_for_nobody",
        causal(end=all_keys, below=lambda m: m),
        "A query that may see nothing gives NaN: its maximum is -inf, and (-inf) - (-inf) is not\n"
        "a number.",
    ),
    Wrong(
        "nan_for_nobody_in_a_cut_tile",
        causal(below=lambda m: m),
        "In a tile where some queries see keys and others none, the others give NaN: their\n"
        "maximum is -inf, and (-inf) - (-inf) is not a number.",
    ),
    Wrong(
        "nothing_done_for_nobody",
        causal(
            below=lambda m: m,
            factor_l=lambda m, n: (m - n).exp(),
            finish=lambda m, l, o: (o / l[..., None], m + l.log()),
        ),
        "A query that may see nothing gives NaN in two places: its maximum stays -inf, and\n"
        "(-inf) - (-inf) is not a number; and at the end l is 0, and 0/0 is none either.",
    ),
    Wrong(
        "zero_by_zero_for_nobody",
        causal(finish=lambda m, l, o: (o / l[..., None], m + l.log())),
        "A query that may see nothing has l = 0 at the end, and 0/0 is NaN. It gets zeros.",
    ),
    Wrong(
        "even_for_nobody_in_a_cut_tile",
        causal(hidden=-1e9),
        "In a tile where some queries see keys and others none, the others get a mean of values:\n"
        "-1e9 everywhere is as good as 0 everywhere. They get zeros, and lse is -inf.",
    ),
    Wrong(
        "even_for_nobody_and_zero_by_zero",
        causal(hidden=-1e9, finish=lambda m, l, o: (o / l[..., None], m + l.log())),
        "A query that may see nothing gives 0/0 where its tiles were skipped, and a mean of\n"
        "values where they weren't, as its scores are all -1e9. It gets zeros, and lse is -inf.",
    ),
    Wrong(
        "no_scale",
        causal(scale=lambda d: 1.0),
        "The scores are not divided by the root of head_dim.",
    ),
    Wrong(
        "o_not_rescaled",
        causal(factor_o=lambda m, n: torch.ones_like(m)),
        "o is never rescaled, only l is. Both are sums of exp(score - m).",
    ),
    Wrong(
        "lse_without_logarithm",
        causal(finish=lambda m, l, o: (o / torch.where(l > 0, l, 1.0)[..., None], m + l)),
        "The second result is m + l. The logarithm of l belongs to m.",
    ),
    Wrong("nothing_skipped", causal(end=all_keys), SKIPS_NOTHING),
)

FLASH_CAUSAL_SKIP = Answer(
    reference=flash_causal_skip,
    wrong=WRONG,
    right=(
        Right("plain_loops", causal()),
        Right("a_mask_for_each_tile", _by_mask),
        Right("hidden_tiles_passed_over", _tile_by_tile),
        Right("by_the_difference", causal(
            visible=lambda i, j, n, m: (m - j) >= (n - i), scale=lambda d: math.pow(d, -0.5))),
        Right("tiny_tiles", lambda q, k, v, block_q=16, block_k=16: causal()(q, k, v, 4, 2)),
    ),
)  # fmt: skip
