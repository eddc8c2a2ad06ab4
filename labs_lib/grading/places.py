"""Choose which numbers of an output a graded check prints, and to how many decimals.

A number is printed where it lies so far from a rounding boundary that every program which the
exercise accepts prints the same text: further than the exercise's own tolerance, and than eight
times the difference between the reference in its own precision and in float64. Every row has a
place, and on this seed every wrong program prints something else than the reference.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from ..answers import Answer
from ..checking.check import graded_text
from ..checking.observe import Leaf, Observation, observe_all
from ..checking.syntax import read
from ..checking.verdict import source_of
from ..exercises.kit import Case, Exercise

MOST_DECIMALS = {"float64": 8, "float32": 5, "float16": 2, "bfloat16": 2}
EXACT_DECIMALS = 12
SHORTEST_ROW = 4
MANY_ROWS = 60
SAFETY = 8.0
LEAST_MARGIN = 2e-6

Places = dict[str, dict[str, dict[str, Any]]]  # case index -> path -> {"at": [...], "decimals": d}


class PlacesError(RuntimeError):
    """An exercise that can't be graded on this seed; the message says what stands in the way."""


def choose(exercise: Exercise, answer: Answer, seed: int) -> Places:
    """The places of one exercise for a seed, as `labs_lib.checking.render` reads them.

    Raises:
        PlacesError: if the reference raises or changes its inputs, if a row has no safe place, or
            if a wrong program can't be told from the reference.
    """
    if exercise.kind != "function":
        exact = exercise.kind == "number" and exercise.decimals is None
        return {"0": {"": {"decimals": EXACT_DECIMALS}}} if exact else {}
    want = observe_all(exercise, answer.reference, seed)
    _require_plain(exercise, want)
    others = [observe_all(exercise, right.program, seed) for right in answer.right]
    exact = observe_all(_in_float64(exercise), answer.reference, seed)
    rng = np.random.default_rng([seed, zlib.crc32(exercise.name.encode("utf-8")), 1])
    places: Places = {}
    values: dict[tuple[str, str], _Values] = {}
    for index, observation in enumerate(want):
        for path, leaf in observation.leaves.items():
            if leaf.kind != "number" and (leaf.kind not in _ARRAYS or leaf.value.dtype.kind != "f"):
                continue
            found = _Values.of(exercise, leaf, _at(exact, index, path), _all(others, index, path))
            values[str(index), path] = found
            places.setdefault(str(index), {})[path] = found.place(exercise, index, path, rng)
    _tell_apart(exercise, answer, seed, places, values)
    return places


_ARRAYS = ("tensor", "array")


