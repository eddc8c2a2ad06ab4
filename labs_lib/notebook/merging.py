"""Bring a student's notebook up to a new release: our cells are new, what they wrote stays.

Answers go to their exercise by our metadata, then id, then content. A cell of the student's own
stays where it stood between ours; what has no place any more is kept at the end. Our cells carry
the hash of the text that was handed out, so that a changed one is known without the old release.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nbformat import NotebookNode, from_dict

from .aligning import GONE, KEPT, StudentCell, align, identify
from .bindings import binds
from .cells import KEY, exercise_name, info, role, text_hash
from .guesses import guesses, with_guesses
from .labelling import Asked
from .matching import match
from .own_cells import copy_of, kept, own_cell, with_own_ids

SECTION = (
    "## Kept from an earlier release\n\nWhat follows belongs to exercises that the course no "
    "longer has. It is yours: keep it, or delete it."
)


@dataclass(frozen=True)
class Merged:
    """The new notebook, without outputs, and what became of the old one.

    `answers` are the exercises whose answer was kept, `own` counts the student's own cells, `new`
    the exercises that the old notebook didn't have, `gone` those that are kept at the end only.
    """

    notebook: NotebookNode
    changed: bool
    answers: tuple[str, ...] = ()
    own: int = 0
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Plan:
    """What stands where: texts for our cells by place, the student's own cells after a place."""

    texts: dict[int, str] = field(default_factory=dict)
    own: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    above: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    blanks: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


def asked_in(release: Mapping[str, Any]) -> list[Asked]:
    """The exercises of a released notebook, read from its own answer and check cells."""
    called = {
        exercise_name(cell): cell["source"].rpartition(",")[2].strip(" )\n")
        for cell in release["cells"]
        if role(cell) == "check"
    }
    found = []
    for cell in release["cells"]:
        if role(cell) == "answer":
            name = exercise_name(cell)
            short = called.get(name) or name.partition(".")[2]
            is_function = binds(cell["source"] + "\n", short, as_function=True)
            found.append(Asked(name, short, cell["source"], is_function))
    return found


def merge(student: NotebookNode, release: NotebookNode, base: NotebookNode | None = None) -> Merged:
    """The new release's notebook with all that the student wrote in the old one.

    Args:
        student: their notebook, as `reading.read` gives it.
        release: the new release's notebook, as handed out.
        base: the notebook that they began with, where it is known; it only helps where an editor
            took our metadata away.
    """
    asked = asked_in(release)
    theirs = identify(student, release, base)
    places = align(theirs, release)
    plan = _Plan()
    slots = _place_answers(student, release, asked, theirs, plan)
    _place_own(theirs, places, slots, release, plan)
    cells = _emit(release, plan, _guesses(student), _old_metadata(theirs, places, slots))
    made = _notebook(student, release, cells)
    seen = {one.exercise for one in theirs if one.exercise}
    return Merged(
        made,
        changed=_essence(made) != _essence(student),
        answers=tuple(plan.answers),
        own=sum(len(cells) for cells in plan.own.values()),
        new=tuple(item.name for item in asked if seen and item.name not in seen),
        gone=tuple(plan.gone),
        notes=tuple(plan.notes),
    )


def _place_answers(
    student: NotebookNode,
    release: NotebookNode,
    asked: Sequence[Asked],
    theirs: list[StudentCell],
    plan: _Plan,
) -> dict[int, int]:
    """Choose the cell that fills each answer's place; the place in the release -> cell number."""
    blank = {m.number for m in theirs if m.role == "answer" and m.untouched}
    cells = [
        {**cell, "source": ""} if number in blank else cell
        for number, cell in enumerate(student["cells"], 1)
    ]
    found = match({"cells": cells}, release, asked)
    at = {exercise_name(c): n for n, c in enumerate(release["cells"]) if role(c) == "answer"}
    slots: dict[int, int] = {}
    for item in asked:
        marked = [m for m in theirs if m.role == "answer" and m.exercise == item.name]
        tried = [m for m in marked if not m.untouched]
        chosen = (tried or marked or [None])[0]  # a second one follows it, and wins as it did
        if not marked:
            chosen = _unmarked(item, found[item.name].pieces, theirs, at[item.name], plan)
        if chosen is not None:
            slots[at[item.name]] = chosen.number
            if not chosen.untouched:
                _fill(item, chosen, at[item.name], plan)
        if found[item.name].attempted:
            plan.answers.append(item.name)
        if found[item.name].doubt:
            plan.notes.append(f"{item.name}: {found[item.name].doubt} All of them are kept.")
    return slots


