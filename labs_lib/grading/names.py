"""Whose a submission is, read from the names that learning platforms and browsers give to files."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UsageError

_MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<number>[^_]+)_assignsubmission_(?:file|onlinetext)_?(?P<rest>.*)", re.S
)
_CANVAS = re.compile(r"(?P<name>.+?)(?:_LATE)?_(?P<number>\d+)_(?P<upload>\d+)_(?P<rest>.+)", re.S)
_ATTEMPT = re.compile(r"(?P<stem>.*\S)(?:-(?P<dash>\d{1,3})|\s*\((?P<bracket>\d{1,3})\))", re.S)
_COPY = re.compile(r"^(?:copy of|kopie von|copie de)\s+", re.IGNORECASE)
_LONGEST = 60


@dataclass(frozen=True)
class Carrier:
    """What a name says: whose it is, their number on the platform, and what it is."""

    name: str
    number: str = ""
    rest: str = ""


def platform_name(name: str) -> Carrier | None:
    """The parts of a name that Moodle or Canvas made; None for all other names."""
    found = _MOODLE.fullmatch(name) or _CANVAS.fullmatch(name)
    return Carrier(found["name"].strip(), found["number"], found["rest"]) if found else None


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
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in normal(text))


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
    reserved = re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", kept, re.IGNORECASE)
    return f"student_{kept}" if reserved or not kept else kept


@dataclass(frozen=True)
class Roster:
    """The students of a class, each with the other names they are known by."""

    students: tuple[str, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)

    def find(self, *names: str) -> str:
        """The first student who is known by one of the names; empty if there is none."""
        for name in names:
            student = self.aliases.get(_key(name)) if name else None
            if student:
                return student
        return ""


def read_roster(path: Path) -> Roster:
    """Read a CSV file with a column `student`; the other columns hold further names.

    A name that two students share finds neither.

    Raises:
        UsageError: if the file can't be read, has no such column, or names a student twice.
    """
    rows = _rows(path)
    students: list[str] = []
    aliases: dict[str, str] = {}
    shared: set[str] = set()
    for row in rows:
        student = normal((row.get("student") or "").strip())
        if not student:
            continue
        if student in students:
            raise UsageError(f"the roster {path} names the student {student!r} twice")
        students.append(student)
        cells = [value for value in row.values() if isinstance(value, str)]
        for key in {_key(value) for value in cells if value.strip()}:
            shared |= {key} if aliases.setdefault(key, student) != student else set()
    unique = {key: student for key, student in aliases.items() if key not in shared}
    return Roster(tuple(students), unique | {_key(student): student for student in students})


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        rows = list(table)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"the roster {path} can't be read as CSV in UTF-8: {error}") from error
    if "student" not in (table.fieldnames or ()):
        raise UsageError(
            f"the roster {path} has no column `student`; its columns are "
            f"{', '.join(table.fieldnames or ['none'])}"
        )
    return rows


def _key(name: str) -> str:
    return normal(name).strip().casefold()
