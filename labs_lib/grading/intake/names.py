"""Names of files and of students: what browsers add to them, and whom a class list knows."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import UsageError
from ...workbook.submit import RESERVED
from .tables import table_of

_ATTEMPT = re.compile(r"(?P<stem>.*\S)(?:-(?P<dash>\d{1,3})|\s*\((?P<bracket>\d{1,3})\))", re.S)
_COPY = re.compile(r"^(?:copy of|kopie von|copie de)\s+", re.IGNORECASE)
_LONGEST = 60
JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # of Persian words, of emoji


def attempt(stem: str) -> tuple[str, int]:
    """A stem without the suffix of a repeated upload (`lab-2`, `lab (1)`), and which one it is."""
    stem = _COPY.sub("", stem)
    found = _ATTEMPT.fullmatch(stem)
    if not found:
        return stem, 0
    return found["stem"], int(found["dash"] or found["bracket"])


def owner(stem: str, lab_stems: Iterable[str]) -> tuple[str, int]:
    """Whose a notebook is that lies in a folder of notebooks, and which attempt.

    `jane_02_splitting_the_width` and `02_splitting_the_width-jane` are jane's. The name is empty
    where the stem is a lab's alone; any other stem is taken whole, for it may end in a number.
    """
    for lab in lab_stems:
        for plain, number in ((stem, 0), attempt(stem)):
            if plain.endswith(lab):
                return plain[: -len(lab)].strip(" _-."), number
            if plain.startswith(lab):
                return plain[len(lab) :].strip(" _-."), number
    return stem, 0


def normal(text: str) -> str:
    """Text in one Unicode form, so that equal names are equal."""
    return unicodedata.normalize("NFC", text)


def printable(text: str) -> str:
    """A name without control characters, for tables and sentences."""
    return "".join(
        c if c.isprintable() or c in JOINERS else "\N{REPLACEMENT CHARACTER}" for c in normal(text)
    )


def file_names(students: Sequence[str], suffix: str) -> dict[str, str]:
    """For each student a file name that is safe on every system and belongs to no other."""
    plain = {student: _file_stem(student) for student in students}
    folded = [stem.casefold() for stem in plain.values()]
    names = {}
    for student, stem in plain.items():
        if stem != student or folded.count(stem.casefold()) > 1:
            stem = f"{stem}-{hashlib.sha256(student.encode('utf-8', 'replace')).hexdigest()[:8]}"
        names[student] = stem + suffix
    return names


def _file_stem(student: str) -> str:
    kept = re.sub(r"[^\w.@+-]+", "_", student).strip("._")[:_LONGEST]
    return f"student_{kept}" if RESERVED.fullmatch(kept) or not kept else kept


@dataclass(frozen=True)
class Roster:
    """The students of a class, each with the other names they are known by, and their row."""

    students: tuple[str, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    rows: dict[str, dict[str, str]] = field(default_factory=dict)

    def column(self, student: str, *titles: str) -> str:
        """What a student's row holds under the first of the titles that has something."""
        row = self.rows.get(student, {})
        return next((row[title] for title in titles if row.get(title)), "")

    def find(self, *names: str) -> str:
        """The first student who is known by one of the names; empty if there is none.

        A student's id, letter for letter, is before what anybody is known by besides.
        """
        for name in filter(None, names):
            own = normal(name).strip()
            student = own if own in self.students else self.aliases.get(_key(name))
            if student:
                return student
        return ""

    def numbered(self, number: str) -> str:
        """The student who alone has a platform's number; empty if there is none."""
        return self.aliases.get(_key(number), "") if number else ""


STUDENT = ("student", "roster_identifier", "identifier", "username", "sis login id", "id number")
# What of a gradebook says who somebody is; its other columns are marks.
_CANVAS = {"student", "id", "sis user id", "sis login id", "integration id"}
_MOODLE = {"first name", "last name", "surname", "full name", "id number", "username", "identifier"}
_MOODLE |= {"email address"}
_NO_STUDENT = "points possible"  # Canvas's second line


def read_roster(path: Path) -> Roster:
    """Read a CSV file with a column `student`; the other columns hold further names.

    In place of `student` may stand what platforms write: `SIS Login ID` (Canvas), `ID number`
    (Moodle), `Username` (Blackboard), `identifier` (GitHub Classroom). A name that two students
    share finds neither.

    Raises:
        UsageError: if the file can't be read, has no such column, or names a student twice.
    """
    rows, title = table_of(path, "roster", STUDENT)
    of_canvas = title == "student" and bool(rows) and {"id", "section"} <= rows[0].keys()
    aliases: dict[str, str] = {}
    shared: set[str] = set()
    by_student: dict[str, dict[str, str]] = {}
    for row, student in zip(rows, _students(rows, title, of_canvas), strict=True):
        if not student:
            continue
        if student in by_student:
            raise UsageError(f"the roster {path} names the student {student!r} twice")
        by_student[student] = row
        for key in {_key(value) for value in _names_in(row, of_canvas) if value.strip()}:
            shared |= {key} if aliases.setdefault(key, student) != student else set()
    unique = {key: student for key, student in aliases.items() if key not in shared}
    return Roster(tuple(by_student), unique, by_student)


def _students(rows: Sequence[Mapping[str, str]], title: str, of_canvas: bool) -> list[str]:
    """What each row's student is called in the report; empty for a row of nobody's."""
    plain = [printable(" ".join(row.get(title, "").split())) for row in rows]
    if not of_canvas:
        return plain
    often = Counter(plain)

    def shown(name: str, row: Mapping[str, str]) -> str:
        if name.casefold() == _NO_STUDENT:
            return ""
        return f"{name} ({row['id'].strip()})" if often[name] > 1 else name  # names in full

    return [shown(name, row) for name, row in zip(plain, rows, strict=True)]


def _names_in(row: Mapping[str, str], of_canvas: bool) -> list[str]:
    """What a student of this row may be called."""
    if of_canvas:
        return [value for title, value in row.items() if title in _CANVAS]
    last = row.get("last name") or row.get("surname") or ""
    full = [f"{row['first name']} {last}"] if row.get("first name") and last else []
    if {"id number", "email address"} <= row.keys():
        return [value for title, value in row.items() if title in _MOODLE] + full
    return [*row.values(), *full]


def _key(name: str) -> str:
    return normal(name).strip().casefold()
