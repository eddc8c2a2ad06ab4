"""`labs check`: what nbval found, told as one line per exercise."""

from __future__ import annotations

import nbformat
import pytest
from rich.console import Console

from labs_lib.answers import answer
from labs_lib.checking import progress
from labs_lib.checking.verdict import PASS, Verdict
from labs_lib.errors import UsageError
from labs_lib.exercises import exercises
from labs_lib.exercises import lab as find_lab
from labs_lib.workbook.run_checks import Report, check, lab_of, run_checks

from .conftest import RIGHT, WRONG

LAB = find_lab(0)


def first(course, answer, more=None, seconds=60):
    """The outcome of `lab00.first_tensor` for an answer, and the report it stands in."""
    course.write(course.file.name, {course.name: answer})
    if more:
        notebook = nbformat.read(course.file, as_version=4)
        more(notebook)
        nbformat.write(notebook, course.file)
    report = run_checks(course.file, LAB, seconds)
    return next(one for one in report.outcomes if one.exercise == course.name), report


def test_right_answer_passes_and_is_kept_as_progress(course):
    outcome, report = first(course, RIGHT)
    assert (outcome.outcome, report.notes) == ("PASS", [])
    assert progress.entry(course.name)["passed"] is True


def test_wrong_answer_fails_with_all_that_its_verdict_says_of_it(course):
    outcome, report = first(course, "def first_tensor(x):\n    return x.mean(dim=0)")
    assert outcome.outcome == "FAIL"
    wrong = next(w for w in answer(course.name).wrong if w.name == "mean_along_axis_0")
    assert outcome.sentence == " ".join(wrong.says.split("\n"))
    assert not report.passed


@pytest.mark.slow
def test_where_no_mistake_is_named_the_case_is_told(course):
    outcome, _ = first(course, "def first_tensor(x):\n    return x.mean(dim=-1) + 1")
    assert outcome.outcome == "FAIL" and outcome.sentence.startswith("In the case “")
    assert "wanted is" in outcome.sentence


@pytest.mark.slow
def test_untouched_notebook_reads_as_not_attempted_everywhere(course):
    report = run_checks(course.file, LAB)
    assert {one.outcome for one in report.outcomes} == {"NOT ATTEMPTED"}
    assert [one.exercise for one in report.outcomes] == [item.name for item in exercises(0)]
    words = {one.exercise: one.sentence for one in report.outcomes}
    assert words[course.name] == "write first_tensor in its cell of the notebook and save it"
    assert not [x for x in words.values() if "above" in x], "there are no cells in a terminal"


def test_what_passed_and_is_not_in_the_saved_file_is_told(course, monkeypatch):
    monkeypatch.setattr(
        "labs_lib.workbook.run_checks.run_checks", lambda path, lab: Report(path, lab, [])
    )
    progress.record(Verdict(course.name, PASS))
    console = Console(record=True, width=200)
    check([str(course.file)], console)
    assert (
        "1 exercise passed in the notebook but isn't in the saved file: "
        "save it (Ctrl+S) and run this again"
    ) in console.export_text()
    course.write(course.file.name, {course.name: RIGHT})
    check([str(course.file)], console)
    assert "Ctrl+S" not in console.export_text()


@pytest.mark.slow
def test_syntax_error_in_an_answer_is_an_error_and_not_a_missing_attempt(course):
    outcome, report = first(course, "def first_tensor(x:\n    return x")
    assert outcome.outcome == "ERROR"
    assert "SyntaxError" in outcome.sentence
    assert any("SyntaxError" in note for note in report.notes)


@pytest.mark.slow
def test_answer_that_kills_the_kernel_costs_seconds_and_is_named(course):
    outcome, report = first(course, "import os\nos._exit(0)", seconds=300)
    assert outcome.outcome == "ERROR"
    assert "kernel died" in outcome.sentence
    assert any("import os" in note for note in report.notes)


@pytest.mark.slow
def test_endless_loop_ends_at_the_time_limit(course):
    outcome, report = first(course, "while True:\n    pass", seconds=5)
    assert outcome.outcome != "PASS"
    assert any("KeyboardInterrupt" in note or "Timeout" in note for note in report.notes)


@pytest.mark.slow
def test_stored_outputs_and_skip_markers_decide_nothing(course):
    def disguise(notebook):
        for cell in notebook.cells:
            if cell.metadata.get("labs", {}).get("role") == "check":
                cell.source = "# NBVAL_SKIP\n" + cell.source
                cell.metadata["tags"] = ["raises-exception"]
                cell.outputs = [nbformat.v4.new_output("stream", text=f"PASS  {course.name}\n")]

    assert first(course, WRONG, disguise)[0].outcome == "FAIL"


@pytest.mark.slow
def test_changed_or_deleted_check_cell_is_never_a_pass(course):
    def change(notebook):
        for cell in notebook.cells:
            if cell.metadata.get("labs", {}) == {"exercise": course.name, "role": "check"}:
                cell.source = "print('fine')"

    def delete(notebook):
        notebook.cells = [
            c for c in notebook.cells if c.metadata.get("labs", {}).get("role") != "check"
        ]

    changed, _ = first(course, RIGHT, change)
    assert changed.outcome == "ERROR"
    assert "labs reset" in changed.sentence
    deleted, _ = first(course, RIGHT, delete)
    assert deleted.outcome == "ERROR"
    assert "missing" in deleted.sentence


@pytest.mark.slow
def test_students_own_conftest_and_pytest_settings_never_run(course, monkeypatch):
    for folder in (course.home, course.notebooks):
        (folder / "conftest.py").write_text("raise SystemExit('ran')", encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --nope\n", encoding="utf-8")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--also-nope")
    assert first(course, RIGHT)[0].outcome == "PASS"


@pytest.mark.slow
def test_notebook_elsewhere_is_checked_and_leaves_progress_alone(course, tmp_path):
    copy = tmp_path / "renamed by somebody.ipynb"
    course.write(course.file.name, {course.name: RIGHT}).replace(copy)
    course.write(course.file.name)
    console = Console(record=True, width=200)
    assert check([str(copy)], console) is False  # the other exercises are stubs
    assert f"PASS          {course.name}" in console.export_text()
    assert progress.entry(course.name) == {}


def test_lab_is_known_by_its_checks_and_not_by_its_file_name(course):
    assert lab_of(course.write("my work.ipynb")).name == "lab00"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"<<<<<<< HEAD\n{}", "merge-conflict"),
        (b'{"cells": 3, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "not a notebook"),
        (b"\xff\xfe\x00{", "not a notebook"),
        (b"[1, 2]", "not a notebook"),
        (b'{"cells": [], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "no check"),
    ],
)
def test_file_that_is_no_notebook_of_the_course_gets_one_sentence(course, content, says):
    course.file.write_bytes(content)
    with pytest.raises(UsageError, match=says):
        check([str(course.file)])
