"""Flash attention in torch: tiles of queries meet tiles of keys, and no n x n tensor is made.

The forward pass keeps a state (m, l, o) for each query and the backward pass makes the weights
anew from the log-sum-exp. Both hold one tile of scores at a time.
Source: Dao et al. 2022, arXiv 2205.14135; Dao 2023, arXiv 2307.08691, algorithms 1 and 2.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from labs_lib.attention.online_softmax import exp_below, widened
from labs_lib.config import checked_n_kv_head

MOST_SCORES = 2**20


def flash_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    scale: float | None = None,
    block_q: int | None = None,
    block_k: int | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return softmax(q kᵀ scale) v tile by tile: [batch, n_head, seq_q, d_v].

    q is [batch, n_head, seq_q, head_dim], k [batch, n_kv_head, seq_k, head_dim] and v
    [batch, n_kv_head, seq_k, d_v]; query head h reads key/value head h // (n_head // n_kv_head) in
    place. `causal` lets query i see key j <= i + seq_k - seq_q and skips the tiles above; `mask` is
    bool, True = may attend, and broadcasts to [batch, n_head, seq_q, seq_k]. `scale` is
    1/sqrt(head_dim) by default. With `return_lse` the log-sum-exp [batch, n_head, seq_q] comes too,
    in float32 or wider; it has a gradient as the output has. A query that may attend to nothing
    gets zeros and -inf. float16 and bfloat16 are multiplied and added up in float32. A tile has
    block_q queries and block_k keys; by default 512 each, fewer where there are many heads.

    Raises ValueError for shapes that don't fit, TypeError for dtypes that don't.
    """
    _check(q, k, v, mask)
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    if mask is not None:
        mask = mask.broadcast_to(*q.shape[:3], k.shape[2])  # a view of the mask as it came
    block = _fitting_block(q.shape[0] * q.shape[1])
    block_q, block_k = (block if b is None else b for b in (block_q, block_k))
    tiling = Tiling(q.shape[2], k.shape[2], block_q, block_k, causal)
    tiling.check()
    out, lse = _Flash.apply(q, k, v, mask, scale, tiling)
    return (out, lse) if return_lse else out


