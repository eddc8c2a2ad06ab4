"""The report is well-formed and harmless, whatever a student is called or wrote."""

from __future__ import annotations

import csv
import io
import json
import threading
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_lib.errors import UsageError
from labs_lib.grading.judge import Outcome
from labs_lib.grading.reports import folder as room
from labs_lib.grading.reports.feedback import page
from labs_lib.grading.reports.folder import check_target, write
from labs_lib.grading.reports.report import Report, Row, grades_csv, junit_xml

EVIL = "</p><script>alert('1')</script>&\"\x00\x1b[31m\ufffe\ud800 ok"


def report(*rows):
    return Report(
        rows=rows,
        exercises=("lab90.a", "lab90.b"),
        titles={"lab90": "90 · <Lab>"},
        maximum=2,
        seed=1,
        fence="Student code ran nowhere.",
    )


def row(student="ann", status="pass", line="fine", **more):
    outcomes = (
        Outcome("lab90.a", status, 1, (line,), how="its id", notes=(line,)),
        Outcome("lab90.b", "pass", 1, seconds=0.5),
    )
    return Row(student, outcomes, files=(line,), notes=(line,), **more)


def table(made):
    return list(csv.DictReader(io.StringIO(grades_csv(made), newline="")))


def test_points_stand_in_their_columns_and_undecided_ones_say_so():
    (ann, bob) = table(report(row(), row("bob", "needs-review")))
    assert (ann["lab90.a"], ann["total"], ann["maximum"], ann["status"]) == (
        "1",
        "2",
        "2",
        "complete",
    )
    assert (bob["lab90.a"], bob["total"], bob["status"]) == ("needs-review", "1", "needs-review 1")


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1"])
def test_no_name_is_a_formula_in_a_spreadsheet(name):
    shown = table(report(row(name)))[0]["student"]
    assert shown.startswith("'") and shown.replace("'", "") == name.replace("\r", " ")
    assert shown.endswith(f"'{name.strip()}")


def test_quotes_commas_and_line_ends_stay_in_their_cell():
    name = 'a,"b"\nc;d'
    assert table(report(row(name), row()))[0]["student"] == name
    assert len(table(report(row(name), row()))) == 2


def test_junit_counts_failures_and_errors_and_skips_nothing():
    root = ElementTree.fromstring(junit_xml(report(row(status="fail"), row("b", "infrastructure"))))
    first, second = root
    assert (first.get("failures"), first.get("errors")) == ("1", "0")
    assert (second.get("failures"), second.get("errors")) == ("0", "1")
    assert root.find(".//skipped") is None
    assert first[0].find("failure").get("type") == "fail" and len(first[1]) == 0


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30), st.text(max_size=60))
def test_every_file_is_well_formed_whatever_the_text(student, line):
    made = report(row(student, "fail", line))
    ElementTree.fromstring(junit_xml(made))
    assert len(table(made)) == 1
    text = page(made.rows[0], made)
    text.encode("utf-8")
    json.loads(room.results_json(made, []))


def test_student_content_is_escaped_in_feedback():
    made = report(row(EVIL, "fail", EVIL, comment=EVIL))
    made = replace(made, hints={"lab90.a": EVIL})
    text = page(made.rows[0], made)
    assert "<script" not in text and "\x1b" not in text and "\x00" not in text
    assert text.count("&lt;script&gt;") >= 8
    assert "default-src 'none'" in text and "&lt;Lab&gt;" in text
    assert "http" not in text.replace("http-equiv", "")


def test_feedback_names_status_points_sentence_and_how_it_was_matched():
    made = report(row("ann", "needs-review", "A sentence."))
    text = page(made.rows[0], made)
    for word in ("under review", "A sentence.", "Found by its id", "1 of 2 points", "? of 1"):
        assert word in text


def test_a_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(report(row()), out)
    before = (out / "grades.csv").read_text(encoding="utf-8")
    monkeypatch.setattr(room, "junit_xml", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(report(row("bob")), out)
    assert (out / "grades.csv").read_text(encoding="utf-8") == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_new_report_replaces_the_old_one_whole(tmp_path):
    write(report(row("ann"), row("bob")), tmp_path / "out")
    check_target(tmp_path / "out", tmp_path / "in")
    write(report(row("cy")), tmp_path / "out")
    assert [p.name for p in (tmp_path / "out" / "feedback").iterdir()] == ["cy.html"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_reports_written_at_the_same_time_leave_one_whole_report(tmp_path):
    troubles = []

    def writes(student):
        try:
            for _ in range(8):
                write(report(*(row(f"{student}{n}") for n in range(3))), tmp_path / "out")
        except OSError as error:
            troubles.append(error)

    threads = [threading.Thread(target=writes, args=(name,)) for name in ("ann", "bob", "cy")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == [] and [p.name for p in tmp_path.iterdir()] == ["out"]
    found = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    pages = {f"{one['student']}.html" for one in found["students"]}
    assert {p.name for p in (tmp_path / "out" / "feedback").iterdir()} == pages


def test_a_folder_with_other_content_is_never_replaced(tmp_path):
    out = tmp_path / "out"
    write(report(row()), out)
    (out / "feedback" / "mine.html").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(out)
    (tmp_path / "empty").mkdir()
    check_target(tmp_path / "empty", tmp_path / "in")
    for target in (out, tmp_path / "link"):
        with pytest.raises(UsageError):
            check_target(target, tmp_path / "in")
    (out / "feedback" / "mine.html").unlink()
    (out / "results.json").write_text('{"made_by": "another", "files": []}', encoding="utf-8")
    with pytest.raises(UsageError):
        check_target(out, tmp_path / "in")


def test_a_place_that_can_not_be_written_to_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="can't be made"):
        check_target(tmp_path / "file" / "out", tmp_path / "in")
