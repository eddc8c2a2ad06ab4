"""A class from the platform's archive to the platform's table, by the command line alone."""

from __future__ import annotations

import csv
import json
import zipfile

import pytest
from pupils import MASK, SCORES, dump, released, solved, write

from labs_lib.cli import main
from labs_lib.exercises import exercises


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """No code has to run: bob's notebook is untouched, and ann handed in two at a time, which is
    for a person to decide."""
    base = tmp_path_factory.mktemp("class")
    other = solved()
    write(other, SCORES, "def attention_scores(q, k):\n    return q")
    with zipfile.ZipFile(base / "lab.zip", "w") as archive:
        for name, content in {
            "L_alee_attempt_2026-10-25-23-30-00_a.ipynb": dump(solved()),
            "L_alee_attempt_2026-10-25-23-30-00_b.ipynb": dump(other),
            "L_alee_attempt_2026-10-25-23-30-00.txt": b"Name: Ann Lee (alee)",
            "L_bob_attempt_2026-10-24-10-00-00_lab.ipynb": dump(released()),
        }.items():
            archive.writestr(name, content)
    files = {
        "class.csv": "student,first name,last name,blackboard\nann,Ann,Lee,alee\nbob,Bob,Roe,bob\n"
        "cy,Cy,Poe,cy\n",
        "late.toml": 'zone = "Europe/Berlin"\npercent_per_day = 10\n[deadlines]\n'
        "lab01 = 2026-10-25T12:00:00\n",
        "grades-marks.csv": f"student,exercise,points,comment\nann,{SCORES},1,By voice.\n"
        f"ann,{MASK},0,\nann,,,See me.\n",
    }
    for name, text in files.items():
        (base / name).write_text(text, encoding="utf-8")
    given = ["--roster", str(base / "class.csv"), "--late", str(base / "late.toml")]
    run = ["grade", str(base / "lab.zip"), "--out", str(base / "grades"), "--labs", "01"]
    assert main([*run, *given, "--similarity"]) == 0
    return base / "grades"


def rows(folder, name, key="student"):
    with open(folder / name, encoding="utf-8", newline="") as file:
        return {row[key]: row for row in csv.DictReader(file)}


def test_marks_lateness_and_a_row_for_everybody_meet_in_the_grades(graded):
    found = rows(graded, "grades.csv")
    assert set(found) == {"ann", "bob", "cy"}
    ann = found["ann"]
    assert (ann[SCORES], ann[MASK], ann["late"], ann["total"]) == ("1", "0", "0.1", "0.9")
    assert "needs-review" in ann["status"] and "marked 1" in ann["status"]
    assert found["bob"]["late"] == "0" and "not-attempted" in found["cy"]["status"]


def test_times_are_utc_in_the_results_and_the_zones_on_the_page(graded):
    found = json.loads((graded / "results.json").read_text(encoding="utf-8"))
    ann = next(one for one in found["students"] if one["student"] == "ann")
    assert ann["late"]["lab01"]["submitted"] == "2026-10-25T22:30:00+00:00"
    assert ann["late"]["lab01"]["days"] == 1
    page = (graded / "feedback" / "ann.html").read_text(encoding="utf-8")
    for words in ("23:30:00 +0100 (Europe/Berlin)", "1 day late", "By voice.", "See me."):
        assert words in page


def test_what_is_open_is_listed_once_and_what_was_marked_is_not(graded):
    with open(graded / "review.csv", encoding="utf-8", newline="") as file:
        listed = [(row["student"], row["exercise"]) for row in csv.DictReader(file)]
    worth = [e.name for e in exercises(1) if e.points]
    assert sorted(listed) == sorted(("ann", n) for n in worth if n not in (SCORES, MASK))


def test_tables_for_platforms_lie_beside(graded):
    assert rows(graded, "canvas.csv", "Student")["Lee, Ann"]["SIS Login ID"] == "ann"
    assert rows(graded, "moodle.csv", "ID number")["ann"]["Feedback"].startswith("See me.")
    with open(graded / "gradebook.csv", encoding="utf-8", newline="") as file:
        ann = next(row for row in csv.DictReader(file) if row["student_id"] == "ann")
    assert (ann["raw_score"], ann["late_submission_penalty"], ann["score"]) == ("1", "0.1", "0.9")
    assert ann["timestamp"] == "2026-10-25 22:30:00"
    assert "never a verdict" in (graded / "similarity.html").read_text(encoding="utf-8")


def test_marks_written_into_the_list_of_what_is_open_are_not_lost(graded, capsys):
    listed = graded / "review.csv"
    text = listed.read_text(encoding="utf-8")
    first = next(line for line in text.splitlines() if line.startswith("ann,"))
    listed.write_text(text.replace(first, first.replace(",,,", ",1,,", 1)), encoding="utf-8")
    marked = listed.read_bytes()
    assert main(["grade", str(graded.parent / "lab.zip"), "--out", str(graded)]) != 0
    assert "grades-marks.csv" in capsys.readouterr().err
    assert listed.read_bytes() == marked
    listed.write_text(text, encoding="utf-8")
