"""SmolLM2 taken apart: what stands around its attention, and its matrices as the file has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from labs_lib.models import on_disk
from labs_lib.models.layer import turn
from labs_lib.models.smollm2 import Layer, SmolLM2, rms_norm, rotary_turns

OnTokens = Callable[[Tensor], Tensor]  # [..., d_model] -> the same shape


@dataclass(frozen=True)
class LayerParts:
    """What a layer has beside its attention."""

    norm_attention: OnTokens
    norm_mlp: OnTokens
    mlp: OnTokens


@dataclass(frozen=True)
class ModelParts:
    """A decoder without its attention: embed [vocab, d_model], its layers and the last norm."""

    embed: Tensor
    layers: tuple[LayerParts, ...]
    norm: OnTokens


def parts(model: SmolLM2) -> ModelParts:
    """Return the model's parts, which share its weights."""

    def norm(gain: Tensor) -> OnTokens:
        return partial(rms_norm, gain=gain)

    layers = tuple(
        LayerParts(norm(layer.norm_attention), norm(layer.norm_mlp), layer.mlp)
        for layer in cast("list[Layer]", model.layers)
    )
    return ModelParts(model.embed, layers, norm(model.norm))


def rotate(t: Tensor, start: int = 0) -> Tensor:
    """Return t [..., seq, head_dim] turned as SmolLM2 does, its first token at position start.

    Number i of a head and number i + head_dim / 2 are one pair.
    """
    places = torch.arange(start, start + t.shape[-2], device=t.device)
    cos, sin = rotary_turns(places, t.shape[-1])
    return turn(t, cos.to(t.dtype), sin.to(t.dtype))


def attention_tensors(cache: Path | None = None) -> dict[str, Tensor]:
    """Return the matrices of all attention layers by the file's own names, as the file has them.

    blk.0.attn_q.weight and so on, float32, [d_out, d_in]; in q and k the two outputs of a head that
    turn together stand side by side. Takes some seconds. Raises MissingModel or BrokenModel.
    """
    from gguf import GGUFReader
    from gguf.quants import dequantize

    found = on_disk.require("smollm2", cache)
    reader = GGUFReader(found.folder / found.entry.files[0].name)
    return {
        tensor.name: torch.from_numpy(dequantize(tensor.data, tensor.tensor_type))
        for tensor in reader.tensors
        if ".attn_" in tensor.name and len(tensor.shape) == 2
    }
