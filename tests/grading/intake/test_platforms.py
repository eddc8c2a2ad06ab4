"""What learning platforms hand over: whose it is, when it came, and which attempt counts."""

from __future__ import annotations

import copy
import zipfile
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from pupils import COURSE, SCORES, dump, released, solved, write

from labs_lib.errors import UsageError
from labs_lib.grading.intake.attempts import choose
from labs_lib.grading.intake.collect import collect
from labs_lib.grading.intake.lateness import LatePolicy
from labs_lib.grading.intake.names import Roster, read_roster
from labs_lib.grading.intake.received import Received, read_received

SOLVED, STUB = dump(solved()), dump(released())
ZONE = ZoneInfo("Europe/Berlin")
DEADLINE = datetime(2026, 10, 25, 12, 0, tzinfo=UTC)


def other(text="def attention_scores(q, k):\n    return q"):
    whole = copy.deepcopy(solved())
    write(whole, SCORES, text)
    return dump(whole)


def archive(tmp_path, name, files):
    with zipfile.ZipFile(tmp_path / name, "w") as made:
        for path, content in files.items():
            made.writestr(path, content)
    return tmp_path / name


def owners_of(source, roster=None, given=None):
    found, left_out = collect(source, roster, given or {})
    return {one.student: [f.label for f in one.files] for one in found}, left_out


PLATFORMS = {
    "canvas": {
        "leeann_12345_678_lab.ipynb": SOLVED,
        "leeann_12345_679_lab-2.ipynb": SOLVED,
        "roebo_LATE_99_680_q3 final.ipynb": SOLVED,
    },
    "moodle folders": {
        "Ann Lee_77_assignsubmission_file_/lab.ipynb": SOLVED,
        "Bo Roe_78_assignsubmission_file_/Copy of lab (1).ipynb": SOLVED,
    },
    "moodle flat": {
        "Ann Lee_77_assignsubmission_file_lab.ipynb": SOLVED,
        "Bo Roe_78_assignsubmission_file_lab.ipynb": SOLVED,
    },
    "blackboard": {
        "Lab_1_alee_attempt_2026-10-24-10-00-00.txt": b"Name: Ann Lee (alee)",
        "Lab_1_alee_attempt_2026-10-24-10-00-00_lab.ipynb": STUB,
        "Lab_1_alee_attempt_2026-10-25-09-30-00.txt": b"Name: Ann Lee (alee)",
        "Lab_1_alee_attempt_2026-10-25-09-30-00_lab.ipynb": SOLVED,
        "Lab_1_b_roe_attempt_2026-10-25-23-00-00.txt": b"",
        "Lab_1_b_roe_attempt_2026-10-25-23-00-00_x.zip": b"",
    },
    "github": {
        "one-head-submissions/one-head-ann-lee/notebooks/01.ipynb": SOLVED,
        "one-head-submissions/one-head-ann-lee/README.md": b"",
        "one-head-submissions/one-head-bo/notebooks/01.ipynb": SOLVED,
        "one-head-submissions/one-head-bo/.git/x.ipynb": STUB,
    },
    "ilias": {
        "Lee_Ann_alee_4711/lab.ipynb": SOLVED,
        "Roe_Bo_broe_4712/lab.ipynb": SOLVED,
    },
}
BY_NAME = {
    "canvas": {"leeann", "roebo"},
    "moodle folders": {"Ann Lee", "Bo Roe"},
    "moodle flat": {"Ann Lee", "Bo Roe"},
    "blackboard": {"alee", "b_roe"},
    "github": {"ann-lee", "bo"},
    "ilias": {"Lee_Ann_alee_4711", "Roe_Bo_broe_4712"},
}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_platforms_archive_has_a_row_for_each_student(tmp_path, platform):
    found, _ = owners_of(archive(tmp_path, "in.zip", PLATFORMS[platform]))
    assert set(found) == BY_NAME[platform]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_roster_knows_students_by_any_platforms_name(tmp_path, platform):
    (tmp_path / "class.csv").write_text(
        "student,canvas,moodle,blackboard,github,ilias\n"
        "ann,12345,77,alee,ann-lee,Lee_Ann_alee_4711\n"
        "bo,99,Bo Roe,b_roe,bo,Roe_Bo_broe_4712\n",
        encoding="utf-8",
    )
    found, _ = owners_of(
        archive(tmp_path, "in.zip", PLATFORMS[platform]), read_roster(tmp_path / "class.csv")
    )
    assert set(found) == {"ann", "bo"}


@pytest.mark.parametrize(
    ("header", "student"),
    [
        ("Student,ID,SIS User ID,SIS Login ID,Section", "Lee; Ann,12345,s1,alee,A"),
        ("First name,Surname,ID number,Email address", "Ann,Lee,alee,a@x"),
        ("identifier,github_username,github_id,name", "alee,ann-lee,5,Ann Lee"),
    ],
)
def test_rosters_of_platforms_are_read_as_they_are(tmp_path, header, student):
    (tmp_path / "class.csv").write_text(f"{header}\n{student}\n", encoding="utf-8")
    roster = read_roster(tmp_path / "class.csv")
    assert len(roster.students) == 1 and roster.find("alee") == roster.students[0]


