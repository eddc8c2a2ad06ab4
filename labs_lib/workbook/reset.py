"""`labs reset`: bring an exercise's stub back, and keep a copy of what was there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from ..exercises import exercise, exercises
from ..exercises import lab as find_lab
from ..exercises.kit import Exercise
from ..notebook.atomic import write_bytes
from ..notebook.cells import KEY, cell_id, exercise_name, role, text_hash
from . import files


@dataclass(frozen=True)
class Reset:
    """What a reset did: the notebook, the copy kept of it, and a sentence per exercise."""

    notebook: Path
    backup: Path
    done: list[str]


def reset(name: str) -> Reset:
    """Put the stub of one exercise back into the student's notebook.

    The whole notebook is copied to `.labs/backups/` first. Cells of the student's own stay.

    Raises:
        UnknownExercise: if there is none of that name; the nearest are offered.
        UsageError: if the notebook can't be found or read. Nothing is changed then.
    """
    return _reset([exercise(name)])


def reset_lab(which: str | int) -> Reset:
    """Put all stubs of one lab back into the student's notebook; a copy is kept.

    Raises:
        UnknownLab: if there is no such lab.
        UsageError: if the notebook can't be found or read. Nothing is changed then.
    """
    return _reset(exercises(find_lab(which).number))


def _reset(items: list[Exercise]) -> Reset:
    path = files.notebook_of(find_lab(items[0].lab).stem)
    notebook = files.read(path)
    done = [_put_stub(notebook["cells"], item) for item in items]
    backup = _keep_copy(path)
    files.write(path, notebook)
    return Reset(path, backup, done)


def _put_stub(cells: list[Any], item: Exercise) -> str:
    """Make the exercise's answer cell its stub again; bring back cells that were deleted."""
    answers = [c for c in cells if role(c) == "answer" and exercise_name(c) == item.name]
    for copy in answers[1:]:
        del cells[_place(cells, lambda c, copy=copy: c is copy)]
    check = _place(cells, lambda c: files.exercise_of_check(c) == item.name)
    if check == len(cells):
        cells.append(_check_cell(item, {}))
    else:
        cells[check] = _check_cell(item, cells[check])
    if answers:
        cells[_place(cells, lambda c: c is answers[0])] = _answer_cell(item, answers[0])
    else:
        cells.insert(check, _answer_cell(item, {}))
    more = f"; {len(answers) - 1} more cells marked as its answer removed" if answers[1:] else ""
    where = "" if answers else "; its cell was missing and is back"
    return f"{item.name}: the stub is back{where}{more}"


def _place(cells: list[Any], wanted: Callable[[Any], bool]) -> int:
    """Where the first such cell is; past the end if there is none."""
    return next((i for i, cell in enumerate(cells) if wanted(cell)), len(cells))


def _answer_cell(item: Exercise, old: Mapping[str, Any]) -> Any:
    source = item.stub.strip("\n")
    return _cell(item, "answer", source, old, {"stub": text_hash(source)})


def _check_cell(item: Exercise, old: Mapping[str, Any]) -> Any:
    return _cell(item, "check", f'check("{item.name}", {item.called})', old, {})


def _cell(
    item: Exercise, kind: str, source: str, old: Mapping[str, Any], more: dict[str, str]
) -> Any:
    """A fresh cell without outputs; a cell that it replaces hands on its id and other metadata."""
    label = {"exercise": item.name, "role": kind, **more}
    metadata = {**old.get("metadata", {}), KEY: label}
    cell = nbformat.v4.new_code_cell(source, metadata=metadata)
    cell["id"] = old.get("id") or cell_id(item.name, kind, 1)
    return cell


def _keep_copy(path: Path) -> Path:
    backup = files.new_backup(path.stem, ".ipynb")
    write_bytes(backup, path.read_bytes())
    return backup
