"""The tables of a grading run: grades.csv, results.json and JUnit XML, and all of it in one folder.

Whatever a student is called or wrote, the files are well-formed: text is escaped, control
characters go, and a cell that a spreadsheet would take for a formula is quoted.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import UsageError
from ..workbook.own_report import OwnReport
from .feedback import page
from .judge import Outcome
from .names import file_names

MADE_BY = "labs grade"
RESULTS = "results.json"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_AFTER_SEMICOLON = re.compile(r"(;\s*)([=+\-@])")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Row:
    """One student: the outcome of every exercise, in the order of the course."""

    student: str
    outcomes: tuple[Outcome, ...]
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The points that are decided."""
        return sum(outcome.points or 0 for outcome in self.outcomes)

    @property
    def status(self) -> str:
        """How often each status but pass occurs among exercises with points; `complete` if none."""
        counted = Counter(o.status for o in self.outcomes if o.status != "pass" and o.maximum)
        return "; ".join(f"{word} {n}" for word, n in counted.items()) or "complete"


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


def check_target(out: Path, source: Path) -> None:
    """Refuse a folder that the report must not replace.

    Raises:
        UsageError: if it exists with anything in it but an earlier report, is a file or a link, or
            lies in the submissions (or they in it).
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} exists and is no folder; give another --out")
    inside, around = out.resolve(), source.resolve()
    if inside == around or around in inside.parents or inside in around.parents:
        raise UsageError(
            f"{out} and the submissions {source} lie in one another; give another --out"
        )
    parent = next(folder for folder in out.resolve().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UsageError(f"{out} can't be made, since {parent} can't be written to")
    strangers = _strangers(out) if out.is_dir() else []
    if strangers:
        raise UsageError(
            f"the folder {out} exists and holds {strangers[0]!r}, which `labs grade` didn't write; "
            "give another --out"
        )


def write(report: Report, out: Path) -> None:
    """Write the report as a whole: into a new folder beside `out`, then renamed into its place."""
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    old = building.with_name(building.name + ".old")
    try:
        for name, content in _files(report).items():
            file = building / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
        building.chmod(0o755)
        if out.exists():
            os.replace(out, old)
        os.replace(building, out)
    finally:
        if old.exists() and not out.exists():
            os.replace(old, out)
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(building, ignore_errors=True)


def grades_csv(report: Report) -> str:
    """A row per student, a column per exercise: its points, or its status while it is undecided."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", *report.exercises, "total", "maximum", "status"])
    for row in report.rows:
        points = [o.status if o.points is None else o.points for o in row.outcomes]
        table.writerow([_cell(row.student), *points, row.total, report.maximum, _cell(row.status)])
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
        bad = [o for o in row.outcomes if o.status != "pass"]
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
            if one.status != "pass":
                kind = "error" if one.points is None else "failure"
                text = _xml("\n".join(one.lines))
                first = text.partition("\n")[0]
                ElementTree.SubElement(case, kind, type=one.status, message=first).text = text
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def _files(report: Report) -> dict[str, bytes]:
    pages = file_names([row.student for row in report.rows], ".html")
    files = {
        "grades.csv": grades_csv(report).encode("utf-8"),
        "junit.xml": junit_xml(report),
    }
    for row in report.rows:
        text = page(row.student, row.outcomes, row.notes, row.files, report)
        files[f"feedback/{pages[row.student]}"] = text.encode("utf-8", "replace")
    return files | {RESULTS: results_json(report, [*files, RESULTS]).encode("utf-8")}


def _strangers(out: Path) -> list[str]:
    """Names of files in a folder that no earlier report wrote."""
    present = sorted(
        p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_symlink() or not p.is_dir()
    )
    try:
        found = json.loads((out / RESULTS).read_text(encoding="utf-8"))
        own = set(found["files"]) if found["made_by"] == MADE_BY else set()
    except (OSError, ValueError, KeyError, TypeError):
        own = set()
    return [name for name in present if name not in own]


def _cell(text: str) -> str:
    """Text that no spreadsheet runs, also where it takes a semicolon for the end of a cell."""
    quoted = f"'{text}" if text.startswith(_FORMULA) else text
    return _AFTER_SEMICOLON.sub(r"\1'\2", quoted).replace("\r", " ")


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