def flash_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    d_out: Tensor,
    block_q: int | None = None,
    block_k: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, k and v from out's, with the weights made anew from lse.

    Shapes as in flash_attention: q [batch, n_head, seq_q, head_dim] and so on; out and lse are what
    it gave, without a mask and with its own scale. d_out is the gradient of out.
    Source: Dao 2023, algorithm 2.
    Raises ValueError for a tile without a row or a column.
    """
    block = _fitting_block(q.shape[0] * q.shape[1])
    block_q, block_k = (block if b is None else b for b in (block_q, block_k))
    tiling = Tiling(q.shape[2], k.shape[2], block_q, block_k, causal=False)
    tiling.check()
    saved = q, k, v, None, out, lse
    return _gradients(saved, 1 / math.sqrt(q.shape[3]), tiling, d_out, torch.zeros_like(lse))


class Tile(NamedTuple):
    """Queries `rows` against keys `columns`; `cut` where the causal limit runs through it."""

    rows: slice
    columns: slice
    cut: bool


class Tiling(NamedTuple):
    """How seq_q queries and seq_k keys are cut into tiles, and whether the causal limit holds."""

    seq_q: int
    seq_k: int
    block_q: int
    block_k: int
    causal: bool

    def check(self) -> None:
        """Raise ValueError for a tile without a row or a column."""
        if min(self.block_q, self.block_k) < 1:
            raise ValueError(
                f"block_q={self.block_q}, block_k={self.block_k}: a tile has at least one row and "
                "one column; 512 is a good size"
            )

    def rows(self) -> Iterator[slice]:
        """The query tiles."""
        for start in range(0, self.seq_q, self.block_q):
            yield slice(start, min(start + self.block_q, self.seq_q))

    def tiles(self, rows: slice) -> Iterator[Tile]:
        """The tiles of a query tile that hold at least one visible pair, as far as causal says."""
        shift = self.seq_k - self.seq_q
        end = min(self.seq_k, rows.stop + shift) if self.causal else self.seq_k
        for start in range(0, end, self.block_k):
            stop = min(start + self.block_k, end)
            yield Tile(rows, slice(start, stop), self.causal and stop - 1 > rows.start + shift)


class _Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, mask, scale, tiling):
        out = q.new_empty(*q.shape[:3], v.shape[3])
        lse = torch.empty(q.shape[:3], dtype=widened(q[:0]).dtype, device=q.device)
        for rows in tiling.rows():
            out[:, :, rows], lse[:, :, rows] = _forward_rows(q, k, v, mask, scale, tiling, rows)
        ctx.save_for_backward(q, k, v, mask, out, lse)
        ctx.scale, ctx.tiling = scale, tiling
        return out, lse

    @staticmethod
    @once_differentiable
    def backward(ctx, d_out, d_lse):
        return *_gradients(ctx.saved_tensors, ctx.scale, ctx.tiling, d_out, d_lse), None, None, None


def _forward_rows(q, k, v, mask, scale, tiling, rows):
    """out and lse of one query tile; the heads of a group are rows of one product."""
    q_tile = _grouped(q[:, :, rows], k.shape[1]) * scale  # [batch, n_kv_head, group * rows, d]
    m = q_tile.new_full((*q_tile.shape[:3], 1), -math.inf)
    l = torch.zeros_like(m)
    o = q_tile.new_zeros(*q_tile.shape[:3], v.shape[3])
    for tile in tiling.tiles(rows):
        scores = _scores(q_tile, k, mask, tile, tiling)
        if scores is None:
            continue
        m_new = torch.maximum(m, scores.amax(dim=-1, keepdim=True))
        p = scores.sub_(m_new.masked_fill(m_new == -math.inf, 0.0)).exp_()
        factor = exp_below(m, m_new)
        l.mul_(factor).add_(p.sum(dim=-1, keepdim=True))
        o.mul_(factor).add_(p @ widened(v[:, :, tile.columns]))
        m = m_new
    nothing = l == 0
    l.masked_fill_(nothing, 1.0)
    lse = (m + l.log()).masked_fill_(nothing, -math.inf)
    return _ungrouped(o.div_(l), q.shape[1]), _ungrouped(lse, q.shape[1]).squeeze(-1)


class _Upstream(NamedTuple):
    """One query tile's results and their gradients, and where those of k and v add up."""

    out: Tensor
    lse: Tensor
    d_out: Tensor
    d_lse: Tensor
    dk: Tensor
    dv: Tensor


def _gradients(saved, scale, tiling, d_out, d_lse):
    """The gradients of q, k and v, one tile of queries after the other."""
    q, k, v, mask, out, lse = saved
    dq = torch.empty_like(q)
    dk, dv = (torch.zeros_like(t, dtype=widened(q[:0]).dtype) for t in (k, v))
    for rows in tiling.rows():
        part = _Upstream(*(t[:, :, rows] for t in (out, lse, d_out, d_lse)), dk, dv)
        dq[:, :, rows] = _backward_rows(q, k, v, mask, scale, tiling, rows, part)
    return dq, dk.to(k.dtype), dv.to(v.dtype)


def _backward_rows(q, k, v, mask, scale, tiling, rows, part):
    """The gradient of one query tile; its shares of dk and dv are added where they belong."""
    n_kv_head = k.shape[1]
    q_tile = _grouped(q[:, :, rows], n_kv_head) * scale
    d_out, out = _grouped(part.d_out, n_kv_head), _grouped(part.out, n_kv_head)
    lse, d_lse = (_grouped(t.unsqueeze(-1), n_kv_head) for t in (part.lse, part.d_lse))
    # A score moves its own weight and all others of its row: D is what the others lose.
    D = (d_out * out).sum(dim=-1, keepdim=True) - d_lse
    dq = torch.zeros_like(q_tile)
    for tile in tiling.tiles(rows):
        scores = _scores(q_tile, k, mask, tile, tiling)
        if scores is None:
            continue
        k_tile, v_tile = (widened(t[:, :, tile.columns]) for t in (k, v))
        p = exp_below(scores, lse)
        part.dv[:, :, tile.columns] += p.mT @ d_out
        d_scores = p.mul_((d_out @ v_tile.mT).sub_(D))
        part.dk[:, :, tile.columns] += d_scores.mT @ q_tile  # the scale is in q_tile already
        dq += d_scores @ k_tile
    return _ungrouped(dq.mul_(scale), q.shape[1])


