"""What both models have in common: sizes, a tokenizer, and attention that may be exchanged."""

from __future__ import annotations

from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from labs_lib.models.bpe import Tokenizer
from labs_lib.models.hooks import Hooks
from labs_lib.models.layer import Attend, AttentionLayer, Shape


class Model(nn.Module):
    """A pretrained model; `attend` may be replaced at any time, `layers[i].attention` opened."""

    causal: ClassVar[bool]  # whether a token sees only what came before
    shape: Shape
    tokenizer: Tokenizer | None
    attend: Attend
    layers: nn.ModuleList

    @property
    def words(self) -> Tokenizer:
        """The tokenizer; raises ValueError where the model was made without one."""
        if self.tokenizer is None:
            raise ValueError(
                "this model has no tokenizer, so it reads ids but no text; "
                f"{type(self).__name__}.load(folder) gives one that reads both"
            )
        return self.tokenizer

    def attention(self, layer: int) -> AttentionLayer:
        """Return the attention of a layer, from 0 on."""
        return cast("AttentionLayer", self.layers[layer].attention)

    def check_ids(self, ids: Tensor) -> None:
        """Raise ValueError for what are no token ids [batch, seq] of this model's vocabulary."""
        if ids.ndim != 2 or ids.dtype not in (torch.int32, torch.int64):
            raise ValueError(
                f"ids is {ids.dtype} {tuple(ids.shape)}; it is whole numbers, [batch, seq], as "
                "model.ids(text) returns them"
            )
        if ids.numel() == 0:
            raise ValueError(
                f"ids is {tuple(ids.shape)}: there is no token to read; give a text that has some"
            )
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= self.shape.vocab:
            raise ValueError(
                f"ids has numbers from {low} to {high}; a token of this model is one of 0 to "
                f"{self.shape.vocab - 1}"
            )

    def row(self, text: str) -> Tensor:
        """Return the token ids of one text, with those that the model wants around it: [1, seq]."""
        raise NotImplementedError

    def look(self, ids: Tensor, hooks: Hooks) -> None:
        """Read ids [batch, seq] for what hooks keep; no logits are computed."""
        raise NotImplementedError
