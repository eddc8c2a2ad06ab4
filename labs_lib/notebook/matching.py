"""Map the cells of a student's notebook to our exercises, whatever an editor did to them.

What stands between two anchors of ours (checks, prose, other cells of ours) belongs to the exercise
there, so an answer in a new cell below its stub counts. Each exercise says how it was found; doubt
is said, never decided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .bindings import binds, bound_names, checked_call, new_definitions
from .cells import exercise_name, text_hash
from .labelling import PLACE, TEXT, Asked, Cell, Known, label


@dataclass(frozen=True)
class Piece:
    """The text of one of the student's cells, and its number in their notebook (from 1)."""

    source: str
    number: int
    how: str


@dataclass(frozen=True)
class Answer:
    """What a student wrote for one exercise.

    `pieces` run in this order; they are empty where nothing was found. `doubt` is a sentence where
    a person has to look; `notes` say what was found in another shape than it was handed out.
    """

    exercise: str
    pieces: tuple[Piece, ...] = ()
    attempted: bool = False
    doubt: str = ""
    notes: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        """By what the answer was found; empty where nothing was."""
        return next((piece.how for piece in reversed(self.pieces)), "")

    @property
    def source(self) -> str:
        """The text of all pieces."""
        return "\n\n".join(piece.source for piece in self.pieces)


def match(
    student: Mapping[str, Any], ours: Mapping[str, Any], asked: Sequence[Asked]
) -> dict[str, Answer]:
    """For each exercise asked, in order, what the student's notebook holds of it."""
    known = Known(ours, asked)
    cells = [label(cell, n, known) for n, cell in enumerate(student["cells"], 1)]
    claims, helpers = _claims(cells, known)
    found = {item.name: _answer(item, claims, helpers, cells, known) for item in asked}
    return {item.name: _borrow(item, found) for item in asked}


def recognised_by_lab(
    student: Mapping[str, Any], asked: Mapping[str, Sequence[Asked]]
) -> dict[str, int]:
    """How many exercises of each lab, by name, a notebook has any trace of: which lab it is of.

    Each cell is read once for all labs.
    """
    told = [
        (cell["source"], str(cell.get("id", "")), exercise_name(cell), checked_call(cell["source"]))
        for cell in student["cells"]
    ]
    hashes = {text_hash(source) for source, *_ in told}
    named = {name for _, _, *names in told for name in names}
    return {lab: _traces(told, hashes, named, items) for lab, items in asked.items()}


def _traces(
    told: Sequence[tuple[str, str, str, str]],
    hashes: set[str],
    named: set[str],
    asked: Sequence[Asked],
) -> int:
    seen = named | {item.name for item in asked if text_hash(item.stub) in hashes}
    for source, own_id, *_ in told:
        seen.update(
            item.name
            for item in asked
            if own_id.startswith(item.name.replace(".", "-") + "-")
            or (item.short in source and binds(source, item.short, as_function=item.is_function))
        )
    return len(seen & {item.name for item in asked})


def _claims(cells: list[Cell], known: Known) -> tuple[dict[str, list[Cell]], dict[str, list[Cell]]]:
    """Cells that answer an exercise, and cells that only stand in its place, by exercise."""
    claims: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.role == "answer" and cell.how != TEXT:
            claims[cell.exercise].append(cell)
    sure = {n for n, own in claims.items() if any(not known.untouched(n, c.source) for c in own)}
    helpers: dict[str, list[Cell]] = defaultdict(list)
    for index, cell in enumerate(cells):
        here, below = _place(index, cells)
        if cell.role == "answer" and cell.how == TEXT:
            if cell.exercise not in sure or here == cell.exercise:
                claims[cell.exercise].append(cell)
            elif here:
                helpers[here].append(replace(cell, how=PLACE))
        elif cell.role == "helper" and here and (below or bound_names(cell.source)):
            helpers[here].append(replace(cell, how=PLACE))
        elif cell.edited and (extra := new_definitions(cell.source, cell.edited)):
            target = here or (next(iter(known.asked), ""))
            helpers[target].append(replace(cell, source=extra, how=PLACE))
    for own in claims.values():
        own.sort(key=lambda cell: cell.number)
    return claims, helpers


