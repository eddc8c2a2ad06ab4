"""Choose which numbers of an output a graded check prints, and to how many decimals.

A number is printed where it lies so far from a rounding boundary that every program which the
exercise accepts prints the same text: further than the exercise's own tolerance, and than eight
times the difference between the reference in its own precision and in float64. Every row has a
place, and on this seed every wrong program prints something else than the reference.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map

from ...answers import Answer, Wrong
from ...checking.kernels import KernelRuns, built
from ...checking.kernels import read as read_kernel
from ...checking.observe import Leaf, Observation, observe_all
from ...checking.render import case_lines, render
from ...checking.syntax import read
from ...checking.verdict import rules_kept, source_of
from ...exercises.kit import Case, Exercise, Measured
from .rounding import ARRAYS, PlacesError, Values, flattened

EXACT_DECIMALS = 12
ROUNDS = 4

Places = dict[str, dict[str, dict[str, Any]]]  # case index -> path -> {"at": [...], "decimals": d}


@dataclass(frozen=True)
class Chosen:
    """The places of one exercise, and what the reference and each wrong program print there."""

    places: Places
    expected: str
    mistakes: tuple[tuple[Wrong, str | KernelCases], ...]


def choose(exercise: Exercise, answer: Answer, seed: int) -> Chosen:
    """Choose the places of an exercise for a seed, as `labs_lib.checking.render` reads them.

    Raises:
        PlacesError: if the reference raises or changes its inputs, if a row has no safe place, or
            if a wrong program can't be told from the reference.
    """
    want = _see(exercise, answer.reference, seed)
    wrong = {one.name: _see(exercise, one.program, seed, lazily=True) for one in answer.wrong}
    places: Places = {}
    if exercise.is_program:
        _require_plain(exercise, want.observations)
        values = _values(exercise, answer, seed, want.observations)
        rng = np.random.default_rng([seed, zlib.crc32(exercise.name.encode("utf-8")), 1])
        for (case, path), one in values.items():
            places.setdefault(case, {})[path] = one.place(exercise, int(case), path, rng)
        _tell_apart(exercise, answer, want, wrong, places, values, rng)
    elif exercise.kind == "number" and exercise.decimals is None:
        places = {"0": {"": {"decimals": EXACT_DECIMALS}}}
    return Chosen(
        places,
        want.text(exercise, places),
        tuple((one, wrong[one.name].kept(exercise, places)) for one in answer.wrong),
    )


@dataclass(frozen=True)
class KernelCases:
    """What a wrong kernel prints of each case; it is launched when a case is first asked for."""

    observations: Sequence[Observation]
    places: Places

    def __len__(self) -> int:
        return len(self.observations)

    def case(self, index: int) -> list[str]:
        """The lines of one case, without what the trace says of the kernel's own lines."""
        plain = replace(self.observations[index], details=())
        return case_lines(plain, self.places.get(str(index), {}))


@dataclass(frozen=True)
class _Seen:
    """What a program did on the cases of the seed, and which rules it kept."""

    observations: Sequence[Observation]
    measure: Callable[[], Mapping[str, Measured]]

    def text(self, exercise: Exercise, places: Places) -> str:
        """What a graded check of it prints."""
        return render(exercise, self.observations, self.measure(), places)

    def kept(self, exercise: Exercise, places: Places) -> str | KernelCases:
        """The same for recognising it later; a kernel's is made case by case."""
        if exercise.kind == "kernel":
            return KernelCases(self.observations, places)
        return self.text(exercise, places)

    def prints_as(self, other: _Seen, exercise: Exercise, places: Places) -> bool:
        """Whether a graded check of both prints the same; only looks as far as it has to."""
        if exercise.kind != "kernel":
            return self.text(exercise, places) == other.text(exercise, places)
        pairs = zip(self.observations, other.observations, strict=True)
        same = all(
            case_lines(a, places.get(str(i), {})) == case_lines(b, places.get(str(i), {}))
            for i, (a, b) in enumerate(pairs)
        )
        return same and _kept(self.measure()) == _kept(other.measure())


def _see(exercise: Exercise, program: Any, seed: int, *, lazily: bool = False) -> _Seen:
    if exercise.kind == "choice" and isinstance(program, str):
        program = program.strip().lower()
    if exercise.kind == "kernel" and lazily:
        return _Seen(
            KernelRuns(exercise, program, seed), cache(lambda: _rules(exercise, program, seed))
        )
    got = observe_all(exercise, program, seed)
    failed = all(one.raised for one in got)
    rules = _rules(exercise, program, seed) if not failed else {}
    return _Seen(got, lambda: rules)


def _kept(rules: Mapping[str, Measured]) -> dict[str, bool]:
    return {name: bool(found) for name, found in rules.items()}


def _rules(exercise: Exercise, program: Any, seed: int) -> Mapping[str, Measured]:
    return rules_kept(exercise, program, seed) if exercise.rules else {}


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


def _tell_apart(
    exercise: Exercise,
    answer: Answer,
    want: _Seen,
    wrong: Mapping[str, _Seen],
    places: Places,
    values: Mapping[tuple[str, str], Values],
    rng: np.random.Generator,
) -> None:
    """Add places until every wrong program prints something else than the reference."""
    for _ in range(ROUNDS):
        same = [
            one
            for one, _ in zip(answer.wrong, _ready(exercise, answer), strict=True)
            if wrong[one.name].prints_as(want, exercise, places)
            and not _forbidden(exercise, one.program)
        ]
        if not same:
            return
        for one in same:
            got = wrong[one.name].observations
            if not any(_add(mine, got, key, places, rng) for key, mine in values.items()):
                raise PlacesError(
                    f"{exercise.name}: on this seed the wrong program {one.name!r} can't be told "
                    "from the reference; its cases need one that shows the difference"
                )
    raise PlacesError(
        f"{exercise.name}: on this seed no places tell {same[0].name!r} from the reference"
    )


def _ready(exercise: Exercise, answer: Answer) -> Iterable[None]:
    """Kernels are compiled two at a time, ahead of the one that is looked at."""
    if exercise.kind == "kernel":
        return built([one.program for one in answer.wrong])
    return [None] * len(answer.wrong)


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
