"""`labs progress`: every exercise has a row, with or without a state, damaged or not."""

from __future__ import annotations

import pytest
from rich.console import Console

from labs_lib.checking import progress
from labs_lib.exercises import exercises, labs
from labs_lib.exercises.registry import UnknownLab
from labs_lib.workbook.progress_table import rows, show


def text(which=None):
    console = Console(record=True, width=100)
    show(which, console)
    return console.export_text()


def test_without_any_state_every_exercise_is_not_attempted(course):
    assert [row.exercise for row in rows()] == [item.name for item in exercises()]
    assert {row.state for row in rows()} == {"not attempted"}
    shown = text()
    assert all(lab.title in shown for lab in labs())
    assert f"0 of {len(exercises())} exercises and quiz questions passed" in shown


def test_passed_stays_passed_after_a_later_failure(course):
    progress.update(course.name, outcome="FAIL", passed=True, tries=3, hints=1)
    row = rows(0)[0]
    assert (row.passed, row.tries, row.hints) == (True, 3, 1)


def test_latest_outcome_is_shown_until_it_passes(course):
    progress.update(course.name, outcome="FAIL", tries=2)
    assert rows("00")[0].state == "fail"
    assert "fail" in text("00")


def test_points_of_passed_exercises_are_added_up(course):
    for item in exercises(0):
        progress.update(item.name, outcome="PASS", passed=True, tries=1)
    points = sum(item.points for item in exercises(0))
    assert f"{points} of {points} points" in text(0)


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"tries": "x", "passed": "no", "hints": -1}'])
def test_damaged_progress_file_reads_as_none(course, content):
    folder = progress.folder()
    folder.mkdir(parents=True)
    (folder / f"{course.name}.json").write_text(content, encoding="utf-8")
    row = rows(0)[0]
    assert (row.state, row.tries, row.hints) == ("not attempted", 0, 0)


def test_switched_off_progress_is_said(course, monkeypatch):
    monkeypatch.setenv("LABS_STATE", "off")
    assert "switched off" in text()


def test_unknown_lab_is_refused(course):
    with pytest.raises(UnknownLab):
        rows("77")
