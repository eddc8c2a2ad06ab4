"""Choose which numbers of an output a graded check prints, and to how many decimals.

A number is printed where it lies so far from a rounding boundary that every program which the
exercise accepts prints the same text: further than the exercise's own tolerance, and than eight
times the difference between the reference in its own precision and in float64. Every row has a
place, and on this seed every wrong program prints something else than the reference.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from ...answers import Answer, Wrong
from ...checking.kernels import built
from ...checking.kernels import read as read_kernel
from ...checking.observe import Leaf, Observation, observe_all
from ...checking.render import of_rule
from ...checking.syntax import read
from ...checking.verdict import rules_kept, source_of
from ...exercises.kit import Case, Exercise, Measured
from .printed import Mistakes
from .rounding import ARRAYS, PlacesError, Values, flattened
from .seen import Places, Seen, drawn_once, texts_of

EXACT_DECIMALS = 12
ROUNDS = 4


@dataclass(frozen=True)
class Chosen:
    """The places of one exercise, and what the reference prints there."""

    places: Places
    expected: str
    wrong: tuple[tuple[Wrong, Seen], ...]

    @property
    def mistakes(self) -> Mistakes:
        """What each wrong program prints, to the end; see `mistakes_of` for the quick way."""
        return texts_of(self.wrong, self.places)


def choose(exercise: Exercise, answer: Answer, seed: int) -> Chosen:
    """Choose the places of an exercise for a seed, as `labs_lib.checking.render` reads them.

    Raises:
        PlacesError: if the reference raises or changes its inputs, if a row has no safe place, or
            if a wrong program can't be told from the reference.
    """
    cases = drawn_once(exercise, seed)
    want = Seen(exercise, answer.reference, seed, cases)
    wrong = [(one, Seen(exercise, one.program, seed, cases)) for one in answer.wrong]
    places: Places = {}
    if exercise.is_program:
        if exercise.kind == "kernel":
            want.observations = observe_all(exercise, answer.reference, seed)  # two at a time
        _require_plain(exercise, want.observations)
        values = _values(exercise, answer, seed, want.observations)
        rng = np.random.default_rng([seed, zlib.crc32(exercise.name.encode("utf-8")), 1])
        for (case, path), one in values.items():
            places.setdefault(case, {})[path] = one.place(exercise, int(case), path, rng)
        places |= places_of_rules(exercise, answer, seed, want.rules(), rng)
        _tell_apart(exercise, want, wrong, places, values, rng)
    elif exercise.kind == "number" and exercise.decimals is None:
        places = {"0": {"": {"decimals": EXACT_DECIMALS}}}
    return Chosen(places, want.text(places), tuple(wrong))


def _values(
    exercise: Exercise, answer: Answer, seed: int, want: Sequence[Observation]
) -> dict[tuple[str, str], Values]:
    """The numbers of the reference's output by case and path, with how far others lie away."""
    others, exact = [], []
    if exercise.kind == "function":  # a kernel's types are its own, and its tolerances are wide
        others = [observe_all(exercise, right.program, seed) for right in answer.right]
        exact = observe_all(_in_float64(exercise), answer.reference, seed)
    values = {}
    for index, observation in enumerate(want):
        for path, leaf in observation.leaves.items():
            if leaf.kind == "number" or (leaf.kind in ARRAYS and leaf.value.dtype.kind == "f"):
                values[str(index), path] = Values.of(
                    exercise, leaf, _at(exact, index, path), _all(others, index, path)
                )
    return values


def places_of_rules(
    exercise: Exercise,
    answer: Answer,
    seed: int,
    rules: Mapping[str, Measured],
    rng: np.random.Generator,
) -> Places:
    """Places in what the reference returns while its rules are measured."""
    found: Places = {}
    if not any(measured.returned for measured in rules.values()):
        return found
    exact = rules_kept(exercise, answer.reference, seed, _double)
    for name, measured in rules.items():
        for path, leaf in measured.returned.items():
            values = Values.of(exercise, leaf, exact[name].returned.get(path), [])
            place = values.place(exercise, -1, path, rng)
            found.setdefault(of_rule(name), {})[path] = place
    return found


def _tell_apart(
    exercise: Exercise,
    want: Seen,
    wrong: Sequence[tuple[Wrong, Seen]],
    places: Places,
    values: Mapping[tuple[str, str], Values],
    rng: np.random.Generator,
) -> None:
    """Add places until every wrong program prints something else than the reference."""
    for _ in range(ROUNDS):
        same = [
            (one, seen)
            for (one, seen), _ in zip(wrong, _ready(exercise, wrong), strict=True)
            if seen.prints_as(want, places) and not _forbidden(exercise, one.program)
        ]
        if not same:
            return
        for one, seen in same:
            got = seen.observations
            if not any(_add(mine, got, key, places, rng) for key, mine in values.items()):
                raise PlacesError(
                    f"{exercise.name}: on this seed the wrong program {one.name!r} can't be told "
                    "from the reference; its cases need one that shows the difference"
                )
    raise PlacesError(
        f"{exercise.name}: on this seed no places tell {same[0][0].name!r} from the reference"
    )


def _ready(exercise: Exercise, wrong: Sequence[tuple[Wrong, Seen]]) -> Iterable[None]:
    """Kernels are compiled two at a time, ahead of the one that is looked at."""
    if exercise.kind == "kernel":
        return built([one.program for one, _ in wrong])
    return [None] * len(wrong)


def _forbidden(exercise: Exercise, program: Any) -> bool:
    """Whether a program with right values is caught by reading its text."""
    if exercise.kind == "kernel":
        return bool(read_kernel(program, exercise.forbidden).forbidden)
    reading = read(source_of(program), exercise.forbidden)
    return bool(reading.forbidden or reading.doubts)


def _add(
    values: Values,
    got: Sequence[Observation],
    key: tuple[str, str],
    places: Places,
    rng: np.random.Generator,
) -> bool:
    """Add a place where a wrong program prints something else; False if there is none.

    Where large numbers differ, fewer decimals round them safely.
    """
    case, path = key
    leaf = _at(got, int(case), path)
    if leaf is None or values.whole or flattened(leaf).shape != values.flat.shape:
        return False
    margin = np.maximum(values.tolerated, values.measured)
    for decimals in range(places[case][path]["decimals"], -1, -1):
        safe = values.safe(decimals, margin)
        with np.errstate(invalid="ignore"):  # inf - inf: the next line
            differs = np.abs(flattened(leaf) - values.flat) > 10.0**-decimals
        differs |= np.isfinite(flattened(leaf)) != np.isfinite(values.flat)
        telling = np.flatnonzero(safe & differs)
        if telling.size and values.covered(safe):
            old = [i for i in places[case][path]["at"] if safe[i]]
            at = {*old, *values.pick(safe, rng), int(telling[0])}
            places[case][path] = {"at": sorted(at), "decimals": decimals}
            return True
    return False


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

    make = exercise.cases
    if make is None:
        return exercise

    def cases(rng: np.random.Generator) -> list[Case]:
        return [
            replace(case, args=tree_map(_double, case.args), kwargs=tree_map(_double, case.kwargs))
            for case in make(rng)
        ]

    return replace(exercise, cases=cases)


def _double(value: Any) -> Any:
    floating = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if floating else value


def _at(observations: Sequence[Observation], index: int, path: str) -> Leaf | None:
    return observations[index].leaves.get(path) if index < len(observations) else None


def _all(runs: Sequence[Sequence[Observation]], index: int, path: str) -> list[Leaf]:
    return [leaf for run in runs if (leaf := _at(run, index, path)) is not None]
