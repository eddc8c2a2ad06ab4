"""How much a model needs each head: by silencing it, by the gradient of its gate, and by pruning.

A `Question` is a model with something that it should do well, as a loss in nats.
Source: Michel et al. 2019, arXiv 1905.10650, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from labs_lib.models.hooks import Head, Hooks
from labs_lib.models.layer import Pass
from labs_lib.models.minilm import MiniLM, mean_direction
from labs_lib.models.model import Model
from labs_lib.models.smollm2 import SmolLM2, rms_norm, rotary_turns

SHARPNESS = 20.0  # of the choice among sentences: 1 / temperature
Loss = Callable[[Hooks], list[Tensor]]


@dataclass(frozen=True)
class Question:
    """A model and `loss(hooks)`, the loss in nats of each of its examples."""

    model: Model
    loss: Loss

    @property
    def size(self) -> tuple[int, int]:
        """n_layer and n_head."""
        return self.model.shape.n_layer, self.model.shape.n_head

    def mean_loss(self, ablate: Sequence[Head] = ()) -> float:
        """The loss with some heads silenced, mean over the examples."""
        with torch.no_grad():
            return float(torch.stack(self.loss(Hooks(ablate=ablate))).mean())


def next_token(model: SmolLM2, texts: Sequence[str]) -> Question:
    """The question of a decoder: the loss of the next token on each text."""
    ids = [model.ids(text) for text in texts]
    return Question(model, lambda hooks: [model.losses(i, hooks=hooks).mean() for i in ids])


def find_partner(
    model: MiniLM, pairs: Sequence[tuple[str, str]], *, among: int | None = None
) -> Question:
    """The question of an encoder: choose, for each text, its partner among those of its group.

    A group is `among` pairs that follow each other, all of them by default.
    """
    size = len(pairs) if among is None else among
    groups = [_in_a_group(model, pairs[i : i + size]) for i in range(0, len(pairs), size)]
    return Question(model, lambda hooks: [x for group in groups for x in group(hooks)])


def _in_a_group(model: MiniLM, pairs: Sequence[tuple[str, str]]) -> Loss:
    ids, real = model.ids([text for pair in pairs for text in pair])

    def loss(hooks: Hooks) -> list[Tensor]:
        vectors = mean_direction(model(ids, real, hooks=hooks), real)  # [texts, d_model]
        alike = SHARPNESS * vectors[0::2] @ vectors[1::2].T  # [pairs, pairs]
        return list(F.cross_entropy(alike, torch.arange(len(pairs)), reduction="none"))

    return loss


def by_gradient(question: Question) -> Tensor:
    """Return each head's |d loss / d gate|, mean over the examples: [n_layer, n_head]."""
    return slopes(question).abs().mean(dim=0)


def slopes(question: Question) -> Tensor:
    """Return d loss / d gate of every head for each example: [examples, n_layer, n_head]."""
    gate = torch.ones(question.size, requires_grad=True)
    losses = question.loss(Hooks(gate=gate))
    return torch.stack([torch.autograd.grad(x, gate, retain_graph=True)[0] for x in losses])


def by_ablation(question: Question, heads: Sequence[Head] | None = None) -> Tensor:
    """Return by how many nats the loss rises when a head is silent: [n_layer, n_head].

    With `heads`, only these are measured; the others are NaN.
    """
    n_layer, n_head = question.size
    whole = question.mean_loss()
    rises = torch.full((n_layer, n_head), float("nan"))
    every = [(layer, head) for layer in range(n_layer) for head in range(n_head)]
    for layer, head in every if heads is None else heads:
        rises[layer, head] = question.mean_loss([(layer, head)]) - whole
    return rises


def next_token_by_ablation(
    model: SmolLM2, texts: Sequence[str], layers: Sequence[int] | None = None
) -> Tensor:
    """Return `by_ablation(next_token(model, texts))`, computed a layer of heads at a time.

    Up to the layer of the silent head nothing changes, so each pass begins there, with one copy of
    the text for each head. With `layers`, only their heads are measured: [len(layers), n_head].
    """
    which = range(model.shape.n_layer) if layers is None else layers
    return torch.stack([_rises(model, model.ids(text), which) for text in texts]).mean(dim=0)


@torch.no_grad()
def _rises(model: SmolLM2, ids: Tensor, layers: Sequence[int]) -> Tensor:
    n_layer, n_head = model.shape.n_layer, model.shape.n_head
    hooks = Hooks(keep="residual")
    model.residual(ids, hooks=hooks)
    seq, targets = ids.shape[1], ids[:, 1:]
    turns = rotary_turns(torch.arange(seq), model.shape.head_dim)
    mask = torch.ones(seq, seq, dtype=torch.bool).tril()

    def losses(x: Tensor) -> Tensor:  # [copies, seq, d_model] -> [copies]
        logits = rms_norm(x, model.norm)[:, :-1] @ model.embed.T
        wanted = targets.expand(len(x), -1).flatten()
        return (
            F.cross_entropy(logits.flatten(0, 1), wanted, reduction="none").view(len(x), -1).mean(1)
        )

    whole, rises = losses(hooks["residual"][n_layer]), []
    for start in layers:

        def silence(layer: int, heads: Tensor, start: int = start) -> Tensor:
            if layer != start:
                return heads
            return heads * (1 - torch.eye(n_head))[:, :, None, None]  # copy i without head i

        along = Pass(model.attend, mask, turns, Hooks(edit=silence))
        x = hooks["residual"][start].expand(n_head, -1, -1)
        for number in range(start, n_layer):
            x = model.layers[number](x, along, number)
        rises.append(losses(x) - whole)
    return torch.stack(rises)


def order(scores: Tensor) -> list[Head]:
    """Return all (layer, head) pairs of scores [n_layer, n_head], the least important first."""
    n_head = scores.shape[1]
    return [divmod(i, n_head) for i in scores.flatten().argsort(stable=True).tolist()]


def random_order(size: tuple[int, int], seed: int) -> list[Head]:
    """Return all (layer, head) pairs in a random order."""
    generator = torch.Generator().manual_seed(seed)
    return order(torch.rand(size, generator=generator))


def pruning_curve(question: Question, least: Sequence[Head], counts: Sequence[int]) -> list[float]:
    """Return the loss without the first 0, 1, ... of these heads, for each of the counts."""
    return [question.mean_loss(least[:count]) for count in counts]


def rank_agreement(a: Tensor, b: Tensor) -> float:
    """Return Spearman's rank correlation of two scores [n_layer, n_head] of the same heads."""
    ranks = torch.stack([s.flatten().argsort().argsort().double() for s in (a, b)])
    return float(torch.corrcoef(ranks)[0, 1])
