"""The student's notebooks as files: find the one that is meant, read it, write it back whole."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path
from typing import Any

import nbformat

from ..errors import UsageError
from ..notebook.atomic import write_text
from ..notebook.cells import checked_exercise, exercise_name, role
from ..paths import home, state

LARGEST = 200 * 2**20  # bytes of a notebook's file; a larger one is not read


def folder() -> Path:
    """The folder of the student's notebooks."""
    return home() / "notebooks"


def own_state() -> Path:
    """Where this copy keeps what must never be lost, even where no progress is kept."""
    return state() or home() / ".labs"


def new_backup(stem: str, suffix: str = "") -> Path:
    """A place below `.labs/backups/` that nothing has yet: the stem, and this moment in UTC."""
    named = f"{stem}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    tries = itertools.chain([named], (f"{named}-{number}" for number in itertools.count(2)))
    paths = (own_state() / "backups" / f"{one}{suffix}" for one in tries)
    return next(path for path in paths if not path.exists())


def all_notebooks() -> list[Path]:
    """Every notebook in the student's folder, by name; hidden files and checkpoints left out."""
    return sorted(p for p in folder().glob("*.ipynb") if p.is_file() and p.name[0] != ".")


def notebook_of(stem: str) -> Path:
    """The student's notebook of a lab, whose stem is such as `02_splitting_the_width`.

    One that was renamed is found by its number, as long as only one has it.

    Raises:
        UsageError: if there is none, or more than one to choose from.
    """
    exact = folder() / f"{stem}.ipynb"
    if exact.is_file():
        return exact
    number = stem[:2]
    near = [p for p in all_notebooks() if re.match(rf"{number}(?!\d)", p.name)]
    if len(near) == 1:
        return near[0]
    if near:
        names = " and ".join(p.name for p in near)
        raise UsageError(f"notebooks/ has {names} for lab {number}; give the one you mean by path")
    raise UsageError(
        f"notebooks/{stem}.ipynb is not there; git restores it: git checkout notebooks"
    )


def read(path: Path) -> Any:
    """Read a notebook in format 4.5.

    Raises:
        UsageError: if it isn't there or can't be read; the sentence says why.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{path.name} is over {LARGEST >> 20} MiB; clear its outputs first")
        text = path.read_text(encoding="utf-8-sig")
        notebook = nbformat.reads(text, as_version=4)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from error
    except UsageError:
        raise
    except Exception as error:  # whatever the bytes are, the answer is one sentence
        raise UsageError(
            f"{path.name} is not a notebook that can be read "
            f"({_why(_beginning(path), error)}){_help(path)}"
        ) from error
    return notebook


def write(path: Path, notebook: Any) -> None:
    """Write a notebook whole or not at all."""
    write_text(path, nbformat.writes(notebook) + "\n")


def exercise_of_check(cell: Any) -> str:
    """The exercise that a check cell belongs to, by our metadata or else by its call of `check`."""
    if cell.get("cell_type") != "code":
        return ""
    if role(cell) == "check":
        return exercise_name(cell)
    return checked_exercise(cell.get("source", ""))


def _help(path: Path) -> str:
    """The way out for a notebook of the course; for another file there is none that we know."""
    ours = path.absolute().parent == folder()
    return "; git shows what changed: git diff notebooks" if ours else ""


def _beginning(path: Path) -> str:
    """The file's first characters, whatever its bytes are."""
    try:
        with open(path, "rb") as file:
            return file.read(200_000).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _why(text: str, error: Exception) -> str:
    if not text.strip():
        return "it is empty"
    if re.search(r"^<{7} ", text, re.MULTILINE):
        return "it has merge-conflict markers"
    if isinstance(error, nbformat.reader.NotJSONError):
        return "its text is not JSON, which a notebook's is"
    return f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
