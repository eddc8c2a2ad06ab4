"""Marks and comments that a person gives, in a file of their own that no run ever writes to.

As CSV, with the columns `student`, `exercise`, `points`, `comment` and, if you like, `answer`; rows
of `review.csv` can be copied there. As TOML:

    [students.ada."lab01.causal_mask"]
    points = 0.5
    comment = "The idea is right; the mask is one off."

Without an exercise (in TOML: `[students.ada]`, `comment = …`) a comment is on the whole hand-in.
A mark wins over what the run found. `answer` is the fingerprint of the answer that was marked;
where it is left out, it is that of the report which the mark was written beside.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ..intake.lateness import number
from ..intake.names import Roster, normal
from ..intake.tables import table_of
from ..judge import Outcome
from .report import cell

SHORT = 12  # digits of a fingerprint in marks and reports of earlier versions
_NUMBER = re.compile(r"[0-9]+([.,][0-9]*)?|[.,][0-9]+")
_FINGERPRINT = re.compile("[0-9a-f]{3,32}")
_KEYS = {"points", "comment", "answer"}
_COLUMNS = {"student", "exercise", "points", "comment", "answer", "found"}


@dataclass(frozen=True)
class Mark:
    """What a person gave: points (None leaves them), a comment, the marked answer's fingerprint."""

    points: float | None = None
    comment: str = ""
    answer: str = ""


@dataclass(frozen=True)
class Marks:
    """Marks by (student, exercise), and comments on all that a student handed in."""

    by_exercise: Mapping[tuple[str, str], Mark] = field(default_factory=dict)
    overall: Mapping[str, str] = field(default_factory=dict)

    def applied(
        self, student: str, outcomes: Sequence[Outcome], earlier: Mapping[str, Mapping[str, Any]]
    ) -> tuple[Outcome, ...]:
        """The outcomes with the marks put on, each flagged where what it marked has changed.

        `earlier` holds the student's outcomes of the report before, by exercise.
        """
        made = []
        for one in outcomes:
            mark = self.by_exercise.get((student, one.exercise))
            made.append(_marked(one, mark, earlier.get(one.exercise, {})) if mark else one)
        return tuple(made)


def read_marks(
    path: Path,
    students: Sequence[str],
    maxima: Mapping[str, int],
    roster: Roster,
    elsewhere: Collection[str] = (),
) -> Marks:
    """Read a file of marks for a class and the exercises (with their most points) of this run.

    Marks of the exercises `elsewhere` wait for a run of theirs.

    Raises:
        UsageError: if it can't be read, or names a student, an exercise or points that can't be.
    """
    by_exercise: dict[tuple[str, str], Mark] = {}
    overall: dict[str, str] = {}
    known = {cell(student): student for student in students} | {s: s for s in students}
    for place, row in _rows(Path(path)):
        given = normal(str(row.get("student", "")).strip())
        student = known.get(given) or roster.find(given) or given.lstrip("'")
        exercise = str(row.get("exercise", "")).strip()
        where = f"{place} of the marks {path}"
        if student not in known:
            raise UsageError(f"{where} is for {row.get('student')!r}, who handed in nothing")
        comment = str(row.get("comment", "") or "").strip()
        if (student, exercise) in by_exercise or (not exercise and student in overall):
            what = f"marks {exercise}" if exercise else "comments the whole hand-in"
            raise UsageError(f"{where} {what} of {student} a second time")
        if not exercise:
            if str(row.get("points") or "").strip():
                raise UsageError(f"{where} gives points and names no exercise; points are for one")
            overall |= {student: comment} if comment else {}
        elif exercise not in maxima and exercise in elsewhere:
            continue
        elif exercise not in maxima:
            raise UsageError(f"{where} is for {exercise!r}, which is no exercise of the course")
        else:
            points = _points(row.get("points"), maxima[exercise], where)
            answer = _answer(row.get("answer"), where)
            if points is not None or comment:
                by_exercise[student, exercise] = Mark(points, comment, answer)
    return Marks(by_exercise, overall)


