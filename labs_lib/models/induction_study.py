"""What lab 07 records of the two models: their induction heads, silenced, beside random ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from labs_lib.models import induction as copying
from labs_lib.models.hooks import Head
from labs_lib.models.model import Model
from labs_lib.models.roles import untrained, weights_of
from labs_lib.models.rounding import rounded
from labs_lib.models.smollm2 import SmolLM2

ONE_BY_ONE = (1, 3, 5, 10)  # how many of the best heads are silenced


def measured_induction(name: str, model: Model) -> dict[str, Any]:
    """Return the score of every head of either model, and of a decoder what silence costs it.

    Scores are those on blocks of random tokens that stand twice. In an encoder, which sees both
    copies from both, nothing is predicted and nothing silenced.
    """
    rows = copying.random_blocks(model.shape.vocab, copying.TO_FIND)
    scores = copying.head_scores(model, rows)
    found: dict[str, Any] = {
        "scores": scores,
        "same token": copying.head_scores(model, rows, after=0),
        "untrained": copying.head_scores(untrained(model), rows[:1]).max(),
        "blocks": list(rows.shape),
    }
    if isinstance(model, SmolLM2):
        heads = copying.best_heads(scores, int((scores > copying.CLEAN).sum()))
        found |= {"heads": heads, **_silenced(model, scores, heads), **_examples(model, heads)}
    return rounded(found)


def random_sets(size: tuple[int, int], heads: Collection[Head]) -> dict[str, list[list[Head]]]:
    """Return sets of as many random heads: from all layers, and from those of `heads`."""
    near = sorted({layer for layer, _ in heads})
    return {
        where: [
            copying.other_heads(size, len(heads), seed, but=heads, layers=layers)
            for seed in range(copying.N_RANDOM)
        ]
        for where, layers in (("anywhere", range(size[0])), ("same layers", near))
    }


def _silenced(model: SmolLM2, scores: torch.Tensor, heads: list[Head]) -> dict[str, Any]:
    rows = copying.random_blocks(model.shape.vocab, copying.TO_JUDGE)
    prose = copying.passages(model)

    def losses(ablate: Collection[Head]) -> dict[str, Any]:
        first, second = copying.copy_losses(model, rows, ablate)
        kinds = ("all", "copied", "others")
        on_prose = dict(zip(kinds, copying.prose_losses(model, prose, ablate), strict=True))
        return {"first copy": first, "second copy": second, "prose": on_prose}

    sets = random_sets((model.shape.n_layer, model.shape.n_head), heads)
    return {
        "prose tokens": prose.numel() - len(prose),
        "prose copied": torch.cat([copying.copied_next(row) for row in prose]).float().mean(),
        "whole": losses(()),
        "without": losses(heads),
        "random": {where: [losses(one) for one in some] for where, some in sets.items()},
        "random heads": sets,
        "one by one": [
            [count, copying.copy_losses(model, rows[:2], copying.best_heads(scores, count))[1]]
            for count in (0, *ONE_BY_ONE)
        ],
    }


def _examples(model: SmolLM2, heads: list[Head]) -> dict[str, Any]:
    tokens, weights = weights_of(model, copying.TEXT)
    said = {
        name: {
            "wanted token": model.words.tokens(model.words.encode(wanted)[:1])[0],
            "whole": copying.next_words(model, text, wanted),
            "without": copying.next_words(model, text, wanted, heads),
        }
        for name, (text, wanted) in copying.EXAMPLES.items()
    }
    return {"tokens": tokens, "weights": weights[heads[0]], "examples": said}
