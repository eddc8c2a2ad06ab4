"""What a head looks at: roles as masks, the score of every head, and what it is worth by chance.

A role is a boolean mask [seq, seq], True where it would look. A head's score is the share of its
weight that falls on the mask, mean over the queries that have a True at all.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from labs_lib.models.hooks import Hooks
from labs_lib.models.model import Model

ROLES = ("previous", "next", "first", "punctuation", "same word")
FURTHEST = 8  # fixed offsets that are tried as a baseline
CONTROL_STD = 0.02
Which = TypeVar("Which", bound=Model)


def role_masks(tokens: Sequence[str], *, causal: bool) -> dict[str, Tensor]:
    """Return the mask of each role for a text's tokens: bool [seq, seq].

    The first query, and under a causal mask all that lies ahead, is never asked for.
    """
    seq = len(tokens)
    place = torch.arange(seq)
    distance = place[None, :] - place[:, None]  # key - query
    words = [token.strip().lower() for token in tokens]
    same = torch.tensor([[a == b and a.isalnum() for b in words] for a in words])
    marks = torch.tensor([bool(word) and not any(map(str.isalnum, word)) for word in words])
    masks = {
        "previous": distance == -1,
        "next": distance == 1,
        "first": (place == 0).expand(seq, seq),
        "punctuation": marks.expand(seq, seq),
        "same word": same & (distance != 0),
    }
    asked = (place[:, None] > 0) & visible(seq, causal)
    return {role: mask & asked for role, mask in masks.items()}


def visible(seq: int, causal: bool) -> Tensor:
    """Return where a query may look: bool [seq, seq]."""
    everywhere = torch.ones(seq, seq, dtype=torch.bool)
    return everywhere.tril() if causal else everywhere


def scores_on(weights: Tensor, mask: Tensor) -> Tensor:
    """Return each head's share of weight on a mask [seq, seq], for weights [..., seq, seq].

    NaN where no query has a place to look at.
    """
    asked = mask.any(dim=-1)
    return (weights * mask).sum(dim=-1)[..., asked].mean(dim=-1)


def by_chance(mask: Tensor, causal: bool) -> float:
    """Return what a head that spreads its weight evenly scores on a mask [seq, seq]."""
    may = visible(len(mask), causal).float()
    return float(scores_on(may / may.sum(dim=-1, keepdim=True), mask))


def by_offset(*masks: Tensor) -> tuple[int, float]:
    """Return the best fixed offset (key - query) and what a head scores that always looks there.

    With several masks, one offset has to serve them all, and the score is their mean.
    """
    found = {}
    for offset in (k for k in range(-FURTHEST, FURTHEST + 1) if k):
        shares = [float(m.diagonal(offset).sum() / m.any(dim=-1).sum()) for m in masks]
        found[offset] = sum(shares) / len(shares)
    best = max(found, key=found.__getitem__)
    return best, found[best]


def weights_of(model: Model, text: str) -> tuple[list[str], Tensor]:
    """Return a text's tokens and all weights: [n_layer, n_head, seq, seq]."""
    ids = model.row(text)
    hooks = Hooks(keep="weights")
    with torch.no_grad():
        model.look(ids, hooks)
    return model.words.tokens(ids[0].tolist()), hooks.stacked("weights")[:, 0]


def head_roles(model: Model, texts: Sequence[str]) -> dict[str, Tensor]:
    """Return the score of every head for each role, mean over texts: [n_layer, n_head]."""
    causal = model.causal
    total: dict[str, list[Tensor]] = {role: [] for role in ROLES}
    for text in texts:
        tokens, weights = weights_of(model, text)
        for role, mask in role_masks(tokens, causal=causal).items():
            if mask.any():
                total[role].append(scores_on(weights, mask))
    return {role: torch.stack(found).mean(0) for role, found in total.items() if found}


def role_baselines(model: Model, texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return, for each role, what chance and the best fixed offset would score, mean over texts."""
    causal, found = model.causal, {}
    every = [role_masks(_tokens(model, text), causal=causal) for text in texts]
    for role in ROLES:
        masks = [masks[role] for masks in every if masks[role].any()]
        if not masks:
            continue
        offset, share = by_offset(*masks)
        found[role] = {
            "chance": sum(by_chance(mask, causal) for mask in masks) / len(masks),
            "offset": offset,
            "by offset": share,
        }
    return found


def untrained(model: Which, seed: int = 0) -> Which:
    """Return the same model with random matrices in place of the trained ones, as a control."""
    generator = torch.Generator().manual_seed(seed)
    shared: dict[int, object] = {id(x): x for x in (model.tokenizer, model.attend)}
    for weight in model.parameters():
        shared[id(weight)] = nn.Parameter(weight.detach()[:0], requires_grad=False)
    control = copy.deepcopy(model, shared)
    for (name, empty), trained in zip(control.named_parameters(), model.parameters(), strict=True):
        if trained.ndim < 2:
            is_gain = "norm" in name and not name.endswith("bias")
            empty.data = torch.ones_like(trained) if is_gain else torch.zeros_like(trained)
        else:
            empty.data = torch.empty_like(trained).normal_(0.0, CONTROL_STD, generator=generator)
    return control


def _tokens(model: Model, text: str) -> list[str]:
    return model.words.tokens(model.row(text)[0].tolist())
