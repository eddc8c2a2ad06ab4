"""Which of a student's files is their notebook of which lab; told by content, not by name."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from ...exercises import labs
from ...notebook import reading
from ...notebook.bindings import MAX_CHARS
from ...notebook.cells import info
from ...notebook.matching import match, recognised_by_lab
from ..course import Course
from .collect import Handed, Submission

MAX_BRACKETS = 1_000_000  # each may take hundreds of bytes when it is read
MAX_TEXT = 1_000_000
MAX_TOLD = 50  # sentences about files of one student


@dataclass(frozen=True)
class Candidate:
    """A file that could be read: the lab it is of (empty if of none), and what it holds."""

    file: Handed
    lab: str
    digest: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sorted:
    """A submission by lab: the notebook to grade, or why there is none.

    `doubts` hold a sentence for labs with several different notebooks, `broken` for labs whose file
    can't be read; `strangers` are readable notebooks of no lab that is graded.
    """

    notebooks: Mapping[str, Candidate]
    doubts: Mapping[str, str]
    broken: Mapping[str, str]
    strangers: tuple[str, ...]
    notes: tuple[str, ...]


def sort_files(submission: Submission, courses: Sequence[Course]) -> Sorted:
    """Read each file once and say what it is; nothing is run."""
    every = _every()
    wanted = {course.lab.name for course in courses}
    by_lab: dict[str, list[Candidate]] = defaultdict(list)
    broken: dict[str, str] = {}
    strangers, notes = [], list(submission.notes)
    for file in submission.files:
        try:
            candidate = look(file)
        except reading.Unreadable as error:
            sentence = f"{file.label}: {error}."
            notes += [sentence] if len(notes) < MAX_TOLD else []
            for lab in _named(file.label, every) or wanted:
                broken.setdefault(lab, sentence)
            continue
        if candidate.lab in wanted:
            by_lab[candidate.lab].append(candidate)
        else:
            strangers.append(file.label)
    notebooks, doubts = {}, {}
    for course in courses:
        found = by_lab.get(course.lab.name, [])
        if found:
            best = _best(found, course, notes)
            notebooks[course.lab.name] = best[0]
            if len(best) > 1:
                labels = " and ".join(one.file.label for one in best)
                doubts[course.lab.name] = f"Several different notebooks were handed in: {labels}."
    return Sorted(notebooks, doubts, broken, tuple(strangers), tuple(notes))


def parse(candidate: Candidate) -> reading.Reading:
    """Read the file again, to grade it. Raises Unreadable."""
    return _readable(candidate.file)


@cache
def _every() -> tuple[Course, ...]:
    """All labs, to tell which one a notebook is of; their stubs are read once."""
    return tuple(Course(lab) for lab in labs())


def _readable(file: Handed) -> reading.Reading:
    content = file.read()
    if content.count(b"{") + content.count(b"[") > MAX_BRACKETS:
        raise reading.Unreadable(
            f"it holds more than {MAX_BRACKETS} lists and objects. Clear its outputs and save it "
            "again"
        )
    found = reading.read(content)
    sizes = [len(cell["source"]) for cell in found.notebook["cells"]]
    text = sum(size for size in sizes if size <= MAX_CHARS)  # longer ones are never parsed
    if text > MAX_TEXT:
        raise reading.Unreadable(
            f"its cells hold {text} characters; at most {MAX_TEXT} are read. Hand in the notebook "
            "of the lab alone"
        )
    return found


def look(file: Handed) -> Candidate:
    """Read a file and tell which lab it is of. Raises Unreadable."""
    every = _every()
    found = _readable(file)
    scores = recognised_by_lab(found.notebook, {c.lab.name: c.asked for c in every})
    own = found.notebook.metadata.get("labs")
    own = own.get("lab") if isinstance(own, Mapping) else None
    best = max(scores, key=lambda name: (scores[name], name == own))
    lab = best if scores[best] else own if own in scores else ""
    return Candidate(file, lab, _digest(found.notebook), found.notes)


def _digest(notebook: Mapping[str, Any]) -> str:
    """Equal for notebooks with the same cells, whatever their outputs and metadata."""
    told = [(c["cell_type"], c["source"], str(info(c).get("exercise"))) for c in notebook["cells"]]
    return hashlib.sha256(repr(told).encode("utf-8")).hexdigest()


def _named(label: str, every: Sequence[Course]) -> list[str]:
    """The lab that a file's name tells (its slug, `lab1`, or two digits), for files that tell
    nothing else."""
    name = PurePosixPath(label).name
    for course in every:
        number = course.lab.number
        told = rf"lab[ _-]?0*{number}(?!\d)|(?<!\d)0*{number:02d}(?!\d)"
        if course.lab.slug in name or re.search(told, name, re.IGNORECASE):
            return [course.lab.name]
    return []


def _best(found: list[Candidate], course: Course, notes: list[str]) -> list[Candidate]:
    """The latest attempt; of equal ones that with answers; several where it stays a tie."""
    latest = max(one.file.attempt for one in found)
    last = [one for one in found if one.file.attempt == latest]
    if len(found) > len(last):
        older = ", ".join(one.file.label for one in found if one not in last)
        notes.append(f"Of {course.lab.name} the latest attempt counts; left out: {older}.")
    distinct = list({one.digest: one for one in last}.values())
    if len(distinct) < 2:
        return distinct
    tried = [one for one in distinct if attempted(one, course)]
    if len(tried) == 1:
        labels = ", ".join(one.file.label for one in distinct if one not in tried)
        notes.append(f"Of {course.lab.name} {labels} holds no answer and was left out.")
    return tried or distinct[:1]


def attempted(candidate: Candidate, course: Course) -> bool:
    """Whether a notebook holds an answer to any exercise of the lab. Raises Unreadable."""
    found = match(parse(candidate).notebook, course.notebook, course.asked)
    return any(answer.attempted for answer in found.values())