def test_who_is_not_in_the_roster_is_listed_and_has_a_row(tmp_path):
    found, left_out = owners_of(
        archive(tmp_path, "in.zip", PLATFORMS["canvas"]), Roster(("leeann",), {"leeann": "leeann"})
    )
    assert set(found) == {"leeann", "roebo"}
    assert any("roebo is not in the roster" in line for line in left_out)


def test_a_table_says_whose_a_file_is_and_wins(tmp_path):
    (tmp_path / "t.csv").write_text(
        "file,student,submitted\nhw (1).ipynb,ann,2026-10-24T10:00\nq3 final.ipynb,bo,\n",
        encoding="utf-8",
    )
    given = read_received(tmp_path / "t.csv", ZONE, Roster())
    source = archive(tmp_path, "in.zip", {"hw (1).ipynb": SOLVED, "q3 final.ipynb": SOLVED})
    found, _ = owners_of(source, given=given.owners)
    assert found == {"ann": ["hw (1).ipynb"], "bo": ["q3 final.ipynb"]}
    assert given.when("ann", "hw (1).ipynb") == datetime(2026, 10, 24, 8, 0, tzinfo=UTC)
    assert given.when("bo", "q3 final.ipynb") is None


def test_github_classrooms_table_of_grades_tells_when_each_student_pushed(tmp_path):
    (tmp_path / "grades.csv").write_text(
        "assignment_name,github_username,roster_identifier,submission_timestamp,points_awarded\n"
        "One head,ann-lee,ann,2026-10-24 22:35:40 UTC,0\nOne head,bo,,2026-10-26 01:00:00 UTC,0\n",
        encoding="utf-8",
    )
    found = read_received(tmp_path / "grades.csv", ZONE, Roster(("ann",), {"ann": "ann"}))
    assert found.when("ann", "any") == datetime(2026, 10, 24, 22, 35, 40, tzinfo=UTC)
    assert found.when("bo", "any") == datetime(2026, 10, 26, 1, 0, tzinfo=UTC)


def test_a_time_that_can_not_be_read_is_named_by_its_line(tmp_path):
    (tmp_path / "t.csv").write_text("student,submitted\nann,yesterday\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"line 2 .*yesterday"):
        read_received(tmp_path / "t.csv", ZONE, Roster())


def attempts(tmp_path, *handed, rule="last-on-time"):
    """What counts of attempts that came at hours of UTC around a deadline at 12."""
    files = {}
    for hour, content in handed:
        files[f"L_ann_attempt_2026-10-25-{hour:02}-00-00_lab.ipynb"] = content
    (one,), _ = collect(archive(tmp_path, "in.zip", files))
    policy = LatePolicy(deadlines={"lab01": DEADLINE}, attempts=rule)
    kept, timed = choose(one, [COURSE], policy, Received())
    hours = [int(f.when[11:13]) for f in kept.files]
    return hours, timed["lab01"].submitted.hour, kept.notes


def test_the_last_attempt_on_time_counts_and_what_was_left_out_is_told(tmp_path):
    hours, hour, notes = attempts(tmp_path, (9, other()), (11, SOLVED), (15, other("x = 1")))
    assert (hours, hour) == ([11], 11)
    assert "the last attempt on time" in notes[-1] and "09:00:00" in notes[-1]


def test_where_none_is_on_time_the_last_counts_and_by_the_other_rule_always(tmp_path):
    assert attempts(tmp_path, (13, other()), (15, SOLVED))[:2] == ([15], 15)
    assert attempts(tmp_path, (9, other()), (15, SOLVED), rule="last")[:2] == ([15], 15)


def test_the_same_notebook_handed_in_again_keeps_its_first_time(tmp_path):
    again = solved()
    for cell in again.cells:
        if cell.cell_type == "code":
            cell["execution_count"] = 7
    assert attempts(tmp_path, (9, SOLVED), (15, dump(again)), rule="last")[1] == 9
    assert attempts(tmp_path, (9, SOLVED), (11, other()), (15, SOLVED), rule="last")[1] == 9


def test_an_attempt_without_an_answer_never_counts_before_one_with(tmp_path):
    assert attempts(tmp_path, (9, SOLVED), (11, STUB))[:2] == ([9], 9)


def test_attempts_are_chosen_lab_by_lab_and_an_unreadable_one_costs_no_other(tmp_path):
    hours, hour, _ = attempts(tmp_path, (9, SOLVED), (11, b"not json"))
    assert hour == 9 and 9 in hours


def test_one_attempt_is_never_read_to_know_its_time(tmp_path, monkeypatch):
    from labs_lib.grading.intake import attempts as room

    monkeypatch.setattr(room, "look", lambda _: pytest.fail("it was read"))
    assert attempts(tmp_path, (9, SOLVED))[:2] == ([9], 9)


def test_canvas_tells_that_it_was_late_and_not_how_late(tmp_path):
    (late,), _ = collect(archive(tmp_path, "in.zip", {"roebo_LATE_99_680_x.ipynb": SOLVED}))
    policy = LatePolicy(deadlines={"lab01": DEADLINE})
    timed = choose(late, [COURSE], policy, Received())[1]["lab01"]
    assert timed.submitted is None and timed.late
    assert late.files[0].read() == SOLVED
