"""Which known wrong program a student's function behaves like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..exercises.kit import Exercise
from .compare import difference
from .observe import Observation
from .oracle import Mistake, Oracle, matches


def recognise(
    exercise: Exercise,
    got: list[Observation],
    want: list[Observation],
    index: int,
    oracle: Oracle,
) -> Mistake | None:
    """The known mistake that does the same; else the likest that does so in the first wrong case.

    `index` is the number of that case. One that is wrong where the program is right is another
    mistake: its sentence would be false.
    """
    bare = [replace(one, changed=()) for one in got]
    if difference(exercise, want[index], bare[index]):
        got = bare  # the values are wrong as well, and it is they that tell the mistake
    wrong = [bool(difference(exercise, w, g)) for w, g in zip(want, got, strict=True)]
    best: tuple[int, Mistake] | None = None
    for mistake in oracle.mistakes(exercise, got):
        if len(mistake.observations) != len(got):
            continue
        if matches(exercise, mistake.observations, got):
            return mistake
        theirs = mistake.observations[index]
        is_wrong_here = bool(difference(exercise, want[index], theirs))
        if not is_wrong_here or difference(exercise, theirs, got[index]):
            continue
        pairs = zip(mistake.observations, got, strict=True)
        alike = [not difference(exercise, a, b) for a, b in pairs]
        fits = all(same or here for same, here in zip(alike, wrong, strict=True))
        if fits and (best is None or sum(alike) > best[0]):
            best = (sum(alike), mistake)
    return best[1] if best else None


def recognise_error(
    exercise: Exercise, got: list[Observation], index: int, oracle: Oracle
) -> Mistake | None:
    """The known mistake that is right before case `index` and stops there with the same words.

    Of several the likest in the other cases. Where there is none, one that stops at None in the
    same cases: what is said of None differs with what meets it.
    """
    nones = _stops_at_none(got)
    best: tuple[int, Mistake] | None = None
    likely = None
    for mistake in oracle.mistakes(exercise, got):
        theirs = mistake.observations[index] if index < len(mistake.observations) else None
        if theirs is None or theirs.raised != got[index].raised:
            continue
        pairs = zip(mistake.observations, got, strict=False)
        alike = [not difference(exercise, a, b) for a, b in pairs]
        if not all(alike[:index]):
            continue  # it is wrong where the program is right: another mistake
        if theirs.message == got[index].message and (best is None or sum(alike) > best[0]):
            best = (sum(alike), mistake)
        if likely is None and nones and _stops_at_none(mistake.observations) == nones:
            likely = mistake
    return best[1] if best else likely


def _stops_at_none(observations: Sequence[Observation]) -> list[int]:
    """The cases in which a program raises an error that names None: it has no size, no method."""
    told = enumerate(observations)
    kinds = ("TypeError", "AttributeError")
    return [i for i, one in told if one.raised in kinds and "None" in one.message]
