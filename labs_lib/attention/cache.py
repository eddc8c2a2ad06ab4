"""The KV cache: keys and values of a text are made once and kept for every token that follows.

Source: Shazeer 2019, arXiv 1911.02150, section 2.4, incremental decoding.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from labs_lib.attention.grouped import grouped_query_attention
from labs_lib.attention.heads import merge_heads, split_heads
from labs_lib.attention.multi_head import MultiHeadAttention
from labs_lib.attention.single_head import causal_mask

FIRST_CAPACITY = 16

Pair = tuple[Tensor, Tensor]


class KVCache:
    """Keys and values of one layer, for a batch of texts that may differ in length.

    With a `capacity` the room for that many tokens is taken at once and never exceeded; without
    one it doubles whenever it is full. Text b's token at position j lies in slot j of row b. What
    is appended is copied in, without its gradient. `v_head_dim` is head_dim unless given.
    Raises ValueError for a size or a capacity below 1.
    """

    def __init__(
        self,
        batch: int,
        n_kv_head: int,
        head_dim: int,
        capacity: int | None = None,
        *,
        v_head_dim: int | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        v_head_dim = head_dim if v_head_dim is None else v_head_dim
        sizes = {"batch": batch, "n_kv_head": n_kv_head}
        for name, size in (sizes | {"head_dim": head_dim, "v_head_dim": v_head_dim}).items():
            if size < 1:
                raise ValueError(f"{name}={size}; a cache needs at least 1")
        if capacity is not None and capacity < 1:
            raise ValueError(f"capacity={capacity}; give at least 1, or None for one that grows")
        self.grows, room = capacity is None, FIRST_CAPACITY if capacity is None else capacity
        # Zeros: an unused slot gets weight 0, and 0 times whatever lay there could be NaN.
        self._k = torch.zeros(batch, n_kv_head, room, head_dim, dtype=dtype, device=device)
        self._v = torch.zeros(batch, n_kv_head, room, v_head_dim, dtype=dtype, device=device)
        self._lengths = [0] * batch
        self._last = [range(0)] * batch

    @property
    def lengths(self) -> list[int]:
        """How many tokens of each text are kept."""
        return list(self._lengths)

    @property
    def length(self) -> int:
        """How many tokens of the longest text are kept."""
        return max(self._lengths)

    @property
    def capacity(self) -> int:
        """For how many tokens of a text there is room now."""
        return self._k.shape[2]

    @property
    def keys(self) -> Tensor:
        """All keys so far, a view [batch, n_kv_head, length, head_dim]; unused slots hold 0."""
        return self._k[:, :, : self.length]

    @property
    def values(self) -> Tensor:
        """All values so far, a view [batch, n_kv_head, length, v_head_dim]."""
        return self._v[:, :, : self.length]

    @property
    def nbytes(self) -> int:
        """The bytes that the kept tokens take; the room that is still empty isn't counted."""
        _, n_kv_head, _, head_dim = self._k.shape
        per_token = n_kv_head * (head_dim + self._v.shape[3]) * self._k.element_size()
        return sum(self._lengths) * per_token

    def append(self, k: Tensor, v: Tensor, n_new: Sequence[int] | None = None) -> Pair:
        """Keep the keys and values of the next tokens, and return all keys and all values so far.

        k is [batch, n_kv_head, new, head_dim], v [batch, n_kv_head, new, v_head_dim]. Of text b
        only the first n_new[b] tokens count, by default all of them. The cache is as it was when
        this raises: ValueError for shapes or tokens that don't fit, TypeError for another dtype.
        """
        counts = self._checked(k, v, n_new)
        self._make_room(max(n + c for n, c in zip(self._lengths, counts, strict=True)))
        for row, (start, count) in enumerate(zip(self._lengths, counts, strict=True)):
            self._last[row] = range(start, start + count)
            self._k[row, :, start : start + count] = k[row, :, :count].detach()
            self._v[row, :, start : start + count] = v[row, :, :count].detach()
            self._lengths[row] += count
        return self.keys, self.values

    def mask(self, seq_q: int) -> Tensor:
        """Return which keys the tokens appended last may attend to: [batch, 1, seq_q, length].

        seq_q is how many were appended, those that only fill up the batch included. A token sees
        itself and all before it in its own text; a row that fills up sees nothing.
        """
        slots = torch.arange(self.length, device=self._k.device)
        places = torch.full((len(self._last), seq_q), -1, device=self._k.device)
        for row, last in enumerate(self._last):
            places[row, : len(last)] = torch.arange(last.start, last.stop)
        return (slots <= places.unsqueeze(-1)).unsqueeze(1)

    def clear(self) -> None:
        """Forget all tokens and keep the room."""
        self._k.zero_()
        self._v.zero_()
        self._lengths = [0] * len(self._lengths)
        self._last = [range(0)] * len(self._last)

    def _checked(self, k: Tensor, v: Tensor, n_new: Sequence[int] | None) -> list[int]:
        for name, given, kept in (("k", k, self._k), ("v", v, self._v)):
            wanted = (*kept.shape[:2], k.shape[2] if k.ndim == 4 else 1, kept.shape[3])
            if tuple(given.shape) != wanted:
                raise ValueError(f"{name} is {list(given.shape)}; this cache takes {list(wanted)}")
            if given.dtype != kept.dtype:
                raise TypeError(f"{name} is {given.dtype} and the cache holds {kept.dtype}")
        new, batch = k.shape[2], k.shape[0]
        counts = [new] * batch if n_new is None else [int(n) for n in n_new]
        if len(counts) != batch or not all(0 <= count <= new for count in counts):
            raise ValueError(f"n_new={counts}; give {batch} numbers from 0 to {new}, one a text")
        longest, kept = max((n + c, n) for n, c in zip(self._lengths, counts, strict=True))
        if not self.grows and longest > self.capacity:
            raise ValueError(
                f"{kept} tokens are kept and {longest - kept} more make {longest}; this cache has "
                f"room for {self.capacity}. Make it with capacity={longest}, or without one to let "
                "it grow"
            )
        return counts

    def _make_room(self, tokens: int) -> None:
        if tokens <= self.capacity:
            return
        room = self.capacity
        while room < tokens:
            room *= 2
        for name in ("_k", "_v"):
            old = getattr(self, name)
            wider = old.new_zeros(*old.shape[:2], room, old.shape[3])
            wider[:, :, : old.shape[2]] = old
            setattr(self, name, wider)