def _place(index: int, cells: list[Cell]) -> tuple[str, bool]:
    """The exercise a cell stands in, and whether it is between that answer cell and its check."""
    for before in reversed(cells[:index]):
        if before.role == "answer":
            return before.exercise, True
        if before.role in ("check", "setup", "demo", "prose"):
            break
    for after in cells[index + 1 :]:
        if after.role in ("answer", "check"):
            return after.exercise, after.role == "check"
    return "", False


def _answer(
    item: Asked,
    claims: Mapping[str, list[Cell]],
    helpers: Mapping[str, list[Cell]],
    cells: list[Cell],
    known: Known,
) -> Answer:
    own = claims.get(item.name, [])
    tried = [cell for cell in own if not known.untouched(item.name, cell.source)]
    checks = [cell for cell in cells if cell.role == "check" and cell.exercise == item.name]
    notes = [*_notes(item, own, checks, known)]
    tried, doubt = _choose(tried, checks, cells, notes)
    around = helpers.get(item.name, [])
    here = {id(c): c for c in [*tried, *around]}
    if not any(binds(c.source, item.short, as_function=item.is_function) for c in here.values()):
        here |= {id(cell): cell for cell in own[:1] if not tried}
    pieces = sorted(here.values(), key=lambda cell: cell.number)
    if around:
        notes.append(f"also taken: {_numbers(around)}, for what stands there.")
    return Answer(
        item.name,
        tuple(Piece(cell.source, cell.number, cell.how) for cell in pieces),
        attempted=bool(tried or any(_place_counts(c, own) for c in around)),
        doubt=doubt,
        notes=tuple(notes),
    )


def _place_counts(cell: Cell, own: list[Cell]) -> bool:
    """A cell of no name counts as an attempt where it follows the stub or stands in its stead."""
    return not own or cell.number > own[0].number


def _choose(
    tried: list[Cell], checks: list[Cell], cells: list[Cell], notes: list[str]
) -> tuple[list[Cell], str]:
    """Which of several answers to one exercise count: those above its check."""
    if len({text_hash(cell.source) for cell in tried}) < 2:
        return tried[:1], ""
    if checks:
        above = [cell for cell in tried if cell.number < checks[-1].number]
        if above and len(above) < len(tried):
            late = [cell for cell in tried if cell not in above]
            notes.append(f"left out, since it stands below the check: {_numbers(late)}.")
        tried = above or tried
    between = cells[tried[0].number : tried[-1].number - 1]
    apart = [c for c in between if c.role in ("answer", "check") and c not in tried]
    if any(c.exercise != tried[0].exercise for c in apart):
        return tried, f"Several different answers stand apart from each other: {_numbers(tried)}."
    return tried, ""


def _notes(item: Asked, own: list[Cell], checks: list[Cell], known: Known) -> list[str]:
    notes = []
    for cell in own:
        if cell.retyped:
            notes.append(f"cell {cell.number} is a {cell.retyped} cell; its text was read as code.")
    if not own:
        notes.append("the answer cell is missing.")
    elif len(own) > 1:
        notes.append(f"there are {len(own)} answer cells: {_numbers(own)}.")
    if not checks:
        notes.append("the check cell is missing; the course's own was run.")
    elif len(checks) > 1:
        notes.append(f"there are {len(checks)} check cells; the course's own was run.")
    elif checked_call(checks[0].source) != item.name:
        notes.append("the check cell was changed; the course's own was run.")
    if own and checks and checks[-1].number < own[0].number:
        notes.append("the answer stands below its check; it was run first.")
    return notes


def _borrow(item: Asked, found: Mapping[str, Answer]) -> Answer:
    """An exercise without a cell of its own may have been answered in another one's cell."""
    answer = found[item.name]
    if answer.attempted:
        return answer
    for other in found.values():
        for piece in other.pieces if other.attempted else ():
            if binds(piece.source, item.short, as_function=item.is_function):
                note = f"answered in cell {piece.number}, together with {other.exercise}."
                return replace(answer, pieces=(piece,), attempted=True, notes=(*answer.notes, note))
    return answer


def _numbers(cells: Sequence[Cell]) -> str:
    numbers = ", ".join(str(cell.number) for cell in cells)
    return f"cell{'s' if len(cells) > 1 else ''} {numbers}"
