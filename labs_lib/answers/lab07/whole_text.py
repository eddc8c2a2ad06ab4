"""Wrong answers to induction_score that look for a token's copy among later places, too."""

from __future__ import annotations

import torch

from ..kit import Wrong


def _whole_text(place):
    """Looks for the copy among all other places, later ones too; `place` says what becomes of it.

    `place(last, i, seq)` is the key for query i whose token stands last at `last`, None for none.
    """

    def program(weights, tokens, real=None):
        found = []
        for b, row in enumerate(tokens.tolist()):
            for i, token in enumerate(row):
                others = [j for j, other in enumerate(row) if other == token and j != i]
                if not others or not (real is None or real[b, i]):
                    continue
                key = place(others[-1], i, len(row))
                if key is not None:
                    found.append(weights[b, :, i, key])
        return torch.stack(found).mean(dim=0)

    return program


def _last_of_all(weights, tokens, real=None):
    """A dictionary of where each token stands last, made before any query asks."""
    found = []
    for b, row in enumerate(tokens.tolist()):
        last = {token: i for i, token in enumerate(row)}
        for i, token in enumerate(row):
            inside = last[token] != i and last[token] + 1 < len(row)
            if inside and (real is None or real[b, i]):
                found.append(weights[b, :, i, last[token] + 1])
    return torch.stack(found).mean(dim=0)


def _not_at_the_end(last, i, seq):
    return last + 1 if last + 1 < seq else None


LATER_COPIES = (
    "The copy is looked for in the whole text, so that later ones are found, which the query\n"
    "can't see. Wanted is the last place before the query."
)

WHOLE_TEXT = (
    Wrong("in_the_whole_text", _whole_text(_not_at_the_end), LATER_COPIES),
    Wrong(
        "in_the_whole_text_or_at_its_end",
        _whole_text(lambda last, i, seq: min(last + 1, seq - 1)),
        LATER_COPIES,
    ),
    Wrong(
        "behind_the_end",
        _whole_text(lambda last, i, seq: last + 1),
        "The place after the copy lies behind the end of the text: what was found is no copy\n"
        "before the query, but a later one or the query itself. Look among the places before it.",
    ),
    Wrong("last_of_all_places", _last_of_all, LATER_COPIES),
)