def cached_attention(
    q: Tensor, k: Tensor, v: Tensor, cache: KVCache, n_new: Sequence[int] | None = None
) -> Tensor:
    """Return the answers of the next tokens, which see themselves and all that the cache keeps.

    q is [batch, n_head, new, head_dim], k and v as in `KVCache.append`, which happens first; the
    result is [batch, n_head, new, v_head_dim], zeros for rows beyond n_new. Raises what
    `KVCache.append` and `grouped_query_attention` raise.
    """
    keys, values = cache.append(k, v, n_new)
    return grouped_query_attention(q, keys, values, cache.mask(q.shape[2]))


def layer_step(
    layer: MultiHeadAttention, x: Tensor, cache: KVCache, n_new: Sequence[int] | None = None
) -> Tensor:
    """Return a causal layer's output for the next tokens: [batch, new, d_model].

    x is [batch, new, d_in]; its keys and values go into the cache. The layer itself keeps nothing:
    run without a cache afterwards, it gives what it gave before.
    """
    return layer.output(cached_attention(*layer.project(x, x), cache, n_new))


def decode_step(
    x: Tensor,
    W_Q: Tensor,
    W_K: Tensor,
    W_V: Tensor,
    W_O: Tensor,
    n_head: int,
    rotate: Callable[[Tensor, int], Tensor],
    cache: Pair | None = None,
) -> tuple[Tensor, Pair]:
    """Return a causal layer's output for the next tokens, and the cache with them in it.

    x is [batch, new, d_model]; cache is None at the start of a text, else the pair (k, v) of the
    tokens before, each [batch, n_kv_head, past, head_dim]. `rotate(t, start)` turns
    [..., seq, head_dim] by positions from `start` on. Keys are kept turned. The pair that came in
    is left as it was.
    """
    head_dim = W_Q.shape[1] // n_head
    past = 0 if cache is None else cache[0].shape[2]
    q = rotate(split_heads(x @ W_Q, n_head), past)
    k = rotate(split_heads(x @ W_K, W_K.shape[1] // head_dim), past)
    v = split_heads(x @ W_V, W_V.shape[1] // head_dim)
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    mask = causal_mask(q.shape[2], k.shape[2], x.device)
    heads = grouped_query_attention(q, k, v, mask)  # [batch, n_head, new, head_dim]
    return merge_heads(heads) @ W_O, (k, v)
