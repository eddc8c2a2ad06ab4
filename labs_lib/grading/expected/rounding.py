"""Which numbers of an output round safely, and which of them to print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...checking.observe import Leaf
from ...exercises.kit import Exercise

MOST_DECIMALS = {"float64": 8, "float32": 5, "float16": 2, "bfloat16": 2}
NUMBER_DECIMALS = 6
SHORTEST_ROW = 4
MANY_ROWS = 60
MOST = 0.5  # of the numbers are safe, where there is a choice of decimals
SAFETY = 8.0
LEAST_MARGIN = 2e-6
ARRAYS = ("tensor", "array")


class PlacesError(RuntimeError):
    """An exercise that can't be graded on this seed; the message says what stands in the way."""


@dataclass(frozen=True)
class Values:
    """One leaf of the reference's output: its values, flat, and how far others may lie away."""

    flat: np.ndarray
    tolerated: np.ndarray
    measured: np.ndarray
    row: int
    most: int
    whole: bool  # one number

    @classmethod
    def of(cls, exercise: Exercise, leaf: Leaf, exact: Leaf | None, others: list[Leaf]) -> Values:
        """The values of `leaf`; `exact` is the same leaf in float64, `others` are what further
        right programs return there."""
        flat = flattened(leaf)
        number = leaf.kind == "number"
        name = "number" if number else leaf.dtype
        limit = exercise.tolerances.get(name) or exercise.tolerances["float32"]
        size = np.where(np.isfinite(flat), np.abs(flat), 0.0)
        off = _distance(flat, exact)
        measured = SAFETY * np.maximum(off, np.median(off) if off.size else 0.0)
        for other in others:
            measured = np.maximum(measured, 2 * _distance(flat, other))
        tolerated = limit.atol + limit.rtol * size
        exact_number = number and isinstance(leaf.value, int)
        return cls(
            flat,
            np.zeros_like(flat) if exact_number else tolerated,
            np.zeros_like(flat)
            if exact_number
            else np.maximum(measured, np.minimum(LEAST_MARGIN, tolerated)),
            _row_length(leaf),
            MOST_DECIMALS.get(leaf.dtype, NUMBER_DECIMALS),
            number,
        )

    def safe(self, decimals: int, margin: np.ndarray) -> np.ndarray:
        """Which values lie further than `margin` from where rounding changes its mind."""
        finite = np.isfinite(self.flat)
        scaled = np.where(finite, self.flat, 0.0) * 10.0**decimals
        distance = np.abs(scaled - np.floor(scaled) - 0.5) / 10.0**decimals
        return ~finite | (distance > margin)

    def place(
        self, exercise: Exercise, index: int, path: str, rng: np.random.Generator
    ) -> dict[str, Any]:
        """The most decimals that leave most numbers and each row a safe place, and the places."""
        wide = np.maximum(self.tolerated, self.measured)
        for margin, share in ((wide, MOST), (wide, 0.0), (self.measured, 0.0)):
            for decimals in range(self.most, -1, -1):
                safe = self.safe(decimals, margin)
                if self.covered(safe) and (not safe.size or safe.mean() >= share):
                    chosen = {"decimals": decimals}
                    return chosen if self.whole else {"at": self.pick(safe, rng)} | chosen
        raise PlacesError(
            f"{exercise.name}: case {index + 1} has a row of {path or 'its output'} without any "
            "number that rounds safely; use another seed, or outputs of order one"
        )

    def covered(self, safe: np.ndarray) -> bool:
        """Whether every row has a safe place."""
        return not safe.size or bool(_by_row(safe, self.row).any(axis=1).all())

    def pick(self, safe: np.ndarray, rng: np.random.Generator) -> list[int]:
        """Two places in each row (one where there are many rows), telling numbers first."""
        rows = _by_row(np.arange(self.flat.size), self.row, fill=-1)
        each = 1 if len(rows) > MANY_ROWS else 2
        picked: list[int] = []
        for row in rows:
            usable = [int(i) for i in rng.permutation(row[row >= 0]) if safe[i]]
            usable.sort(key=lambda i: not np.isfinite(self.flat[i]) or self.flat[i] % 1 == 0)
            picked += usable[:each]
        return sorted(picked)


def flattened(leaf: Leaf) -> np.ndarray:
    """The leaf's numbers in a row; none where it holds no real numbers."""
    kind = leaf.kind in ("number", "bool") or (
        leaf.kind in ARRAYS and leaf.value.dtype.kind in "fiub"
    )
    return np.asarray(leaf.value, dtype=np.float64).reshape(-1) if kind else np.zeros(0)


def _distance(flat: np.ndarray, other: Leaf | None) -> np.ndarray:
    """How far another program's values lie away; zero where it has no comparable ones."""
    if other is None or flattened(other).shape != flat.shape:
        return np.zeros_like(flat)
    with np.errstate(invalid="ignore"):
        away = np.abs(flattened(other) - flat)
    return np.where(np.isfinite(away), away, 0.0)


def _row_length(leaf: Leaf) -> int:
    """The length of a row: the last axes that together hold enough numbers to choose from."""
    length = 1
    for size in reversed(leaf.shape):
        length *= size
        if length >= SHORTEST_ROW:
            break
    return max(1, length)


def _by_row(flat: np.ndarray, row: int, fill: Any = False) -> np.ndarray:
    missing = -len(flat) % row
    return np.concatenate([flat, np.full(missing, fill, dtype=flat.dtype)]).reshape(-1, row)
