"""A byte model whose heads are watched while they learn, and cut out when they have learnt."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from labs_lib.training.byte_text import (
    ByteModel,
    ByteText,
    head_weights,
    text_parts,
    window_loss,
)

ROLES = ("previous", "first", "same byte", "space")
N_WATCHED = 32  # held-out windows that the heads are watched on
N_CHOOSE, N_JUDGE = 128, 256  # held-out windows to choose heads by, and others to judge on
RANDOM_ORDERS = 3
SPACES = torch.tensor([ord(" "), ord("\n")])
Head = tuple[int, int]  # layer, head


@dataclass(frozen=True)
class GrowingHeads(ByteText):
    """The byte model; each head's role scores on the way, and at the end the cost of its silence.

    `watch` gives `l0h3 previous` and so on: the share of its weight that head 3 of layer 0 puts on
    that role. `evaluate` gives the loss; `silent l0h3`, the rise when one head is silent; and for
    n = 0, 1, ... `pruned n` and `at random n`, the loss without n heads: those whose silence alone
    cost least, or random ones. All in nats a byte, on held-out windows.
    """

    watch_every: ClassVar[int] = 50

    def watch(self, model: ByteModel) -> dict[str, float]:
        """Return the score of every head in every role."""
        found = {}
        for role, scores in role_scores(model, windows(self, N_WATCHED)).items():
            for layer, row in enumerate(scores.tolist()):
                found |= {f"l{layer}h{head} {role}": score for head, score in enumerate(row)}
        return found

    def evaluate(self, model: ByteModel) -> dict[str, float]:
        """Return the loss, what each head's silence costs, and two pruning curves."""
        choose, judge = windows(self, N_CHOOSE, 0.0, 0.5), windows(self, N_JUDGE, 0.5, 1.0)
        heads = [(layer, head) for layer in range(self.n_layer) for head in range(self.n_head)]
        whole = loss_without(model, [], choose)
        rises = {head: loss_without(model, [head], choose) - whole for head in heads}
        found = super().evaluate(model)
        found |= {f"silent l{layer}h{head}": rise for (layer, head), rise in rises.items()}
        orders = [random_order(heads, seed) for seed in range(RANDOM_ORDERS)]
        least = sorted(heads, key=rises.__getitem__)
        for n in range(len(heads) + 1):
            at_random = [loss_without(model, order[:n], judge) for order in orders]
            found[f"pruned {n}"] = loss_without(model, least[:n], judge)
            found[f"at random {n}"] = sum(at_random) / len(at_random)
        return found


def windows(task: ByteText, count: int, begin: float = 0.0, end: float = 1.0) -> Tensor:
    """Return windows of one share of the held-out text, with the byte after: [count, context + 1].

    `begin` and `end` are that share's limits, 0 to 1.
    """
    _, held_out = text_parts()
    last = len(held_out) - task.context - 1
    starts = torch.linspace(begin * last, end * last - task.context, count).long()
    return held_out[starts[:, None] + torch.arange(task.context + 1)]


def role_masks(tokens: Tensor) -> dict[str, Tensor]:
    """Return where each role would look: bool [batch, seq, seq], for tokens [batch, seq]."""
    seq = tokens.shape[1]
    place = torch.arange(seq)
    before = (place[None, :] < place[:, None]).expand(len(tokens), -1, -1)
    return {
        "previous": (place[None, :] == place[:, None] - 1).expand(len(tokens), -1, -1),
        "first": before & (place == 0),
        "same byte": before & (tokens[:, None, :] == tokens[:, :, None]),
        "space": before & torch.isin(tokens, SPACES)[:, None, :],
    }


def role_scores(model: ByteModel, windows: Tensor) -> dict[str, Tensor]:
    """Return each head's share of weight in each role: [n_layer, n_head].

    Only queries that have a place to look at count. windows is [batch, seq + 1] bytes; the last
    one is not looked at.
    """
    tokens = windows[:, :-1]
    return {
        role: torch.stack([_share(weights, mask) for weights in head_weights(model, tokens)])
        for role, mask in role_masks(tokens).items()
    }


def chance_scores(windows: Tensor) -> dict[str, float]:
    """Return what an even head scores in each role on windows [batch, seq + 1] of bytes."""
    tokens = windows[:, :-1]
    may = torch.ones(tokens.shape[1], tokens.shape[1]).tril()
    even = (may / may.sum(dim=-1, keepdim=True)).expand(len(tokens), 1, -1, -1)
    return {role: float(_share(even, mask)) for role, mask in role_masks(tokens).items()}


def loss_without(model: ByteModel, gone: Sequence[Head], windows: Tensor) -> float:
    """Return the loss in nats a byte on windows [batch, context + 1] with some heads silent."""
    model = deepcopy(model)
    with torch.no_grad():
        for layer, head in gone:
            attention = model.stack[layer].attention
            attention.needed_W_O.view(attention.n_head, attention.head_dim, -1)[head] = 0
        starts = torch.arange(len(windows)) * windows.shape[1]
        return window_loss(model, windows.flatten(), starts, windows.shape[1] - 1).item()


def random_order(heads: Sequence[Head], seed: int) -> list[Head]:
    """Return the heads in an order drawn from the seed."""
    generator = torch.Generator().manual_seed(seed)
    return [heads[i] for i in torch.randperm(len(heads), generator=generator).tolist()]


def _share(weights: Tensor, mask: Tensor) -> Tensor:
    """The share of weight on a mask, mean over the queries that have a place there: [n_head]."""
    asked = mask.any(dim=-1)  # [batch, seq]
    on_mask = (weights * mask[:, None]).sum(dim=-1)  # [batch, n_head, seq]
    return on_mask.transpose(1, 2)[asked].mean(dim=0)
