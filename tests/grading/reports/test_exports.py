"""Tables for Canvas, Moodle and nbgrader's readers: their columns, and nothing that runs there."""

from __future__ import annotations

import csv
import io
import re
import time
from datetime import UTC, datetime

import pytest

from labs_lib.grading.intake.lateness import Late
from labs_lib.grading.intake.names import Roster, read_roster
from labs_lib.grading.judge import Outcome
from labs_lib.grading.reports.exports import CANVAS, NBGRADER, exports
from labs_lib.grading.reports.folder import write
from labs_lib.grading.reports.report import Report, Row

DUE = datetime(2026, 10, 25, 22, 59, tzinfo=UTC)
TITLES = {"lab90": "90 · One", "lab91": "91 · Two"}
EVIL = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a;=1+1", "=cmd|' /C calc'!A0"]
EVIL += ['a;"=1+1', "a\n=1+1", "a\t@x", " =1+1", "\uff1d1+1", 'a\n"-1']


def report(*rows):
    names = ("lab90.a", "lab90.b", "lab91.a")
    return Report(rows, names, TITLES, 4, 1, "fence", maxima={"lab90": 3, "lab91": 1})


def row(student="ann", last="pass", **more):
    outcomes = (
        Outcome("lab90.a", "pass", 2),
        Outcome("lab90.b", "fail", 1),
        Outcome("lab91.a", last, 1),
    )
    return Row(student, outcomes, **more)


def late(points=0.5):
    return {"lab90": Late(DUE, DUE, 1, points, "late")}


def tables(made, roster=None):
    files = exports(made, roster or Roster())
    return {
        name: list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
        for name, content in files.items()
    }


@pytest.fixture
def roster(tmp_path):
    (tmp_path / "r.csv").write_text(
        "student,first name,last name,id,sis user id,sis login id,section,email,id number\n"
        "ann,Ann,Lee,55,S9,alee,A,ann@x.org,m77\n",
        encoding="utf-8",
    )
    return read_roster(tmp_path / "r.csv")


def test_canvas_gets_its_columns_points_possible_and_a_column_for_each_lab(roster):
    head, possible, ann, bob = tables(report(row(late=late()), row("bob")), roster)["canvas.csv"]
    assert head == [*CANVAS, "90 · One", "91 · Two"]
    assert possible[0].strip() == "Points Possible" and possible[5:] == ["3", "1"]
    assert ann == ["Lee, Ann", "55", "S9", "alee", "A", "1.5", "1"]
    assert bob == ["bob", "", "", "bob", "", "2", "1"]


def test_canvas_knows_students_by_the_number_in_its_own_file_names():
    files = ("leeann_12345_678_lab.ipynb", "Bo_77_assignsubmission_file_/lab.ipynb")
    made = report(row("leeann", files=files[:1]), row("Bo", files=files[1:]))
    rows = tables(made)["canvas.csv"]
    assert rows[2][1:4] == ["12345", "", ""] and rows[3][1:4] == ["", "", "Bo"]


def test_what_is_undecided_stays_empty_and_overwrites_no_grade():
    made = report(row(last="needs-review"))
    assert tables(made)["canvas.csv"][2][5:] == ["2", ""]
    assert tables(made)["moodle.csv"][1][4:6] == ["2", ""]


def test_moodle_gets_identifiers_grades_and_feedback(roster):
    made = report(row(comment="Well\ndone."), row("bob"))
    head, ann, bob = tables(made, roster)["moodle.csv"]
    assert head[:4] == ["ID number", "Username", "Email address", "Full name"]
    assert ann == ["m77", "", "ann@x.org", "Ann Lee", "2", "1", "Well done."]
    assert bob[:2] == ["bob", ""]


def test_the_gradebook_has_nbgraders_columns_and_a_row_for_each_student_and_lab(roster):
    made = tables(report(row(late=late()), row("bob")), roster)["gradebook.csv"]
    assert made[0] == list(NBGRADER) and len(made) == 1 + 2 * 2
    ann = dict(zip(made[0], made[1], strict=True))
    assert (ann["raw_score"], ann["late_submission_penalty"], ann["score"]) == ("2", "0.5", "1.5")
    assert (ann["duedate"], ann["max_score"]) == ("2026-10-25 22:59:00", "3")
    assert (ann["last_name"], ann["first_name"], ann["email"]) == ("Lee", "Ann", "ann@x.org")


@pytest.mark.parametrize("name", EVIL)
def test_no_cell_of_any_table_is_a_formula(tmp_path, name):
    quoted = name.replace('"', '""').replace("\r", "\\r")
    (tmp_path / "r.csv").write_text(
        f'student,section,email,id,first name,last name\nx,"{quoted}","{quoted}","{quoted}",'
        f'"{quoted}","{quoted}"\n',
        encoding="utf-8",
        newline="",
    )
    made = report(row("x", comment=name), row(name))
    for table in tables(made, read_roster(tmp_path / "r.csv")).values():
        for line in table:
            for cell in line:
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell
                assert not re.search(r'[;\t\n][\s"]*[=+\-@\uff1d]', cell), cell
                assert not cell.lstrip().startswith(("=", "\uff1d"))


def test_a_class_of_a_thousand_is_exported_in_seconds(tmp_path):
    rows = tuple(row(f"student {n}", late=late()) for n in range(1000))
    began = time.process_time()
    exports(report(*rows), Roster())
    write(report(*rows), tmp_path / "out")
    assert time.process_time() - began < 30
