"""What a platform's own table says: which file is whose, and when each student handed in.

A CSV with a column `student` or `file` (or both), and `submitted`. GitHub Classroom's download of
grades is read as it is: `roster_identifier`, `github_username`, `submission_timestamp`
(https://docs.github.com/education, "Viewing autograding results"). Times have an offset or a `UTC`
behind them, or else are the class's zone's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from ...errors import UsageError
from .lateness import moment
from .names import STUDENT, Roster, normal
from .tables import table_of

_NAMES = (*STUDENT, "github_username")
_TIMES = ("submitted", "submission_timestamp", "timestamp")


@dataclass(frozen=True)
class Received:
    """Owners by the names of top files and folders; times in UTC by file and by student."""

    owners: Mapping[str, str] = field(default_factory=dict)
    by_file: Mapping[str, datetime] = field(default_factory=dict)
    by_student: Mapping[str, datetime] = field(default_factory=dict)

    def when(self, student: str, label: str) -> datetime | None:
        """When a file came: what is said of it, of the folder around it, or of the student."""
        parts = label.split("/")
        for length in range(len(parts), 0, -1):
            found = self.by_file.get("/".join(parts[:length]))
            if found:
                return found
        return self.by_student.get(student)


def read_received(path: Path, zone: ZoneInfo, roster: Roster) -> Received:
    """Read the table.

    Raises:
        UsageError: if it can't be read, or a time in it is none.
    """
    rows, _ = table_of(path, "table of what was received", ("file", *_NAMES))
    owners: dict[str, str] = {}
    files: dict[str, datetime] = {}
    students: dict[str, datetime] = {}
    for number, row in enumerate(rows, 2):
        said = [row[title].strip() for title in _NAMES if row.get(title, "").strip()]
        student = roster.find(*said) or normal(said[0] if said else "")
        file = normal(row.get("file", "").strip().strip("/"))
        text = next((row[title] for title in _TIMES if row.get(title, "").strip()), "")
        if file and student:
            owners[file] = student
        if text:
            try:
                when = moment(text, zone)
            except ValueError as error:
                raise UsageError(
                    f"line {number} of {path} has the time {text!r}, which can't be read "
                    f"({error}); write 2026-10-25T23:59:00+02:00"
                ) from error
            if file:
                files[file] = when
            elif student:
                students[student] = max(when, students.get(student, when))
    return Received(owners, files, students)
