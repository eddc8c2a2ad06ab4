"""A student's own report: kept beside the notebook, packed, shown to the grader, never trusted."""

from __future__ import annotations

import json
import zipfile

import pytest

from labs_lib.grading.grade import grade
from labs_lib.grading.intake.collect import collect
from labs_lib.grading.reports.feedback import page as feedback_page
from labs_lib.grading.reports.own import own_reports
from labs_lib.grading.reports.report import Report, Row
from labs_lib.workbook.own_report import (
    MOST_BYTES,
    MOST_CHARS,
    SUFFIX,
    OwnReport,
    Section,
    fragment,
    page,
    read,
    save,
)
from labs_lib.workbook.submit import submit

EVIL = "</td><script>alert('1')</script>&\"\x00\x1b[31m"
MADE = OwnReport("A report", (Section("Words", EVIL), Section("Bytes", "", (("q", EVIL),))))


def kept(course):
    save(MADE, "12_your_attention_speaks")
    return course.notebooks / f"12_your_attention_speaks{SUFFIX}"


def test_every_word_of_it_is_escaped_wherever_it_is_shown():
    for shown in (fragment(MADE), page(MADE), MADE._repr_html_()):
        assert "<script" not in shown and "&lt;script&gt;" in shown and "\x00" not in shown


def test_it_comes_back_from_its_file_as_it_was(course):
    assert read(kept(course).read_bytes()) == MADE


def test_submission_carries_it_and_the_grader_shows_it_below_the_marks(course):
    kept(course)
    (course.notebooks / "12_your_attention_speaks.report.html").write_text("<script>", "utf-8")
    archive = submit("ada").archive
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
        manifest = json.loads(packed.read("labs-submission.json"))
    assert [n for n in names if "report" in n] == [f"notebooks/12_your_attention_speaks{SUFFIX}"]
    assert manifest["notebooks"] == [course.file.name]
    (submission,), _ = collect(archive)
    assert not any("no notebook" in note for note in submission.notes)
    own = own_reports([submission])
    run = Report((), (), {}, 0, 1, "fence", own=own)
    shown = feedback_page(Row("ada", ()), run)
    assert "&lt;script&gt;" in shown and "<script" not in shown and "no marks" in shown


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[1]", b"{}", b'{"sections": 3}', b'{"sections": [3]}', b"[" * 100_000,
     b" " * (MOST_BYTES + 1)],
    ids=["empty", "no text", "a list", "no sections", "a number", "no section", "deep", "large"],
)  # fmt: skip
def test_what_is_no_report_is_said_to_be_none_and_stops_nobody(tmp_path, content):
    student = tmp_path / "class" / "eve"
    student.mkdir(parents=True)
    (student / "x.ipynb").write_bytes(b"{}")
    (student / f"x{SUFFIX}").write_bytes(content)
    submissions, _ = collect(tmp_path / "class")
    (report,) = own_reports(submissions).values()
    assert "can't be shown" in report.sections[0].text


def test_too_much_is_cut_and_what_is_no_text_is_left_out():
    data = {
        "title": 7,
        "sections": [
            {"title": "x" * 5000, "rows": [["a"] * 9, 3, [1, None, {}]] * 30, "text": None}
        ] * 22,
    }  # fmt: skip
    found = read(json.dumps(data).encode())
    assert (found.title, len(found.sections)) == ("", 20)
    first = found.sections[0]
    assert len(first.title) == MOST_CHARS and first.text == ""
    assert len(first.rows) <= 60 and {len(row) for row in first.rows} == {6, 3}


def test_it_changes_no_mark(tmp_path):
    for name in ("with", "without"):
        student = tmp_path / name / "ann"
        student.mkdir(parents=True)
        (student / "00_start_here.ipynb").write_bytes(b"no notebook")
    (tmp_path / "with" / "ann" / f"x{SUFFIX}").write_text(
        '{"title": "all passed", "sections": [{"title": "5 of 5"}]}', encoding="utf-8"
    )
    marks = []
    for name in ("with", "without"):
        out = tmp_path / f"out-{name}"
        grade(tmp_path / name, out, labs="00")
        marks.append((out / "grades.csv").read_text(encoding="utf-8"))
        results = json.loads((out / "results.json").read_text(encoding="utf-8"))
        assert results["students"][0]["own_report"] is (name == "with")
        feedback = (out / "feedback" / "ann.html").read_text(encoding="utf-8")
        assert ("all passed" in feedback) is (name == "with")
    assert marks[0] == marks[1]


def test_in_solutions_and_in_graded_runs_nothing_is_kept(course, monkeypatch):
    monkeypatch.setenv("LABS_RUN", "run.json")
    assert save(MADE, "12_your_attention_speaks") is None
    assert not list(course.notebooks.glob(f"*{SUFFIX}"))
