"""Look into a pass of a model, and change what its heads say."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor
from torch.nn import functional

KINDS = ("weights", "heads", "q", "k", "v", "residual")
Head = tuple[int, int]


class Hooks:
    """What a pass is to keep, and which heads it silences; given to a model by `hooks=`.

    keep: names out of
        weights [batch, n_head, seq_q, seq_k], softmax of the masked scores;
        heads [batch, n_head, seq_q, head_dim], what each head answers, before W_O, after silencing;
        q [batch, n_head, seq_q, head_dim]; k, v [batch, n_kv_head, seq_k, head_dim]; after rotary;
        residual [batch, seq_q, d_model], what enters a layer; at n_layer, what leaves the last.
    layers: keep those only; None keeps all.
    ablate: (layer, head) pairs whose answer becomes zero.
    gate: [n_layer, n_head], multiplied with the heads' answers; with requires_grad, its gradient
        is each head's importance. Source: Michel et al. 2019, equation 2.
    edit: edit(layer, heads) returns what is to stand in place of the heads' answers.

    Each pass forgets what the one before had kept. `hooks["weights"][3]` is that of layer 3.
    """

    def __init__(
        self,
        *,
        keep: Collection[str] | str = (),
        layers: Collection[int] | None = None,
        ablate: Collection[Head] = (),
        gate: Tensor | None = None,
        edit: Callable[[int, Tensor], Tensor] | None = None,
    ):
        self.keep = frozenset([keep] if isinstance(keep, str) else keep)
        unknown = sorted(self.keep - set(KINDS))
        if unknown:
            raise ValueError(f"keep has {', '.join(unknown)}; there are {', '.join(KINDS)}")
        self.layers = None if layers is None else frozenset(layers)
        self.ablate = frozenset((int(layer), int(head)) for layer, head in ablate)
        self.gate, self.edit = gate, edit
        self.kept: dict[str, dict[int, Tensor]] = {}

    def __getitem__(self, kind: str) -> dict[int, Tensor]:
        """Return what was kept of one kind, by layer."""
        if kind not in self.kept:
            have = ", ".join(sorted(self.kept)) or "nothing, since no pass was made"
            raise KeyError(f"{kind!r} was not kept; ask for it by keep=, which has {have}")
        return self.kept[kind]

    def stacked(self, kind: str) -> Tensor:
        """Return what was kept of one kind as one tensor: [layers kept, batch, ...]."""
        return torch.stack([tensor for _, tensor in sorted(self[kind].items())])

    def begin(self, n_layer: int, n_head: int) -> None:
        """Forget what was kept; raise ValueError for layers or heads that the model lacks."""
        outside = [x for x in self.layers or () if not 0 <= x < n_layer + 1]
        if outside:
            raise ValueError(
                f"layer {outside[0]} does not exist; the layers are 0 to {n_layer - 1}"
            )
        check_heads(self.ablate, n_layer, n_head)
        if self.gate is not None and tuple(self.gate.shape) != (n_layer, n_head):
            raise ValueError(
                f"gate has shape {tuple(self.gate.shape)}; it is [n_layer, n_head], here "
                f"({n_layer}, {n_head})"
            )
        self.kept = {kind: {} for kind in sorted(self.keep)}

    def see(self, layer: int, kind: str, tensor: Callable[[], Tensor] | Tensor) -> None:
        """Keep a tensor, or what a function returns, if it was asked for."""
        if kind in self.keep and (self.layers is None or layer in self.layers):
            self.kept[kind][layer] = tensor if isinstance(tensor, Tensor) else tensor()

    def change(self, layer: int, heads: Tensor, head_ids: list[int]) -> Tensor:
        """Return the heads' answers [batch, n_head, seq_q, head_dim]: edited, gated, silenced."""
        if self.edit is not None:
            changed = self.edit(layer, heads)
            if changed.shape != heads.shape:
                raise ValueError(
                    f"edit returned {tuple(changed.shape)} for heads of {tuple(heads.shape)}; the "
                    "shape has to stay"
                )
            heads = changed
        if self.gate is not None:
            heads = heads * self.gate[layer, head_ids].to(heads)[:, None, None]
        silent = [i for i, head in enumerate(head_ids) if (layer, head) in self.ablate]
        if silent:
            heads = heads.index_fill(1, torch.tensor(silent, device=heads.device), 0.0)
        return heads


def check_heads(heads: Collection[Head], n_layer: int, n_head: int) -> None:
    """Raise ValueError for a (layer, head) pair that a model does not have."""
    for layer, head in heads:
        if not (0 <= layer < n_layer and 0 <= head < n_head):
            raise ValueError(
                f"head {head} of layer {layer} does not exist; layers are 0 to {n_layer - 1}, "
                f"heads 0 to {n_head - 1}"
            )


def softmax_weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Return the attention weights [batch, n_head, seq_q, seq_k] of q and k [batch, n_head, T, d].

    mask is bool, True = may attend. Whatever `attend` computes, it weighs the values by these.
    """
    each_key = torch.eye(k.shape[-2], dtype=q.dtype, device=q.device)  # then the output is them
    values = each_key.expand(*k.shape[:-1], -1)
    return functional.scaled_dot_product_attention(q, k, values, attn_mask=mask)
