"""Answers that passed in the browser while the notebook's file still holds their stubs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..checking import progress
from ..errors import UsageError
from ..notebook.cells import exercise_name, info, role, text_hash
from . import files


def unsaved(notebook: Path) -> str:
    """A sentence if exercises passed after the notebook was last saved, with stubs; else empty.

    `labs check` and `labs submit` read the file. A stub in a file that was saved after the pass
    was put there by the student, and so nothing is said of it.
    """
    if not notebook.resolve().is_relative_to(files.folder().resolve()):
        return ""
    try:
        cells, saved = files.read(notebook)["cells"], int(notebook.stat().st_mtime)
    except (OSError, UsageError):
        return ""
    count = sum(_passed_at(name) >= saved for name in _stubs(cells))
    if not count:
        return ""
    which = "exercise passed" if count == 1 else "exercises passed"
    is_not = "isn't" if count == 1 else "aren't"
    return (
        f"{count} {which} in the notebook but {is_not} in the saved file: "
        "save it (Ctrl+S) and run this again"
    )


def _stubs(cells: list[Any]) -> set[str]:
    """The exercises all of whose answer cells are as they were handed out."""
    stubs, written = set(), set()
    for cell in cells:
        if role(cell) == "answer":
            untouched = text_hash(cell.get("source", "")) == info(cell).get("stub")
            (stubs if untouched else written).add(exercise_name(cell))
    return stubs - written


def _passed_at(name: str) -> float:
    """When the exercise last passed, in seconds since 1970; before all files where it didn't."""
    known = progress.entry(name)
    try:
        moment = datetime.strptime(known["passed_when"], progress.WHEN)
    except (KeyError, TypeError, ValueError):
        return float("-inf")
    return moment.replace(tzinfo=UTC).timestamp() if known.get("passed") is True else float("-inf")
