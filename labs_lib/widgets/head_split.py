"""Lab 02: where each head lies in memory, with a wrong reshape to compare.

front/head_split.mjs computes the same in the browser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from ..plots.byte_map import byte_map, owners
from .explorer import Explorer
from .knobs import choice, head_knobs, slider
from .still import OwnFunctionFailed, students_own

Split = Callable[[Tensor, int], Tensor]

RIGHT, WRONG, OWN = "cut the width, then swap the axes", "one reshape (wrong)", "your split_heads"
BYTES = 4  # of a float32
_UNWRITTEN = "Write split_heads above, run that cell and then this one, or choose another way."


def head_split(
    n_head: int = 12, d_model: int = 768, *, seq: int = 10, split: Split | None = None
) -> Explorer:
    """An explorer of where the numbers of each head lie in memory, for any n_head and d_model.

    The last control takes the right split, or the wrong one that only has the right shape. With
    `split`, a function of x [batch, seq, width] and n_head, there is a third choice: your own.
    """
    ways: dict[str, Split] = {RIGHT: _right, WRONG: _wrong}
    if split is not None:
        ways[OWN] = split

    def draw(figure: Figure, n_head: int, d_model: int, seq: int, way: str) -> str:
        return _draw(figure, ways[way], n_head, d_model, seq)

    def ask(n_head: int, d_model: int, seq: int, way: str) -> dict[str, Any] | None:
        return _seen(ways[OWN], n_head, d_model, seq) if way == OWN else None

    knobs = [
        *head_knobs(n_head, d_model),
        slider("seq", seq, 1, 16, "how many tokens"),
        choice("way", ways, "how the width becomes heads", value=RIGHT if split is None else OWN),
    ]
    return Explorer(
        "Where each head lies in memory", knobs, draw, script="head_split", ask=ask, size=(8.0, 3.6)
    )


def agreement(heads: Tensor) -> float:
    """The share of the places in `heads` [n_head, seq, head_dim] that the right split has there."""
    n_head, seq, head_dim = heads.shape
    right = _right(_memory(seq, n_head * head_dim), n_head)[0]
    return float((heads == right).double().mean())


def _draw(figure: Figure, split: Split, n_head: int, d_model: int, seq: int) -> str:
    try:
        heads = _heads(split, n_head, d_model, seq)
    except NotImplementedError:
        figure.text(0.02, 0.5, "your split_heads is not written yet", fontsize=11)
        return _UNWRITTEN
    title, sentence = _words(heads)
    byte_map(heads, title=title, ax=figure.add_subplot())
    return sentence


def _seen(split: Split, n_head: int, d_model: int, seq: int) -> dict[str, Any]:
    """What the browser draws of a split: the head that reads each place of [seq, d_model]."""
    try:
        heads = _heads(split, n_head, d_model, seq)
    except NotImplementedError:
        return {"empty": "your split_heads is not written yet", "message": _UNWRITTEN}
    title, sentence = _words(heads)
    owner = owners(heads).astype(np.uint16).tobytes()
    return {"owner": owner, "title": title, "message": sentence}


def _heads(split: Split, n_head: int, d_model: int, seq: int) -> Tensor:
    """Where a split takes each number from: [n_head, seq, head_dim].

    Raises: OwnFunctionFailed for a split that raises, or gives another shape.
    """
    with students_own():
        heads = split(_memory(seq, d_model), n_head)
    wanted = (1, n_head, seq, d_model // n_head)
    if not isinstance(heads, Tensor) or heads.shape != wanted:
        got = list(heads.shape) if isinstance(heads, Tensor) else type(heads).__name__
        raise OwnFunctionFailed(
            f"Your function gave {got}; [1, n_head, seq, head_dim] is {list(wanted)}."
        )
    return heads[0]


def _words(heads: Tensor) -> tuple[str, str]:
    n_head, seq, head_dim = heads.shape
    share = agreement(heads)
    sentence = f"{_distances(heads)} {_judgement(share, n_head, seq)}"
    return _title(share, owners(heads), n_head, head_dim), sentence


def _title(share: float, owner: np.ndarray, n_head: int, head_dim: int) -> str:
    """What is seen of a split, from the head that reads each place of [seq, d_model]."""
    if share == 1:
        of_all = f"{head_dim} of the {n_head * head_dim} numbers of every query"
        return f"Each head has {of_all}" if n_head > 1 else "One head has it all"
    own = np.arange(owner.shape[1]) // head_dim
    if (owner == own).all():
        return "Each head has its own numbers, in another order"
    if all((owner == head).any(axis=1).all() for head in range(n_head)):
        return "Each head has numbers of every query, but not those of its own block"
    return "A head has pieces of some queries and nothing of others"


def _distances(places: Tensor) -> str:
    walks = (("a head's next number", -1), ("its next token", -2), ("the next head", -3))
    parts = []
    for words, axis in walks:
        if places.shape[axis] > 1:
            first, second = places.select(axis, 0), places.select(axis, 1)
            parts.append(f"{int(second.flatten()[0] - first.flatten()[0]):,} to {words}")
    return f"Distances, in places of {BYTES} bytes: {', '.join(parts) or 'none, it is one number'}."


def _judgement(share: float, n_head: int, seq: int) -> str:
    if share < 1:
        return f"{100 * share:.2f} % of the numbers are where they belong."
    if n_head == 1 or seq == 1:
        few = "one head" if n_head == 1 else "one token"
        return f"Every number is where it belongs; with {few} the wrong reshape is right too."
    return "Every number is where it belongs."


def _memory(seq: int, d_model: int) -> Tensor:
    return torch.arange(seq * d_model, dtype=torch.float64).view(1, seq, d_model)


def _right(x: Tensor, n_head: int) -> Tensor:
    size = x.shape[2] // n_head
    columns = [x[:, :, head * size : head * size + size] for head in range(n_head)]
    return torch.stack(columns, dim=1)  # a copy; the panel only shows where numbers come from


def _wrong(x: Tensor, n_head: int) -> Tensor:
    batch, seq, width = x.shape
    return x.reshape(batch, n_head, seq, width // n_head)
