"""A byte model of which every head is looked at: how sharply does it choose?"""

from dataclasses import dataclass

import torch
from torch import Tensor

from labs_lib.training.byte_text import ByteModel, ByteText, head_weights, text_parts

N_LOOKED_AT = 128  # held-out windows
FIRST_QUERY = 8  # a query with few keys is sharp whatever its head does


@dataclass(frozen=True)
class HeadCensus(ByteText):
    """The byte model, measured head by head besides its loss."""

    def evaluate(self, model: ByteModel) -> dict[str, float]:
        """Return the loss, and for head h of layer l its mean largest weight, `sharpness_lLhH`.

        The mean is over the queries from the ninth token on, in 128 held-out windows.
        """
        found = super().evaluate(model)
        for layer, sharpness in enumerate(_sharpness(model, self.context)):
            found |= {f"sharpness_l{layer}h{head}": float(s) for head, s in enumerate(sharpness)}
        return found


def _sharpness(model: ByteModel, context: int) -> list[Tensor]:
    """Return per layer the mean largest weight of each head: [n_head]."""
    _, held_out = text_parts()
    starts = torch.linspace(0, len(held_out) - context - 1, N_LOOKED_AT).long()
    tokens = held_out[starts[:, None] + torch.arange(context)]
    largest = [weights.amax(dim=-1) for weights in head_weights(model, tokens)]
    return [one[..., FIRST_QUERY:].mean(dim=(0, 2)) for one in largest]  # of [batch, n_head, seq]
