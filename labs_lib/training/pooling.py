"""A byte model whose trained key/value heads are merged afterwards, and trained a little more."""

from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from labs_lib.training.byte_text import ByteModel, ByteText
from labs_lib.training.loop import training_steps
from labs_lib.withheld import Withheld


@dataclass(frozen=True)
class PooledHeads(ByteText):
    """The byte model; after training its key/value heads are merged in three sizes and measured.

    The recipe is that of Ainslie et al. 2023 (arXiv 2305.13245), section 2.1: the mean of each
    group of heads, then `more_steps` of training, here a twentieth of the first training.
    """

    kept: ClassVar[tuple[int, ...]] = (4, 2, 1)
    more_learning_rate: ClassVar[float] = 3e-3

    more_steps: int = 75

    def evaluate(self, model: ByteModel) -> dict[str, float]:
        """Return the loss, and for n heads kept `mean_n`, `first_n` and `mean_n_more`.

        These are the losses with the mean or the first head of each group, and after the further
        training of the mean. `more` is the loss of the whole model after the same. A class's copy
        of the course that leaves the merging to the student measures only the whole model.
        """
        found = {"loss": self._loss(model), "more": self._loss(self._trained(model))}
        with suppress(Withheld):
            for n_kv_head in self.kept:
                found |= self._losses_with(model, n_kv_head)
        return found

    def _losses_with(self, model: ByteModel, n_kv_head: int) -> dict[str, float]:
        mean, first = (with_fewer_heads(model, n_kv_head, how) for how in ("mean", "first"))
        return {
            f"mean_{n_kv_head}": self._loss(mean),
            f"first_{n_kv_head}": self._loss(first),
            f"mean_{n_kv_head}_more": self._loss(self._trained(mean)),
        }

    def _loss(self, model: ByteModel) -> float:
        return super().evaluate(model)["loss"]

    def _trained(self, model: ByteModel) -> ByteModel:
        model = deepcopy(model)
        gentle = replace(self, learning_rate=self.more_learning_rate)
        with torch.enable_grad():
            for _ in training_steps(gentle, model, 0, self.more_steps):
                pass
        return model


def with_fewer_heads(model: ByteModel, n_kv_head: int, how: str) -> ByteModel:
    """Return a copy of the model that keeps n_kv_head key/value heads in each layer.

    `how` is "mean", the mean of each group of neighbours, or "first", the first of each group.
    """
    model = deepcopy(model)
    for block in model.stack:
        layer = block.attention
        for name in ("W_K", "W_V"):
            kept = _merged(getattr(layer, name).detach(), layer.n_kv_head, n_kv_head, how)
            setattr(layer, name, nn.Parameter(kept))
        layer.n_kv_head = n_kv_head
    return model


def _merged(W: Tensor, n_before: int, n_after: int, how: str) -> Tensor:
    groups = W.unflatten(1, (n_after, n_before // n_after, -1))  # [d_model, kept, group, head_dim]
    return (groups.mean(dim=2) if how == "mean" else groups[:, :, 0]).flatten(1).contiguous()
