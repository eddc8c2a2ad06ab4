"""Two small questions to both models: does the first word matter, and who finds the bracket?"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from labs_lib.models.hooks import Hooks
from labs_lib.models.model import Model
from labs_lib.models.roles import by_chance, scores_on, weights_of

BRACKETS = "( a + ( b * c ) ) / ( d - e ) + ( f * ( g + h ) - ( k / m ) )"
FIRST_TOKENS = {
    "smollm2": ("A", "The", ",", "7", "<|im_start|>"),
    "minilm": ("[CLS]", "the", "clock", ",", "7"),
}


def share_on_first(model: Model, text: str, token: str) -> float:
    """Return the mean share, over all heads and queries, of the first place with a token put there.

    An encoder's [CLS] is the first token, so it is what gets replaced.
    """
    ids = model.row(text).clone()
    ids[0, 0] = model.words.id(token)
    hooks = Hooks(keep="weights")
    with torch.no_grad():
        model.look(ids, hooks)
    return float(hooks.stacked("weights")[:, 0, :, 1:, 0].mean())


def bracket_masks(tokens: Sequence[str]) -> dict[str, Tensor]:
    """Return where a bracket's partner is, and where others of its sort are: bool [seq, seq]."""
    seq, opened = len(tokens), []
    partner, others = (torch.zeros(seq, seq, dtype=torch.bool) for _ in range(2))
    marks = [token.strip() for token in tokens]
    for place, mark in enumerate(marks):
        if mark == "(":
            opened.append(place)
        if mark == ")":
            partner[place, opened.pop()] = True
    for place, mark in enumerate(marks):
        if mark == ")":
            others[place] = torch.tensor(
                [m == "(" for m in marks[:place]] + [False] * (seq - place)
            )
    return {
        "closing to its opening": partner,
        "closing to another opening": others & ~partner,
        "opening to its closing": partner.T,
    }


def bracket_heads(model: Model) -> dict[str, object]:
    """Return the best head from a closing bracket to its partner, and what it does elsewhere."""
    tokens, weights = weights_of(model, BRACKETS)
    masks = bracket_masks(tokens)
    scores = {name: scores_on(weights, mask) for name, mask in masks.items()}
    best = int(scores["closing to its opening"].argmax())
    found: dict[str, object] = {name: float(s.flatten()[best]) for name, s in scores.items()}
    found["by chance"] = by_chance(masks["closing to its opening"], model.causal)
    found["best opening to its closing"] = float(scores["opening to its closing"].max())
    return {"head": list(divmod(best, model.shape.n_head)), **found}