@dataclass(frozen=True)
class _Values:
    """One leaf of the reference's output: its values, flat, and how far others may lie away."""

    flat: np.ndarray
    tolerated: np.ndarray
    measured: np.ndarray
    row: int
    most: int
    whole: bool  # one number

    @classmethod
    def of(cls, exercise: Exercise, leaf: Leaf, exact: Leaf | None, others: list[Leaf]) -> _Values:
        flat = _flat(leaf)
        number = leaf.kind == "number"
        name = "number" if number else leaf.dtype
        limit = exercise.tolerances.get(name) or exercise.tolerances["float32"]
        size = np.where(np.isfinite(flat), np.abs(flat), 0.0)
        off = _distance(flat, exact)
        measured = SAFETY * np.maximum(off, np.median(off) if off.size else 0.0)
        for other in others:
            measured = np.maximum(measured, 2 * _distance(flat, other))
        exact_number = number and isinstance(leaf.value, int)
        return cls(
            flat,
            np.zeros_like(flat) if exact_number else limit.atol + limit.rtol * size,
            np.zeros_like(flat) if exact_number else np.maximum(measured, LEAST_MARGIN),
            _row_length(leaf),
            MOST_DECIMALS.get(leaf.dtype, 6),
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
        """The most decimals that leave each row a safe place, and the places chosen."""
        for margin in (np.maximum(self.tolerated, self.measured), self.measured):
            for decimals in range(self.most, -1, -1):
                safe = self.safe(decimals, margin)
                if not self.flat.size or _by_row(safe, self.row).any(axis=1).all():
                    chosen = {"decimals": decimals}
                    return chosen if self.whole else {"at": self._pick(safe, rng)} | chosen
        raise PlacesError(
            f"{exercise.name}: case {index + 1} has a row of {path or 'its output'} without any "
            "number that rounds safely; use another seed, or outputs of order one"
        )

    def _pick(self, safe: np.ndarray, rng: np.random.Generator) -> list[int]:
        """Two places in each row (one where there are many rows), telling numbers first."""
        rows = _by_row(np.arange(self.flat.size), self.row, fill=-1)
        each = 1 if len(rows) > MANY_ROWS else 2
        picked: list[int] = []
        for row in rows:
            usable = [int(i) for i in rng.permutation(row[row >= 0]) if safe[i]]
            usable.sort(key=lambda i: not np.isfinite(self.flat[i]) or self.flat[i] % 1 == 0)
            picked += usable[:each]
        return sorted(picked)


def _tell_apart(
    exercise: Exercise,
    answer: Answer,
    seed: int,
    places: Places,
    values: Mapping[tuple[str, str], _Values],
) -> None:
    run = {"seed": seed, "places": {exercise.name: places}}
    texts = {wrong.name: graded_text(exercise, wrong.program, run) for wrong in answer.wrong}
    expected = graded_text(exercise, answer.reference, run)
    for wrong in answer.wrong:
        if texts[wrong.name] != expected or _forbidden(exercise, wrong.program):
            continue
        got = observe_all(exercise, wrong.program, seed)
        if not any(_add(place, got, key, places) for key, place in values.items()):
            raise PlacesError(
                f"{exercise.name}: on this seed the wrong program {wrong.name!r} can't be told "
                "from the reference; its cases need one that shows the difference"
            )


def _forbidden(exercise: Exercise, program: Any) -> bool:
    """Whether a program with right values is caught by reading its text."""
    reading = read(source_of(program), exercise.forbidden)
    return bool(reading.forbidden or reading.doubts)


def _add(values: _Values, got: Sequence[Observation], key: tuple[str, str], places: Places) -> bool:
    """Add a place where a wrong program prints something else; False if there is none."""
    case, path = key
    leaf = _at(got, int(case), path)
    place = places[case][path]
    if leaf is None or values.whole or _flat(leaf).shape != values.flat.shape:
        return False
    decimals = place["decimals"]
    safe = values.safe(decimals, np.maximum(values.tolerated, values.measured))
    differs = np.abs(_flat(leaf) - values.flat) > 10.0**-decimals
    differs |= np.isfinite(_flat(leaf)) != np.isfinite(values.flat)
    telling = np.flatnonzero(safe & differs)
    if not telling.size:
        return False
    place["at"] = sorted({*place["at"], int(telling[0])})
    return True


def _require_plain(exercise: Exercise, want: Sequence[Observation]) -> None:
    for observation in want:
        if observation.raised or observation.changed:
            what = (
                f"raises {observation.raised}: {observation.message}"
                if observation.raised
                else f"changes its input {', '.join(observation.changed)}"
            )
            raise PlacesError(
                f"{exercise.name}: the reference {what}; let `call=` return plain data instead"
            )


def _in_float64(exercise: Exercise) -> Exercise:
    """The same exercise on the same inputs, in double precision."""

    def double(value: Any) -> Any:
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.double() if floating else value

    def cases(rng: np.random.Generator) -> list[Case]:
        return [
            replace(case, args=tree_map(double, case.args), kwargs=tree_map(double, case.kwargs))
            for case in exercise.cases(rng)
        ]

    return replace(exercise, cases=cases)


def _at(observations: Sequence[Observation], index: int, path: str) -> Leaf | None:
    return observations[index].leaves.get(path) if index < len(observations) else None


def _all(runs: Sequence[Sequence[Observation]], index: int, path: str) -> list[Leaf]:
    return [leaf for run in runs if (leaf := _at(run, index, path)) is not None]


def _flat(leaf: Leaf) -> np.ndarray:
    kind = leaf.kind in ("number", "bool") or (
        leaf.kind in _ARRAYS and leaf.value.dtype.kind in "fiub"
    )
    return np.asarray(leaf.value, dtype=np.float64).reshape(-1) if kind else np.zeros(0)


def _distance(flat: np.ndarray, other: Leaf | None) -> np.ndarray:
    """How far another program's values lie away; zero where it has no comparable ones."""
    if other is None or _flat(other).shape != flat.shape:
        return np.zeros_like(flat)
    with np.errstate(invalid="ignore"):
        away = np.abs(_flat(other) - flat)
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