def earlier_outcomes(results: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """What the report before said, by student and exercise; nothing where there is none."""
    try:
        found = json.loads(results.read_text(encoding="utf-8"))
        return {
            row["student"]: {one["exercise"]: one for one in row["outcomes"]}
            for row in found["students"]
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _marked(one: Outcome, mark: Mark, earlier: Mapping[str, Any]) -> Outcome:
    of_answer, of_status = mark.answer, ""
    same = earlier.get("mark") == mark.points and earlier.get("comment") == mark.comment
    if same and earlier.get("marked_status"):
        of_answer = of_answer or str(earlier.get("marked_answer", ""))
        of_status = str(earlier["marked_status"])
    elif earlier:  # written beside the report before, or one that we didn't see
        of_answer = of_answer or str(earlier.get("answer", ""))
        of_status = str(earlier.get("status", ""))
    else:
        of_answer, of_status = of_answer or one.answer, one.status
    stale = ""
    if len(of_answer) == SHORT and one.answer.startswith(of_answer):
        of_answer = one.answer  # from now on it stands there in full
    if of_answer != one.answer:
        stale = "the answer has changed since it was marked"
    elif of_status and of_status != one.status:
        stale = f"the run found {of_status} when it was marked, and {one.status} now"
    return replace(
        one,
        mark=mark.points,
        comment=mark.comment,
        stale=stale,
        marked_answer=of_answer,
        marked_status=of_status or one.status,
    )


def _points(value: Any, maximum: int, where: str) -> float | None:
    text = str("" if value is None else value).strip()
    if not text:
        return None
    written = isinstance(value, str) and not _NUMBER.fullmatch(text)
    try:
        points = -1.0 if written else float(text.replace(",", "."))
    except ValueError:
        points = -1.0
    if isinstance(value, bool) or not 0 <= points <= maximum:
        raise UsageError(f"{where} gives {text!r} points; from 0 to {number(maximum)} can be given")
    return points


def _answer(value: Any, where: str) -> str:
    text = str(value or "").strip()
    if text and not _FINGERPRINT.fullmatch(text):
        raise UsageError(
            f"{where} has {text!r} for the marked answer; leave it out, or copy it from review.csv"
        )
    return text


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix.lower() != ".toml":
        rows, _ = table_of(path, "file of marks", ("student",), once=_COLUMNS)
        strange = sorted({title for row in rows for title in row} - _COLUMNS)
        if strange:
            raise UsageError(f"the marks {path} have the column {strange[0]!r}, which isn't known")
        yield from ((f"line {number}", row) for number, row in enumerate(rows, 2))
        return
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UsageError(f"the marks {path} can't be read as TOML: {error}") from error
    students = _table(found, {"students"}, f"the marks {path}").get("students", {})
    for student, table in _table(students, None, f"the marks {path}").items():
        for name, value in _table(table, None, f"{student} of the marks {path}").items():
            place = f"{student}, {name}"
            if isinstance(value, dict):
                row = _table(value, _KEYS, f"{place} of the marks {path}") | {"exercise": name}
            else:
                row = _table({name: value}, {"comment"}, f"{student} of the marks {path}")
            yield place, {**row, "student": student}


def _table(value: Any, known: set[str] | None, where: str) -> dict[str, Any]:
    """A table of TOML with no other keys than the known ones."""
    if not isinstance(value, dict):
        raise UsageError(f"{where} can't be read: {value!r} is no table")
    strange = sorted(set(value) - known) if known is not None else []
    if strange:
        names = ", ".join(sorted(known or ()))
        raise UsageError(f"{where} has {strange[0]!r}, which isn't known; known is {names}")
    return value


def review_csv(rows: Sequence[tuple[str, Outcome]]) -> str:
    """What a person has to decide, as rows to be copied into the file of marks and filled in."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", "exercise", "points", "comment", "answer", "found"])
    for student, one in rows:
        found = one.stale or f"{one.status}: {' '.join(one.lines)}"[:300]
        table.writerow([cell(student), one.exercise, "", "", one.answer, cell(found)])
    return text.getvalue()
