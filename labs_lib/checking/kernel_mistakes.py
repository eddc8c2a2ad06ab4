"""What a kernel did wrong, in words: the mistake's own sentence above what the trace says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..exercises.kit import Exercise
from .compare import difference
from .observe import Observation
from .oracle import NOT_KEPT, Mistake, Oracle

CASES_TO_NAME = 6


def no_kernel(exercise: Exercise, program: Any) -> str:
    """The sentence for something that is no kernel."""
    return (
        f"{exercise.called} is of type {type(program).__name__}; a kernel is asked: a cell "
        f"that begins with %%cuda and holds __global__ void {exercise.called}(...)"
    )


def explain(
    exercise: Exercise,
    got: Sequence[Observation],
    want: Sequence[Observation],
    lines: Sequence[str],
    index: int,
    oracle: Oracle,
    case: str,
) -> tuple[list[str], str]:
    """The lines for a student whose kernel is wrong in `case`, and the name of the known mistake.

    `lines` say the difference; above them stands the tutor's sentence, where one is known.
    """
    mistake = _recognise(exercise, got, want, index, oracle)
    says = mistake.says.split("\n") if mistake else []
    nowhere = got[index].raised in ("CompileError", "LaunchError")  # it isn't the case's doing
    where = lines[0] if nowhere else f"In the case “{case}”: {lines[0]}"
    return [*says, where, *lines[1:]], mistake.name if mistake else ""


def around(index: int, cases: int) -> range:
    """The cases in which a kernel is compared with known mistakes: near the first wrong one."""
    return range(max(0, index - CASES_TO_NAME), min(index + CASES_TO_NAME, cases))


def _recognise(
    exercise: Exercise,
    got: Sequence[Observation],
    want: Sequence[Observation],
    index: int,
    oracle: Oracle,
) -> Mistake | None:
    """The known mistake that does the same in the first wrong case, and differs least around it.

    Each case of a known mistake costs a launch, so only a few are looked at; a case that a handout
    doesn't keep speaks neither for a mistake nor against it.
    """
    best: tuple[tuple[int, int], Mistake] | None = None
    window = around(index, len(got) - 1)
    for mistake in oracle.mistakes(exercise, list(got)):
        theirs = mistake.observations
        if len(theirs) != len(got) or not difference(exercise, want[index], theirs[index]):
            continue
        if difference(exercise, theirs[index], got[index]):
            continue
        known = [i for i in window if theirs[i].raised != NOT_KEPT.raised]
        agreed = sum(not difference(exercise, theirs[i], got[i]) for i in known)
        if agreed == len(window):
            return mistake
        alike = (agreed - len(known), agreed)
        if best is None or alike > best[0]:
            best = (alike, mistake)
    return best[1] if best else None
