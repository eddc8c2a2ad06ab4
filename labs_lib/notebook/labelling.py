"""Tell what each cell of a student's notebook is: one of ours, by metadata, id or text, or new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .bindings import binds, bound_names, checked_call, cuda_text, is_cuda
from .cells import exercise_name, info, text_hash

METADATA, ID, TEXT, PLACE = "its metadata", "its id", "its text", "where it stands"


@dataclass(frozen=True)
class Asked:
    """An exercise as matching needs it; `short` is what the answer has to bind."""

    name: str
    short: str
    stub: str
    is_function: bool = True


@dataclass(frozen=True)
class Cell:
    """A cell of a handed-in notebook: where it stands, and what it was found to be."""

    number: int
    source: str
    role: str  # answer, check, setup, demo, prose, helper (unknown code) or text (unknown prose)
    exercise: str = ""
    how: str = ""
    retyped: str = ""
    edited: str = ""  # our own text of a setup or demo cell that was changed


class Known:
    """Our notebook, ready to be asked."""

    def __init__(self, ours: Mapping[str, Any], asked: Sequence[Asked]) -> None:
        self.asked = {item.name: item for item in asked}
        self.by_id = {cell["id"]: cell for cell in ours["cells"]}
        self.by_text = {text_hash(cell["source"]): cell for cell in ours["cells"]}
        self.stubs = {text_hash(item.stub): item.name for item in asked}

    def bound(self, source: str) -> list[str]:
        """The exercises whose name a cell binds."""
        items = self.asked.values()
        return [i.name for i in items if binds(source, i.short, as_function=i.is_function)]

    def untouched(self, name: str, source: str) -> bool:
        """Whether an answer cell is still its stub, or holds nothing at all."""
        comment, text = ("//", cuda_text(source)) if is_cuda(source) else ("#", source)
        code = [x for x in text.split("\n") if x.strip() and not x.strip().startswith(comment)]
        return not code or text_hash(source) == text_hash(self.asked[name].stub)


def label(cell: Mapping[str, Any], number: int, known: Known) -> Cell:
    """What one cell is; its text has the last word on which exercise it answers."""
    source, code = cell["source"], cell["cell_type"] == "code"
    kind, name, how, ours = _identity(cell, known)
    bound = _answers(source, code, kind, ours, known)
    if bound and not (kind == "answer" and name in bound):
        kind, name, how = "answer", bound[0], TEXT
    kind = kind or ("helper" if code else "text")
    changed = kind in ("setup", "demo") and ours is not None and ours["source"] != source
    return Cell(
        number,
        source,
        kind,
        name,
        how,
        retyped="" if code or kind not in ("answer", "check") else cell["cell_type"],
        edited=ours["source"] if changed else "",
    )


def _answers(source: str, code: bool, kind: str, ours: Any, known: Known) -> list[str]:
    """The exercises that a cell's text answers; none for cells that are still as we wrote them."""
    if not code and kind in ("prose", "setup", "demo"):
        return []
    if not code and not bound_names(source):
        return []  # prose, which only parses if it is code
    if kind == "check" and checked_call(source):
        return []
    as_written = known.bound(ours["source"]) if ours is not None and kind != "answer" else []
    return [name for name in known.bound(source) if name not in as_written]


def _identity(cell: Mapping[str, Any], known: Known) -> tuple[str, str, str, Any]:
    """Role, exercise, by what, and our own cell; empty where the cell isn't known."""
    ours = known.by_id.get(cell["id"])
    mark = info(cell)
    kind, name = mark.get("role"), exercise_name(cell)
    if kind in ("answer", "check") and name in known.asked:
        return kind, name, METADATA, ours
    exercised = ours is not None and info(ours).get("role") in ("answer", "check")
    if kind in ("setup", "demo", "prose") and not exercised:
        return kind, "", METADATA, ours or known.by_text.get(text_hash(cell["source"]))
    if ours is not None:
        return info(ours).get("role", "prose"), exercise_name(ours), ID, ours
    checked = checked_call(cell["source"])
    if checked in known.asked:
        return "check", checked, TEXT, None
    digest = text_hash(cell["source"])
    if digest in known.stubs:
        return "answer", known.stubs[digest], TEXT, None
    ours = known.by_text.get(digest)
    if ours is not None and cell["source"].strip():
        return info(ours).get("role", "prose"), exercise_name(ours), TEXT, ours
    return "", "", "", None
