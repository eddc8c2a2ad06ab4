"""Hints, one at a time."""

from __future__ import annotations

from ..exercises import exercise
from . import progress

_shown: dict[str, int] = {}


def hint(name: str) -> None:
    """Print the next hint of an exercise; after the last one they start again, and say so.

    Raises:
        UnknownExercise: if there is no exercise of that name.
    """
    item = exercise(name)
    if not item.hints:
        print(f"{name} has no hints.")
        return
    seen = max(_shown.get(name, 0), progress.count(progress.entry(name), "hints"))
    index = seen % len(item.hints)
    _shown[name] = seen + 1
    progress.update(name, hints=min(seen + 1, len(item.hints)))  # how many of them were read
    if seen and not index:
        print("That was the last; from the top:")
    print(f"hint {index + 1} of {len(item.hints)}: {item.hints[index]}")
