"""Where a check learns what is wanted: from the answers, or in a handout from stored outputs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from ..exercises import exercise as find_exercise
from ..exercises.kit import Exercise
from . import shipped
from .compare import same
from .kernels import KernelRuns, built
from .observe import Observation, observe_all

VISIBLE_SEED = 0
NOT_KEPT = Observation(raised="not kept")  # stands for a mistake's case that isn't known here


class NothingToCompare(LookupError):
    """This copy of the course holds neither the exercise's answer nor its stored outputs."""


@dataclass(frozen=True)
class Mistake:
    """A known wrong program: its name, its sentence, and what it does on the visible cases."""

    name: str
    says: str
    observations: Sequence[Observation]


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

    def judge(self, exercise: Exercise, got: list[Observation]) -> list[Observation]:
        """The reference's observations."""
        return _reference(exercise.name)

    def mistakes(self, exercise: Exercise, got: list[Observation]) -> Iterator[Mistake]:
        """Each wrong program of the answer, run on the same cases; kernels when they are asked."""
        if exercise.kind == "kernel":
            yield from _kernel_mistakes(exercise.name)
        else:
            yield from _mistakes(exercise.name)

    def because(self, exercise: Exercise, got: list[Observation]) -> str:
        """The answer's own sentence."""
        return shipped.answer(exercise.name).because


def oracle_for(exercise: Exercise) -> Oracle:
    """The live oracle where the lab's answers are shipped, else the stored one.

    Raises:
        NothingToCompare: where this copy has neither.
    """
    if shipped.has_answers(exercise.lab):
        return LiveOracle()
    from .stored import StoredOracle

    stored = StoredOracle.load(exercise.lab)
    if stored is None or not stored.knows(exercise.name):
        raise NothingToCompare(
            f"{exercise.name} can't be checked here: this copy of the course holds neither its "
            "answer nor its stored outputs. Ask for a handout that includes it."
        )
    return stored


def matches(exercise: Exercise, want: Sequence[Observation], got: Sequence[Observation]) -> bool:
    """Whether two lists of observations are equal within tolerance; lengths may differ."""
    return len(want) == len(got) and same(exercise, want, got)


@cache
def _reference(name: str) -> list[Observation]:
    return observe_all(find_exercise(name), shipped.answer(name).reference, VISIBLE_SEED)


def _kernel_mistakes(name: str) -> Generator[Mistake]:
    """Wrong kernels, compiled two at a time ahead of the one that is looked at."""
    texts = [wrong.program for wrong in shipped.answer(name).wrong]
    ready = built(texts)
    try:
        for mistake, _ in zip(_lazy_mistakes(name), ready, strict=True):
            yield mistake
    finally:
        ready.close()


@cache
def _lazy_mistakes(name: str) -> tuple[Mistake, ...]:
    item = find_exercise(name)
    return tuple(
        Mistake(wrong.name, wrong.says, KernelRuns(item, wrong.program, VISIBLE_SEED))
        for wrong in shipped.answer(name).wrong
    )


@cache
def _mistakes(name: str) -> tuple[Mistake, ...]:
    item = find_exercise(name)
    return tuple(
        Mistake(wrong.name, wrong.says, observe_all(item, wrong.program, VISIBLE_SEED))
        for wrong in shipped.answer(name).wrong
    )
