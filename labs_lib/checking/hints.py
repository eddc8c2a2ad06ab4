"""Hints, one at a time."""

from __future__ import annotations

from ..exercises import exercise
from . import progress

_shown: dict[str, int] = {}


def hint(name: str) -> None:
    """Print the next hint of an exercise; after the last one they start again.

    Raises:
        UnknownExercise: if there is no exercise of that name.
    """
    item = exercise(name)
    if not item.hints:
        print(f"{name} has no hints.")
        return
    seen = max(_shown.get(name, 0), int(progress.entry(name).get("hints", 0)))
    index = seen % len(item.hints)
    _shown[name] = seen + 1
    progress.update(name, hints=seen + 1)
    print(f"hint {index + 1} of {len(item.hints)}: {item.hints[index]}")
