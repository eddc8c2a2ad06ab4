"""Which cells of a student's notebook are ours, and which cell of a new release each has become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from .bindings import checked_call
from .cells import ROLES, exercise_name, info, text_hash
from .guesses import without_guesses

GONE = 1 << 30
"""The place of what belongs to an exercise that a release no longer has: the end."""
OURS = (*ROLES, "prose")
KEPT = "kept"
"""The role of what stands in the section at the end."""
_EXERCISED = ("answer", "check")


@dataclass(frozen=True)
class StudentCell:
    """A cell of the student's notebook; `role` is empty where it is none of ours.

    `base` is the hash of the text that was handed out, where it is known; `gone` says that the new
    release lacks its exercise.
    """

    number: int
    id: str
    cell_type: str
    source: str
    role: str = ""
    exercise: str = ""
    base: str = ""
    known: frozenset[str] = frozenset()
    gone: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def untouched(self) -> bool:
        """Whether an answer cell is as it was handed out, or blank."""
        return not self.source.strip() or text_hash(self.source) in {self.base, *self.known}

    @property
    def edited(self) -> bool:
        """Whether the text is another than the one handed out; a guess typed in is no edit."""
        code = self.cell_type == "code"
        texts = {text_hash(without_guesses(self.source) if code else self.source)}
        texts.add(text_hash(self.source))
        return bool(self.source.strip()) and not texts & {self.base, *self.known}

    @property
    def key(self) -> str:
        """What this cell is known by in another release."""
        if self.role in _EXERCISED:
            return f"{self.role} {self.exercise}"
        return f"{self.cell_type} {self.base or text_hash(without_guesses(self.source))}"


def identify(
    student: Mapping[str, Any], release: Mapping[str, Any], base: Mapping[str, Any] | None
) -> list[StudentCell]:
    """Every cell of the student's notebook, in order, by our metadata, then id, then text."""
    shipped = _Shipped(release, base)
    return [shipped.identified(n, cell) for n, cell in enumerate(student["cells"], 1)]


class _Shipped:
    """What the course handed out, in the new release and where it is known in the old one."""

    def __init__(self, release: Mapping[str, Any], base: Mapping[str, Any] | None) -> None:
        old = [c for c in (base["cells"] if base else ()) if not _worked_in(c)]
        cells = [*old, *release["cells"]]
        self.exercised = {c["id"]: c for c in cells if info(c).get("role") in _EXERCISED}
        self.by_text = {text_hash(c["source"]): c for c in cells if c["source"].strip()}
        self.old = {c["id"]: text_hash(c["source"]) for c in old}
        self.asked = {exercise_name(c) for c in release["cells"]} - {""}
        self.texts: dict[tuple[str, str], frozenset[str]] = {}
        for cell in cells:
            key = (info(cell).get("role", ""), exercise_name(cell))
            self.texts[key] = self.texts.get(key, frozenset()) | {text_hash(cell["source"])}

    def identified(self, number: int, cell: Mapping[str, Any]) -> StudentCell:
        kind, exercise, base = self._label(cell)
        exercised = kind in _EXERCISED
        return StudentCell(
            number,
            cell["id"],
            cell["cell_type"],
            cell["source"],
            kind,
            exercise,
            base,
            known=self.texts.get((kind, exercise), frozenset()) if exercised else frozenset(),
            gone=exercised and exercise not in self.asked,
            metadata=cell["metadata"],
        )

    def _label(self, cell: Mapping[str, Any]) -> tuple[str, str, str]:
        """Role, exercise, and the hash of what was handed out; empty where it isn't known."""
        mark, exercise = info(cell), exercise_name(cell)
        kind = mark.get("role")
        if kind in (KEPT, *OURS) and (exercise or kind not in _EXERCISED):
            base = mark.get("stub") or mark.get("text") or self.old.get(cell["id"], "")
            return kind, exercise, str(base)
        ours = self.exercised.get(cell["id"]) or self.by_text.get(_plain_hash(cell))
        if ours is not None:
            return info(ours).get("role", ""), exercise_name(ours), text_hash(ours["source"])
        called = checked_call(cell["source"]) if cell["cell_type"] == "code" else ""
        return ("check", called, "") if called in self.asked else ("", "", "")


def _worked_in(cell: Mapping[str, Any]) -> bool:
    """Whether a cell of what should be a release is somebody's answer."""
    stub = info(cell).get("stub")
    return stub is not None and stub != text_hash(cell["source"])


def _plain_hash(cell: Mapping[str, Any]) -> str:
    code = cell["cell_type"] == "code"
    return text_hash(without_guesses(cell["source"]) if code else cell["source"])


def align(cells: Sequence[StudentCell], release: Mapping[str, Any]) -> dict[int, int]:
    """For each cell of ours in the student's notebook, by number, its place in the release.

    A pair has the same exercise or the same text as handed out; where a run of cells was rewritten,
    they are paired in order. A cell that has no counterpart is left out.
    """
    old = [one for one in cells if one.role in OURS]
    new = [_key(cell) for cell in release["cells"]]
    pairs: dict[int, int] = {}
    matcher = SequenceMatcher(None, [one.key for one in old], new, autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        pairs |= {old[a + n].number: b + n for n in range(size)}
    _pair_the_rest(old, new, pairs)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "replace":
            _pair_rewritten(old[a:b], range(c, d), release["cells"], pairs)
    return pairs


def _pair_the_rest(old: Sequence[StudentCell], new: Sequence[str], pairs: dict[int, int]) -> None:
    """Pair what moved to another part of the notebook."""
    free: dict[str, list[int]] = {}
    for place, key in enumerate(new):
        if place not in pairs.values():
            free.setdefault(key, []).append(place)
    for one in old:
        if one.number not in pairs and free.get(one.key):
            pairs[one.number] = free[one.key].pop(0)


def _pair_rewritten(
    old: Sequence[StudentCell],
    places: range,
    cells: Sequence[Mapping[str, Any]],
    pairs: dict[int, int],
) -> None:
    taken = set(pairs.values())
    left = [p for p in places if p not in taken and info(cells[p]).get("role") not in _EXERCISED]
    for one in old:
        if one.number in pairs or one.role in _EXERCISED:
            continue
        fit = [p for p in left if cells[p]["cell_type"] == one.cell_type]
        if fit:
            pairs[one.number] = fit[0]
            left = [p for p in left if p > fit[0]]


def _key(cell: Mapping[str, Any]) -> str:
    kind = info(cell).get("role", "")
    if kind in _EXERCISED:
        return f"{kind} {exercise_name(cell)}"
    return f"{cell['cell_type']} {text_hash(cell['source'])}"
