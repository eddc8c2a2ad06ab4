"""Keys and values of the tokens that a decoder has already read."""

from __future__ import annotations

import torch
from torch import Tensor


class KVCache:
    """Grows by the tokens of each pass; holds [batch, n_kv_head, seq, head_dim] for each layer.

    Heads that share keys and values are stored once: the saving of grouped queries. The whole
    model's cache, of texts that are equally long; `labs_lib.attention.cache` has one layer's.
    """

    def __init__(self) -> None:
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    def __len__(self) -> int:
        """The number of tokens in it."""
        return self.keys[0].shape[-2] if 0 in self.keys else 0

    def append(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new tokens' keys and values; return those of all tokens."""
        if layer in self.keys:
            if self.keys[layer].shape[0] != k.shape[0]:
                raise ValueError(
                    f"the cache holds {self.keys[layer].shape[0]} texts and this pass has "
                    f"{k.shape[0]}; begin with a new KVCache()"
                )
            k = torch.cat([self.keys[layer], k], dim=-2)
            v = torch.cat([self.values[layer], v], dim=-2)
        self.keys[layer], self.values[layer] = k, v
        return k, v

    @property
    def bytes(self) -> int:
        """Bytes of all keys and values."""
        stored = [*self.keys.values(), *self.values.values()]
        return sum(t.numel() * t.element_size() for t in stored)
