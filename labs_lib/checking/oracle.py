"""Where a check learns what is wanted: from the answers, or in a handout from stored outputs."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from ..exercises.kit import Exercise
from .compare import same
from .observe import Observation, observe_all

VISIBLE_SEED = 0


class Withheld(LookupError):
    """What a check needs was left out of this copy of the course."""


@dataclass(frozen=True)
class Mistake:
    """A known wrong program: its name, its sentence, and what it does on the visible cases."""

    name: str
    says: str
    observations: list[Observation]


class Oracle(Protocol):
    """Answers the two questions that a check asks about an exercise."""

    def judge(self, exercise: Exercise, got: list[Observation]) -> list[Observation] | bool:
        """The wanted observations; or, where they are kept as hashes, whether `got` is right."""

    def mistakes(self, exercise: Exercise, got: list[Observation]) -> Iterator[Mistake]:
        """The known mistakes to compare with, likeliest first."""

    def because(self, exercise: Exercise, got: list[Observation]) -> str:
        """What to read after a right answer; may be empty."""


class LiveOracle:
    """Runs the reference and the wrong programs of `labs_lib.answers` on the visible cases."""

    def __init__(self, seed: int = VISIBLE_SEED) -> None:
        self.seed = seed

    def judge(self, exercise: Exercise, got: list[Observation]) -> list[Observation]:
        """The reference's observations."""
        return _reference(exercise.name, self.seed)

    def mistakes(self, exercise: Exercise, got: list[Observation]) -> Iterator[Mistake]:
        """Each wrong program of the answer, run on the same cases."""
        yield from _mistakes(exercise.name, self.seed)

    def because(self, exercise: Exercise, got: list[Observation]) -> str:
        """The answer's own sentence."""
        return _answer(exercise.name).because


def oracle_for(exercise: Exercise) -> Oracle:
    """The live oracle where the lab's answers are shipped, else the stored one.

    Raises:
        Withheld: where this copy has neither.
    """
    if importlib.util.find_spec(f"labs_lib.answers.{exercise.lab}") is not None:
        return LiveOracle()
    from .stored import StoredOracle

    stored = StoredOracle.load(exercise.lab)
    if stored is None or not stored.knows(exercise.name):
        raise Withheld(
            f"{exercise.name} can't be checked here: this copy of the course holds neither its "
            "answer nor its stored outputs. Ask for a handout that includes it."
        )
    return stored


def matches(exercise: Exercise, want: list[Observation], got: list[Observation]) -> bool:
    """Whether two lists of observations are equal within tolerance; lengths may differ."""
    return len(want) == len(got) and same(exercise, want, got)


def _answer(name: str):
    return importlib.import_module("labs_lib.answers").answer(name)


@cache
def _reference(name: str, seed: int) -> list[Observation]:
    from ..exercises import exercise

    return observe_all(exercise(name), _answer(name).reference, seed)


@cache
def _mistakes(name: str, seed: int) -> tuple[Mistake, ...]:
    from ..exercises import exercise

    item = exercise(name)
    return tuple(
        Mistake(wrong.name, wrong.says, observe_all(item, wrong.program, seed))
        for wrong in _answer(name).wrong
    )
