"""Read a lab's source (`solutions/NN_slug.md`, MyST Markdown) and give each cell its role and id.

Roles are derived: a cell tagged `setup`; an answer cell has an answer region; a check cell is one
call of `check`; all other code cells are demonstrations.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import jupytext
from nbformat import NotebookNode

from ..exercises import exercises
from ..exercises.kit import Lab
from ..notebook.cells import KEY, cell_id, checked_exercise
from ..notebook.regions import RegionError, has_region, split_region
from ..paths import home

GLOSSARY = "Words and symbols: [glossary](../docs/glossary.md)."


class SourceError(ValueError):
    """A lab's source that can't be released; the message names the file, the cell and the mend."""


def source_file(lab: Lab) -> Path:
    """The lab's MyST Markdown file."""
    return home() / "solutions" / f"{lab.stem}.md"


def source_hash(lab: Lab) -> str:
    """A hash of the lab's source text, as kept in the notebooks made from it."""
    text = source_file(lab).read_text(encoding="utf-8")
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def read_source(lab: Lab) -> NotebookNode:
    """The lab's source as a notebook without outputs, each cell with its metadata and id.

    Raises:
        SourceError: if the file is missing, markers don't pair up, an answer cell has no markers,
            or the cells don't hold each of the lab's exercises exactly once.
    """
    file = source_file(lab)
    if not file.exists():
        raise SourceError(f"{file.name} is missing in solutions/: {lab.name} has no source")
    notebook = jupytext.reads(file.read_text(encoding="utf-8"), fmt="md:myst")
    _add_glossary(notebook.cells)
    _assign_roles(lab, notebook.cells)
    _assign_ids(lab, notebook.cells)
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
        labs={"lab": lab.name, "source": source_hash(lab)},
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def _add_glossary(cells: list[NotebookNode]) -> None:
    """Every lab's first text ends with the way to the page of words and symbols."""
    first = next((cell for cell in cells if cell.cell_type == "markdown"), None)
    if first is not None:
        first.source = f"{first.source.rstrip()}\n\n{GLOSSARY}"


def _assign_roles(lab: Lab, cells: list[NotebookNode]) -> None:
    waiting: NotebookNode | None = None
    found: Counter[str] = Counter()
    for number, cell in enumerate(cells, 1):
        tags = list(cell.metadata.get("tags", []))
        cell.metadata = NotebookNode({"tags": tags} if tags else {})
        if cell.cell_type != "code":
            cell.metadata[KEY] = {"role": "prose"}
            continue
        cell.outputs, cell.execution_count = [], None
        name = checked_exercise(cell.source)
        if has_region(cell.source):
            _refuse_second_answer(lab, number, waiting)
            _checked_region(lab, number, cell)
            cell.metadata[KEY] = {"role": "answer"}
            waiting = cell
        elif name:
            if waiting is None:
                raise SourceError(
                    f"{lab.stem}.md, cell {number}: the check of {name} has no answer cell with "
                    "# BEGIN SOLUTION and # END SOLUTION before it"
                )
            waiting.metadata[KEY]["exercise"] = name
            cell.metadata[KEY] = {"role": "check", "exercise": name}
            found[name] += 1
            waiting = None
        else:
            cell.metadata[KEY] = {"role": "setup" if "setup" in tags else "demo"}
    _refuse_second_answer(lab, len(cells), waiting)
    _refuse_missing(lab, found)


def _checked_region(lab: Lab, number: int, cell: NotebookNode) -> None:
    try:
        split_region(cell.source)
    except RegionError as error:
        raise SourceError(f"{lab.stem}.md, cell {number}: {error}") from error


def _refuse_second_answer(lab: Lab, number: int, waiting: NotebookNode | None) -> None:
    if waiting is not None:
        first = waiting.source.split("\n")[1:2]
        raise SourceError(
            f"{lab.stem}.md, before cell {number}: the answer {first} is followed by no check cell"
        )


def _refuse_missing(lab: Lab, found: Counter[str]) -> None:
    asked = [item.name for item in exercises(lab.number)]
    wrong = [name for name in asked if found[name] != 1] + [n for n in found if n not in asked]
    if wrong:
        counts = ", ".join(f"{name} ({found[name]} times)" for name in wrong)
        raise SourceError(
            f"{lab.stem}.md: each exercise of {lab.name} has one check cell, and no other has any; "
            f"found: {counts}"
        )


def _assign_ids(lab: Lab, cells: list[NotebookNode]) -> None:
    counted: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        label = cell.metadata[KEY]
        key = (label.get("exercise", lab.name), label["role"])
        counted[key] += 1
        cell["id"] = cell_id(*key, counted[key])