def _unmarked(
    item: Asked, pieces: Sequence[Any], theirs: list[StudentCell], place: int, plan: _Plan
) -> StudentCell | None:
    """The cell that answers an exercise whose own cell is gone, if it is nothing else of ours."""
    numbers = [
        p.number for p in pieces if binds(p.source, item.short, as_function=item.is_function)
    ]
    for one in reversed(theirs):
        if one.number in numbers and not one.role:
            return one
    if numbers:  # our empty stub below it would undo it
        plan.blanks.add(place)
        plan.notes.append(f"{item.name} is answered in another cell; its own was left empty.")
    return None


def _fill(item: Asked, chosen: StudentCell, place: int, plan: _Plan) -> None:
    plan.texts[place] = chosen.source
    if chosen.base and chosen.base != text_hash(item.stub):
        plan.notes.append(f"what {item.name} asks for has changed; see the cell above your answer.")
        fence = "```python" if "%%" not in item.stub else "```cpp"
        text = (
            f"**Changed in this release.** The cell of `{item.name}` now begins like this; your "
            f"answer below is as you wrote it.\n\n{fence}\n{item.stub.strip()}\n```"
        )
        plan.above[place].append(own_cell("markdown", text, f"changed-{text_hash(text)}"))


def _place_own(
    theirs: list[StudentCell],
    places: Mapping[int, int],
    slots: Mapping[int, int],
    release: NotebookNode,
    plan: _Plan,
) -> None:
    """Put every cell that the student wrote or changed behind the cell of ours that it followed."""
    used = {number: place for place, number in slots.items()}
    here = -1
    for one in theirs:
        place = used.get(one.number, places.get(one.number))
        if one.role == KEPT:
            here = GONE
        elif one.role and one.exercise and place is None and one.gone:
            here = GONE
            if one.role == "answer" and not one.untouched:
                plan.gone.append(one.exercise)
                plan.own[GONE].append(own_cell("markdown", f"`{one.exercise}`", f"{one.id}-name"))
        elif place is not None:
            here = place
        if one.number in used:
            continue
        if _is_theirs(one, place, release, plan):
            plan.own[here].append(copy_of(one))


def _is_theirs(one: StudentCell, place: int | None, release: NotebookNode, plan: _Plan) -> bool:
    """Whether a cell is kept as the student's own; a changed one of ours may stay in its place."""
    if one.role == KEPT:
        return one.source != SECTION
    if not one.role:
        return bool(one.source.strip())
    if one.role == "answer":
        return not one.untouched
    if not one.edited:
        return False
    if place is None:
        return True
    ours = release["cells"][place]["source"]
    if one.role == "check":
        return text_hash(one.source) != text_hash(ours)
    if text_hash(ours) == one.base:
        plan.texts[place] = one.source
        return False
    if text_hash(ours) != text_hash(one.source):
        plan.notes.append(
            f"cell {one.number}, one of the course's that you changed, has changed in the course "
            "too: yours stands below the new one."
        )
        return True
    return False


def _emit(
    release: NotebookNode,
    plan: _Plan,
    typed: Mapping[str, str],
    old: Mapping[int, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    cells = [*plan.own[-1]]
    for place, ours in enumerate(release["cells"]):
        source = plan.texts.get(place)
        if source is None:
            source = with_guesses(ours["source"], typed)
            if place in plan.blanks:
                source = f"# {exercise_name(ours)} is answered in another cell"
        kept_metadata = {k: v for k, v in old.get(place, {}).items() if k not in (KEY, "tags")}
        cells += plan.above[place]
        cells.append({**ours, "source": source, "metadata": {**kept_metadata, **ours["metadata"]}})
        cells += plan.own[place]
    if plan.own[GONE]:
        heading = own_cell("markdown", SECTION, "kept-from-an-earlier-release")
        cells += [kept(cell) for cell in [heading, *plan.own[GONE]]]
    return with_own_ids(cells, {cell["id"] for cell in release["cells"]})


def _notebook(student: NotebookNode, release: NotebookNode, cells: list[Any]) -> NotebookNode:
    return from_dict(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {**student["metadata"], **release["metadata"]},
            "cells": cells,
        }
    )


def _essence(notebook: NotebookNode) -> Any:
    """What makes two notebooks the same to us: no outputs, no marks of an editor."""
    cells = [
        (c["cell_type"], c["id"], c["source"], dict(info(c)), c["metadata"].get("tags", []))
        for c in notebook["cells"]
    ]
    return cells, info(notebook)


def _guesses(student: NotebookNode) -> dict[str, str]:
    found: dict[str, str] = {}
    for cell in student["cells"]:
        if cell["cell_type"] == "code":
            found |= guesses(cell["source"])
    return found


def _old_metadata(
    theirs: list[StudentCell], places: Mapping[int, int], slots: Mapping[int, int]
) -> dict[int, Mapping[str, Any]]:
    by_number = {one.number: one.metadata for one in theirs}
    paired = {place: number for number, place in places.items()} | dict(slots)
    return {place: by_number[number] for place, number in paired.items()}