def _scores(q_tile: Tensor, k: Tensor, mask: Tensor | None, tile: Tile, tiling: Tiling):
    """One tile of masked scores [batch, n_kv_head, group * rows, columns]; None: all are hidden."""
    visible = _visible(mask, tile, tiling, k.device)
    if visible is not None and not visible.any():
        return None
    scores = q_tile @ widened(k[:, :, tile.columns]).mT
    if visible is None or visible.all():
        return scores
    n_row = tile.rows.stop - tile.rows.start
    by_head = scores.unflatten(2, (-1, n_row))  # [batch, n_kv_head, group, rows, columns]
    if visible.ndim == 4:
        visible = visible.unflatten(1, (k.shape[1], -1))
    by_head.masked_fill_(~visible, -math.inf)
    return scores


def _visible(mask: Tensor | None, tile: Tile, tiling: Tiling, device) -> Tensor | None:
    """Which pairs of a tile may meet: None for all, [rows, columns], or with batch and n_head."""
    rows, columns, cut = tile
    below = None
    if cut:
        i = torch.arange(rows.start, rows.stop, device=device)[:, None]
        j = torch.arange(columns.start, columns.stop, device=device)
        below = j <= i + tiling.seq_k - tiling.seq_q
    if mask is None:
        return below
    part = mask[:, :, rows, columns]
    return part if below is None else part & below


def _grouped(x: Tensor, n_kv_head: int) -> Tensor:
    """[batch, n_head, rows, d] -> [batch, n_kv_head, group * rows, d], wide enough to add up."""
    return widened(x.unflatten(1, (n_kv_head, -1)).flatten(2, 3))


def _ungrouped(x: Tensor, n_head: int) -> Tensor:
    return x.unflatten(2, (n_head // x.shape[1], -1)).flatten(1, 2)


def _fitting_block(pairs: int) -> int:
    """A tile's side: about a million scores for all pairs of batch and head, 16 at least."""
    return max(16, min(512, math.isqrt(MOST_SCORES // max(pairs, 1))))


def _check(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    shapes = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(f"{shapes}: each is [batch, n_head, seq, head_dim]")
    if not (q.shape[0] == k.shape[0] == v.shape[0] and k.shape[1:3] == v.shape[1:3]):
        raise ValueError(f"{shapes}: batch is the same for all, n_kv_head and seq_k for k and v")
    if q.shape[3] != k.shape[3] or q.shape[3] < 1:
        raise ValueError(f"{shapes}: a query and a key have the same head_dim, 1 or more")
    checked_n_kv_head(k.shape[1], q.shape[1])
    if not (q.is_floating_point() and q.dtype == k.dtype == v.dtype):
        raise TypeError(f"q is {q.dtype}, k {k.dtype}, v {v.dtype}; give one floating dtype to all")
    if mask is not None:
        _check_mask(mask, (*q.shape[:3], k.shape[2]))


def _check_mask(mask: Tensor, pairs: tuple[int, ...]) -> None:
    if mask.dtype != torch.bool:
        raise TypeError(f"mask is {mask.dtype}; it is torch.bool, where True means: may attend")
    sizes = zip(reversed(mask.shape), reversed(pairs), strict=False)
    if mask.ndim > len(pairs) or any(size not in (1, wanted) for size, wanted in sizes):
        raise ValueError(f"mask is {list(mask.shape)}; it has to broadcast to {list(pairs)}")
