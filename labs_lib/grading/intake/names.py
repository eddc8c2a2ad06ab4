"""Names of files and of students: what browsers add to them, and whom a class list knows."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...errors import UsageError

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
    reserved = re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", kept, re.IGNORECASE)
    return f"student_{kept}" if reserved or not kept else kept


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
        """The first student who is known by one of the names; empty if there is none."""
        for name in names:
            student = self.aliases.get(_key(name)) if name else None
            if student:
                return student
        return ""


STUDENT = ("student", "roster_identifier", "identifier", "username", "sis login id", "id number")


def read_roster(path: Path) -> Roster:
    """Read a CSV file with a column `student`; the other columns hold further names.

    In place of `student` may stand what platforms write: `SIS Login ID` (Canvas), `ID number`
    (Moodle), `Username` (Blackboard), `identifier` (GitHub Classroom). A name that two students
    share finds neither.

    Raises:
        UsageError: if the file can't be read, has no such column, or names a student twice.
    """
    rows, title = table_of(path, "roster", STUDENT)
    students: list[str] = []
    aliases: dict[str, str] = {}
    shared: set[str] = set()
    by_student: dict[str, dict[str, str]] = {}
    for row in rows:
        student = normal(row.get(title, "").strip())
        if not student:
            continue
        if student in students:
            raise UsageError(f"the roster {path} names the student {student!r} twice")
        students.append(student)
        by_student[student] = row
        for key in {_key(value) for value in row.values() if value.strip()}:
            shared |= {key} if aliases.setdefault(key, student) != student else set()
    unique = {key: student for key, student in aliases.items() if key not in shared}
    own = {_key(student): student for student in students}
    return Roster(tuple(students), unique | own, by_student)


def table_of(path: Path, what: str, key: Sequence[str]) -> tuple[list[dict[str, str]], str]:
    """The rows of a CSV file by column, titles in lower case, and the first key column it has.

    Raises:
        UsageError: if it can't be read as CSV, or has none of the key columns.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        rows = list(table)
    except OSError as error:
        raise UsageError(f"the {what} {path} can't be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"the {what} {path} can't be read as CSV in UTF-8: {error}") from error
    titles = [title.strip().casefold() for title in table.fieldnames or ()]
    found = next((title for title in key if title in titles), None)
    if found is None:
        raise UsageError(
            f"the {what} {path} has no column `{key[0]}`; its columns are "
            f"{', '.join(table.fieldnames or ['none'])}"
        )
    plain = [
        {
            title.strip().casefold(): value
            for title, value in row.items()
            if isinstance(title, str) and isinstance(value, str)
        }
        for row in rows
    ]
    return plain, found


def _key(name: str) -> str:
    return normal(name).strip().casefold()
