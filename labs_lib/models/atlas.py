"""What the head atlas of lab 06 shows of a model on one text: every head's weights, and what the
model says, with all heads or with some of them silent.

Weights are packed as whole shares of 65,535, so that those of both models together are 143 KB.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from labs_lib.models.hooks import Head, Hooks
from labs_lib.models.minilm import MiniLM
from labs_lib.models.roles import weights_of
from labs_lib.models.rounding import rounded
from labs_lib.models.smollm2 import SmolLM2

TEXT = "The keys to the cabinet are on the table. The keys to the"
SENTENCE = "A cat sleeps on the sofa."
OTHERS = (
    "On the couch lies a kitten.",
    "A dog sleeps on the sofa.",
    "The sofa is on sale.",
    "The train was late.",
)
MOST_WORDS = 5
WHOLE = 65535  # the packed number of a weight of 1


def measured_atlas(name: str, model: MiniLM | SmolLM2) -> dict[str, Any]:
    """Return the tokens of TEXT, all heads' weights on it, packed, and what the model says."""
    tokens, weights = weights_of(model, TEXT)
    names, said = says(model)
    answer = {"names": names, "said": rounded(said)}
    return {"tokens": tokens, "weights": packed(weights), "answer": answer}


def says(model: MiniLM | SmolLM2, ablate: Collection[Head] = ()) -> tuple[list[str], list[float]]:
    """Return what a model says, by name: probabilities of next words, or nearness of sentences.

    A decoder reads TEXT, and the words are the likeliest of the whole model, whichever head is
    silent. An encoder holds SENTENCE against OTHERS; nearness is the cosine of the two vectors.
    """
    hooks = Hooks(ablate=ablate)
    with torch.no_grad():
        if isinstance(model, MiniLM):
            vectors = model.sentence_vectors([SENTENCE, *OTHERS], hooks=hooks)
            return list(OTHERS), F.cosine_similarity(vectors[:1], vectors[1:]).tolist()
        likely = model(model.ids(TEXT), hooks=hooks, last=True)[0, -1].softmax(dim=-1)
    top = _top_words(model)
    return model.words.tokens(list(top)), likely[list(top)].tolist()


def packed(weights: Tensor) -> str:
    """Return weights from 0 to 1, of any shape, as letters that a JSON file may hold."""
    shares = np.rint(weights.double().numpy() * WHOLE).astype("<u2")
    return base64.b64encode(zlib.compress(shares.tobytes(), 9)).decode("ascii")


def unpacked(letters: str, size: tuple[int, ...]) -> np.ndarray:
    """Return packed weights as shares of WHOLE: uint16, of this shape."""
    return np.frombuffer(zlib.decompress(base64.b64decode(letters)), "<u2").reshape(size)


@cache
def _top_words(model: SmolLM2) -> tuple[int, ...]:
    with torch.no_grad():
        logits = model(model.ids(TEXT), last=True)[0, -1]
    return tuple(logits.topk(MOST_WORDS).indices.tolist())
