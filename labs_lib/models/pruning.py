"""Take heads out of a model: it becomes smaller, and says what the ablated one says."""

from __future__ import annotations

import copy
from collections.abc import Collection
from typing import TypeVar

from torch import Tensor, nn

from labs_lib.models.hooks import Head, check_heads
from labs_lib.models.layer import AttentionLayer
from labs_lib.models.model import Model

Which = TypeVar("Which", bound=Model)


def prune(model: Which, heads: Collection[Head]) -> Which:
    """Return a model without these (layer, head) pairs; the given one stays as it is.

    All other weights are shared, not copied. Heads keep their numbers; a key/value head goes when
    no query head that reads it is left. Raises ValueError for a head that isn't there (any more).
    """
    check_heads(heads, model.shape.n_layer, model.shape.n_head)
    for layer, head in heads:
        if head not in model.attention(layer).head_ids:
            raise ValueError(f"head {head} of layer {layer} was pruned before")
    kept = (*model.parameters(), model.tokenizer, model.attend)
    shared = {id(x): x for x in kept if x is not None}
    smaller = copy.deepcopy(model, shared)
    for number in range(model.shape.n_layer):
        gone = {head for where, head in heads if where == number}
        if gone:
            _prune_layer(smaller.attention(number), gone)
    return smaller


def heads_left(model: Model) -> list[Head]:
    """Return the (layer, head) pairs that a model has."""
    return [(i, head) for i in range(len(model.layers)) for head in model.attention(i).head_ids]


def _prune_layer(layer: AttentionLayer, gone: set[int]) -> None:
    left = [i for i, head in enumerate(layer.head_ids) if head not in gone]
    kv_left = sorted({layer.kv_of_head[i] for i in left})
    width = layer.head_dim
    for name, places in (("Q", left), ("K", kv_left), ("V", kv_left)):
        weight, bias = getattr(layer, f"W_{name}"), getattr(layer, f"b_{name}")
        setattr(layer, f"W_{name}", _kept(weight, places, width, axis=1))
        if bias is not None:
            setattr(layer, f"b_{name}", _kept(bias, places, width, axis=0))
    layer.W_O = _kept(layer.W_O, left, width, axis=0)
    layer.kv_of_head = [kv_left.index(layer.kv_of_head[i]) for i in left]
    layer.head_ids = [layer.head_ids[i] for i in left]


def _kept(weight: Tensor, places: list[int], width: int, axis: int) -> nn.Parameter:
    """Return a weight with the heads at these places only, along an axis of n * width numbers."""
    blocks = weight.unflatten(axis, (-1, width))
    index = weight.new_tensor(places).long()
    kept = blocks.index_select(axis, index).flatten(axis, axis + 1)
    return nn.Parameter(kept, requires_grad=False)
