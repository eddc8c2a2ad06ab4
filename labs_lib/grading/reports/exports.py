"""Tables of marks in the shapes that other systems import.

Canvas (https://community.canvaslms.com, "How do I import grades in the Gradebook?"): the columns
Student, ID, SIS User ID, SIS Login ID and Section, then one for each assignment; a row "Points
Possible" comes first. What is undecided is left empty, which Canvas leaves as it is.

Moodle (https://docs.moodle.org, "Grade import"): any columns, mapped on import; ours are the
identifiers that it knows (ID number, Username, Email address), one for each grade item, and one of
feedback.

nbgrader (`nbgrader export`, its CsvExportPlugin): one row for each student and assignment, with
duedate, timestamp, raw_score, late_submission_penalty, score and max_score.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from ..intake.lateness import number
from ..intake.names import Roster
from ..intake.platforms import Carrier, carriers
from .report import Report, Row, cell

CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("ID number", "Username", "Email address", "Full name")
NBGRADER = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)


def exports(report: Report, roster: Roster) -> dict[str, bytes]:
    """The files to put beside the report, by name."""
    return {
        "canvas.csv": _csv(_canvas(report, roster)),
        "moodle.csv": _csv(_moodle(report, roster)),
        "gradebook.csv": _csv(_gradebook(report, roster)),
    }


def _canvas(report: Report, roster: Roster) -> list[list[Any]]:
    maxima = _maxima(report)
    rows = [[*CANVAS, *(_item(report, lab) for lab in maxima)]]
    rows.append(["    Points Possible", "", "", "", "", *maxima.values()])
    made = carriers({top for row in report.rows for top in _tops(row)})
    for row in report.rows:
        who = row.student
        name = _full_name(roster, who, last_first=True)
        sis, login = roster.column(who, "sis user id"), roster.column(who, "sis login id")
        own = roster.column(who, "id", "canvas id") or _canvas_id(row, made)
        login = login or ("" if sis or own else who)
        rows.append([name, own, sis, login, roster.column(who, "section"), *_scores(row, maxima)])
    return rows


def _canvas_id(row: Row, made: Mapping[str, Carrier]) -> str:
    """A student's number on Canvas, as the names of its files tell it; empty for other files."""
    found = [made[top] for top in _tops(row) if top in made]
    return next((one.number for one in found if one.on_canvas), "")


def _tops(row: Row) -> list[str]:
    return [label.partition("/")[0] for label in row.files]


def _moodle(report: Report, roster: Roster) -> list[list[Any]]:
    maxima = _maxima(report)
    rows = [[*MOODLE, *(_item(report, lab) for lab in maxima), "Feedback"]]
    for row in report.rows:
        who = row.student
        known = roster.column(who, "id number"), roster.column(who, "username")
        email = roster.column(who, "email address", "email")
        number_, username = known if any(known) or email else (who, "")
        name = _full_name(roster, who)
        rows.append([number_, username, email, name, *_scores(row, maxima), row.remarks])
    return rows


def _gradebook(report: Report, roster: Roster) -> list[list[Any]]:
    rows: list[list[Any]] = [list(NBGRADER)]
    for lab, maximum in _maxima(report).items():
        for row in report.rows:
            late = row.late.get(lab)
            raw, lost = row.earned(lab), late.points if late else 0.0
            rows.append(
                [
                    _item(report, lab),
                    _stamp(late.deadline if late else None),
                    _stamp(late.submitted if late else None),
                    row.student,
                    *_last_and_first(roster, row.student),
                    roster.column(row.student, "email", "email address"),
                    *(number(n) for n in (raw, lost, max(0.0, raw - lost), maximum)),
                ]
            )
    return rows


def _maxima(report: Report) -> dict[str, int]:
    return {lab: most for lab, most in report.maxima.items() if most}


def _item(report: Report, lab: str) -> str:
    return report.titles.get(lab, lab)


def _scores(row: Row, maxima: Mapping[str, int]) -> list[str]:
    return ["" if row.is_open(lab) else number(row.score(lab)) for lab in maxima]


def _stamp(when: Any) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S") if when else ""


def _last_and_first(roster: Roster, student: str) -> tuple[str, str]:
    last = roster.column(student, "last name", "last_name", "surname")
    first = roster.column(student, "first name", "first_name")
    return last, first


def _full_name(roster: Roster, student: str, *, last_first: bool = False) -> str:
    last, first = _last_and_first(roster, student)
    if last and first:
        return f"{last}, {first}" if last_first else f"{first} {last}"
    return roster.column(student, "student name", "full name", "name", "student") or student


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerows([[cell(x) if isinstance(x, str) else x for x in row] for row in rows])
    return text.getvalue().encode("utf-8", "replace")
