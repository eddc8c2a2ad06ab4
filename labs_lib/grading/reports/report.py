"""A grading run as data, and its tables: grades.csv, results.json and JUnit XML.

Whatever a student is called or wrote, the files are well-formed: text is escaped, control
characters go, and a cell that a spreadsheet would take for a formula is quoted.
"""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ... import __version__
from ...workbook.own_report import OwnReport
from ..intake.lateness import Late
from ..judge import Outcome

MADE_BY = "labs grade"
RESULTS = "results.json"
# Signs that begin a formula, also as they are written among wide letters.
_FORMULA = re.compile("[\t\r\n]|\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]")
_IN_ANOTHER_CELL = re.compile('([;\t\r\n][\\s"]*)([=+\\-@\uff1d\uff0b\uff0d\uff20])')
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Row:
    """One student: the outcome of every exercise, in the order of the course."""

    student: str
    outcomes: tuple[Outcome, ...]
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    late: Mapping[str, Late] = field(default_factory=dict)
    comment: str = ""

    @property
    def total(self) -> float:
        """The points that are decided, without what lateness costs."""
        return _whole(sum(self.score(lab) for lab in self.labs))

    @property
    def lost(self) -> float:
        """The points that lateness costs."""
        return _whole(sum(late.points for late in self.late.values()))

    @property
    def labs(self) -> list[str]:
        """The labs of the outcomes, in their order."""
        return list(dict.fromkeys(lab_of(one.exercise) for one in self.outcomes))

    @property
    def status(self) -> str:
        """How often each status but pass occurs among exercises with points; `complete` if none."""
        counted = Counter(_word(o) for o in self.outcomes if _word(o) != "pass" and o.maximum)
        return "; ".join(f"{word} {n}" for word, n in counted.items()) or "complete"

    @property
    def remarks(self) -> str:
        """What a person wrote of it, in one line."""
        own = [f"{o.exercise}: {o.comment}" for o in self.outcomes if o.comment]
        return " ".join(" ".join([self.comment, *own]).split())

    def earned(self, lab: str) -> float:
        """The points decided in a lab, lateness aside."""
        return sum(o.points or 0 for o in self.outcomes if lab_of(o.exercise) == lab)

    def score(self, lab: str) -> float:
        """The points decided in a lab."""
        lost = self.late[lab].points if lab in self.late else 0.0
        return max(0.0, self.earned(lab) - lost)

    def is_open(self, lab: str) -> bool:
        """Whether something in a lab is still to be decided."""
        return any(o.points is None for o in self.outcomes if lab_of(o.exercise) == lab)


@dataclass(frozen=True)
class Report:
    """A whole run."""

    rows: tuple[Row, ...]
    exercises: tuple[str, ...]
    titles: Mapping[str, str]
    maximum: int
    seed: int
    fence: str
    left_out: tuple[str, ...] = ()
    own: Mapping[str, OwnReport] = field(default_factory=dict)  # by student; never for marks
    hints: Mapping[str, str] = field(default_factory=dict)
    maxima: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, bytes] = field(default_factory=dict)  # further files, by name


def grades_csv(report: Report) -> str:
    """A row per student, a column per exercise: its points, or its status while it is undecided."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", *report.exercises, "late", "total", "maximum", "status"])
    for row in report.rows:
        points = [o.status if o.points is None else _whole(o.points) for o in row.outcomes]
        sums = (row.lost, row.total, report.maximum)
        table.writerow([cell(row.student), *points, *sums, cell(row.status)])
    return text.getvalue()


def results_json(report: Report, files: Sequence[str]) -> str:
    """Everything that is known, for programs."""
    content: dict[str, Any] = {
        "made_by": MADE_BY,
        "version": __version__,
        "seed": report.seed,
        "fence": report.fence,
        "maximum": report.maximum,
        "exercises": list(report.exercises),
        "students": [
            {
                "student": row.student,
                "total": row.total,
                "files": list(row.files),
                "notes": list(row.notes),
                "own_report": row.student in report.own,
                "late": {lab: _late(one) for lab, one in row.late.items()},
                "comment": row.comment,
                "outcomes": [asdict(one) | {"points": one.points} for one in row.outcomes],
            }
            for row in report.rows
        ],
        "left_out": list(report.left_out),
        "files": sorted(files),
    }
    return json.dumps(content, ensure_ascii=True, indent=1) + "\n"


def junit_xml(report: Report) -> bytes:
    """A suite per student, a case per exercise; what is undecided is an error, never a pass."""
    root = ElementTree.Element("testsuites", name=MADE_BY)
    for row in report.rows:
        bad = [o for o in row.outcomes if not o.is_right]
        errors = [o for o in bad if o.points is None]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_xml(row.student),
            tests=str(len(row.outcomes)),
            failures=str(len(bad) - len(errors)),
            errors=str(len(errors)),
            skipped="0",
        )
        for one in row.outcomes:
            lab, _, short = one.exercise.partition(".")
            case = ElementTree.SubElement(
                suite, "testcase", classname=lab, name=short, time=f"{one.seconds:.3f}"
            )
            if not one.is_right:
                kind = "error" if one.points is None else "failure"
                text = _xml("\n".join(one.lines))
                first = text.partition("\n")[0]
                ElementTree.SubElement(case, kind, type=one.status, message=first).text = text
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def cell(text: str) -> str:
    """Text that no spreadsheet runs, also where a semicolon, a tab or, since it takes no comma for
    the end of a cell, the end of a line begins another one."""
    quoted = f"'{text}" if _FORMULA.match(text) else text
    return _IN_ANOTHER_CELL.sub(r"\1'\2", quoted).replace("\r", " ")


def lab_of(exercise: str) -> str:
    """The lab of an exercise's name."""
    return exercise.partition(".")[0]


def _word(one: Outcome) -> str:
    """The word for an exercise in a row's status."""
    if one.stale:
        return "mark-to-check"
    if one.mark is None:
        return one.status
    return "pass" if one.is_right else "marked"


def _whole(points: float) -> float:
    """Whole points as a whole number, others to two decimals."""
    return int(points) if points == int(points) else round(points, 2)


def _late(one: Late) -> dict[str, Any]:
    """Times as text, in UTC."""
    times = {"submitted": one.submitted, "deadline": one.deadline}
    return asdict(one) | {k: v.isoformat() if v else "" for k, v in times.items()}


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
