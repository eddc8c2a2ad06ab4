"""What a program prints on the cases of a seed, found out only as far as somebody looks.

An exercise has up to thirty wrong programs, and most of them differ from the reference in the first
case. The rest of their cases, and what rules measure on them, is run where it decides something: to
tell one from the reference, or to name the mistake of an answer that failed.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch

from ...answers import Answer, Wrong
from ...checking.kernels import KernelRuns
from ...checking.observe import Observation, observe, observe_all, untouched_random_state
from ...checking.render import case_lines, render
from ...checking.verdict import rules_kept
from ...exercises.kit import Case, Exercise, Measured
from .printed import Cases, Mistakes

Places = dict[str, dict[str, dict[str, Any]]]  # case index -> path -> {"at": [...], "decimals": d}
DrawCases = Callable[[], Sequence[Case]]
_ALONE = threading.RLock()  # what runs here swallows standard output for the whole process


class Seen:
    """A program on the cases of a seed: its observations, its rules, and what a check prints."""

    def __init__(
        self, exercise: Exercise, program: Any, seed: int, cases: DrawCases | None = None
    ) -> None:
        if exercise.kind == "choice" and isinstance(program, str):
            program = program.strip().lower()
        self.exercise, self.program, self.seed = exercise, program, seed
        self._cases = cases or (lambda: exercise.make_cases(seed))
        self._rules: Mapping[str, Measured] | None = None

    @cached_property
    def observations(self) -> Sequence[Observation]:
        """One for each case, and the first case once more; see `observe_all`."""
        if self.exercise.kind == "kernel":
            return KernelRuns(self.exercise, self.program, self.seed)
        if self.exercise.kind == "function":
            return _Runs(self.exercise, self.program, self._cases())
        return observe_all(self.exercise, self.program, self.seed)

    def rules(self) -> Mapping[str, Measured]:
        """Each rule as measured on the program; none on one that always raises."""
        with _ALONE:
            if self._rules is None:
                measured = bool(self.exercise.rules) and not all(o.raised for o in self)
                found = rules_kept(self.exercise, self.program, self.seed) if measured else {}
                self._rules = found
            return self._rules

    def lines(self, index: int, places: Places) -> list[str]:
        """What a graded check prints of one case, without what is shown and never compared."""
        decimals = self.exercise.decimals
        asked = {"": {"decimals": decimals}} if decimals is not None else {}
        with _ALONE:
            plain = replace(self.observations[index], details=())
        return case_lines(plain, places.get(str(index), asked))

    def text(self, places: Places) -> str:
        """The whole of what a graded check prints."""
        with _ALONE:
            return render(self.exercise, list(self), self.rules(), places)

    def prints_as(self, other: Seen, places: Places) -> bool:
        """Whether a graded check of both prints the same; only looks as far as it has to."""
        return (
            len(self) == len(other)
            and all(self.lines(i, places) == other.lines(i, places) for i in range(len(self)))
            and _kept(self.rules()) == _kept(other.rules())
        )

    def __len__(self) -> int:
        return len(self.observations)

    def __iter__(self) -> Iterator[Observation]:
        return iter(self.observations)


@dataclass(frozen=True)
class Printing(Cases):
    """What a wrong program prints of each case; run when a case is first asked for."""

    program: Seen
    places: Places

    def __len__(self) -> int:
        return len(self.program)

    def case(self, index: int) -> list[str]:
        """The lines of one case."""
        return self.program.lines(index, self.places)


def drawn_once(exercise: Exercise, seed: int) -> DrawCases:
    """The cases of a seed, drawn when they are first asked for; no program changes them."""
    return cache(lambda: exercise.make_cases(seed))


def mistakes_of(exercise: Exercise, answer: Answer, seed: int, places: Places) -> Mistakes:
    """The known mistakes of an exercise, to recognise one by what it prints on a seed."""
    cases = drawn_once(exercise, seed)
    seen = [(one, Seen(exercise, one.program, seed, cases)) for one in answer.wrong]
    return tuple((one, printing(program, places)) for one, program in seen)


def printing(program: Seen, places: Places) -> str | Cases:
    """What a program prints, case by case as it is asked for; a value's whole text."""
    return Printing(program, places) if program.exercise.is_program else program.text(places)


def texts_of(wrong: Sequence[tuple[Wrong, Seen]], places: Places) -> Mistakes:
    """The same as whole texts, rules and all; of kernels, which are dear, case by case."""
    return tuple(
        (one, printing(seen, places) if seen.exercise.kind == "kernel" else seen.text(places))
        for one, seen in wrong
    )


class _Runs(Sequence[Observation]):
    """A function's observations, made in their order: it may keep something between its calls."""

    def __init__(self, exercise: Exercise, program: Any, cases: Sequence[Case]) -> None:
        self._exercise, self._program = exercise, program
        self._cases = [*cases, cases[0]]
        self._made: list[Observation] = []
        self._chance: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        with _ALONE:
            while len(self._made) <= number:
                self._made.append(self._next())
            return self._made[number]

    def _next(self) -> Observation:
        """The next case, with chance as it was after the one before."""
        with untouched_random_state():
            if self._chance is not None:
                python, numpys, torchs = self._chance
                random.setstate(python)
                np.random.set_state(numpys)
                torch.random.set_rng_state(torchs)
            made = observe(self._exercise, self._program, self._cases[len(self._made)])
            self._chance = random.getstate(), np.random.get_state(), torch.random.get_rng_state()
        return made


def _kept(rules: Mapping[str, Measured]) -> dict[str, bool]:
    return {name: bool(found) for name, found in rules.items()}
