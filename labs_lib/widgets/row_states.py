"""The states m, l, o of a row of scores that arrives block by block, for lab 10's explorer.

Nothing here merges two states: a student's own function does that, and what the explorer plays by
itself is made from the scores that have come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .still import students_own

N_KEY = 16
SCORES = ("in random order", "rising", "falling")
RESCALES = ("l and o", "only l", "only o", "neither", "upside down")
_SEED = (10, 4, 24)
State = tuple[Tensor, Tensor, Tensor]
Merge = Callable[..., Any]


@dataclass(frozen=True)
class Moment:
    """One row after `at` blocks: its scores [n], values [n, head_dim], and its states so far.

    A state's o holds head_dim numbers and then, for each key, what it counts for.
    """

    scores: Tensor
    values: Tensor
    block: int
    at: int
    states: list[State]

    @property
    def seen(self) -> int:
        """How many keys have come."""
        return min(self.at * self.block, N_KEY)

    @property
    def output(self) -> Tensor:
        """o / l as it stands, [head_dim]; zeros before the first block."""
        _, l, o = self.states[self.at]
        return o[:-N_KEY] / l if float(l) > 0 else torch.zeros_like(o[:-N_KEY])

    @property
    def wanted(self) -> Tensor:
        """The softmax's output over the keys that have come."""
        return self.scores[: self.seen].softmax(0) @ self.values[: self.seen]

    @property
    def error(self) -> float:
        """How far the output is from it, at most."""
        return float((self.output - self.wanted).abs().max())


@cache
def tables(most_heads: int, most_width: int) -> Mapping[str, np.ndarray]:
    """The scores and values of as many heads as there may be, float32, equal everywhere."""
    rng = np.random.Generator(np.random.PCG64(_SEED))
    scores = rng.uniform(-5, 5, (most_heads, N_KEY)).astype(np.float32)
    values = rng.uniform(-2, 2, (most_heads, N_KEY, most_width)).astype(np.float32)
    return {"scores": scores, "values": values}


def numbers(
    most: Mapping[str, np.ndarray], n_head: int, d_model: int, order: str
) -> tuple[Tensor, Tensor]:
    """The tables' first scores [n_head, 16] and values [n_head, 16, head_dim]."""
    scores = torch.from_numpy(most["scores"][:n_head].copy())
    values = torch.from_numpy(most["values"][:n_head, :, : d_model // n_head].copy())
    if order != SCORES[0]:
        scores = scores.sort(dim=-1, descending=order == SCORES[2]).values
    return scores, values


def play(scores: Tensor, values: Tensor, block: int, way: str = RESCALES[0]) -> list[State]:
    """The state before the first block and after each, for scores [n_head, n_key].

    A key counts exp(score - what it is measured against), and l and o are sums of that. Where a
    way corrects a sum, that is the largest score of now; where it doesn't, the largest of the
    key's own block; where it corrects by the inverse, as far on the other side of that.
    """
    reached = scores.cummax(-1).values
    seen = [min(start + block, N_KEY) for start in range(0, N_KEY, block)]
    own = torch.cat([p.amax(-1, True).expand_as(p) for p in scores.split(block, -1)], -1)
    states = [_empty(values)]
    for count in seen:
        now = reached[:, count - 1 : count].expand(-1, count)
        at_first = own[:, :count]
        against = {True: now, False: at_first}
        l_of, o_of = against[way in RESCALES[:2]], against[way in (RESCALES[0], RESCALES[2])]
        if way == RESCALES[4]:
            l_of = o_of = 2 * at_first - now
        counts = (scores[:, :count] - l_of).exp(), (scores[:, :count] - o_of).exp()
        states.append((now[:, 0], counts[0].sum(-1), _carried(counts[1], values)))
    return states


def play_own(merge: Merge, scores: Tensor, values: Tensor, block: int) -> list[State] | str:
    """The states that a student's merge makes of scores [n_head, n_key], or why it makes none."""
    states = [_empty(values)]
    for start in range(0, N_KEY, block):
        new = _alone(scores, values, start, min(start + block, N_KEY))
        try:
            with students_own():
                made = merge(tuple(t.clone() for t in states[-1]), new)
        except NotImplementedError:
            return "Write merge_softmax_states and check it; then this panel plays your function."
        if not _is_state(made, states[0]):
            shapes = [list(t.shape) for t in states[0]]
            return (
                "Your function gave something else than a state (m, l, o) with m and l "
                f"{shapes[0]} and o {shapes[2]}; its check says more."
            )
        states.append(tuple(t.detach() for t in made))
    return states


def _empty(values: Tensor) -> State:
    n_head, _, head_dim = values.shape
    minus = values.new_full((n_head,), -torch.inf)
    return minus, torch.zeros_like(minus), values.new_zeros(n_head, head_dim + N_KEY)


def _alone(scores: Tensor, values: Tensor, start: int, stop: int) -> State:
    """The state of one block by itself; beside o stands what each key counts for."""
    shares = scores[:, start:stop].softmax(-1)
    counts = torch.zeros_like(scores)
    counts[:, start:stop] = shares / shares.amax(-1, True)
    return scores[:, start:stop].amax(-1), counts.sum(-1), _carried(counts, values)


def _carried(counts: Tensor, values: Tensor) -> Tensor:
    """o [n_head, head_dim] of keys that count for so much, and beside it the counts themselves."""
    n_head, n = counts.shape
    o = (counts[:, None] @ values[:, :n])[:, 0]
    return torch.cat([o, counts, counts.new_zeros(n_head, N_KEY - n)], -1)


def _is_state(made: Any, like: State) -> bool:
    if not isinstance(made, (tuple, list)) or len(made) != 3:
        return False
    pairs = zip(made, like, strict=True)
    return all(isinstance(t, Tensor) and t.shape == other.shape for t, other in pairs)
