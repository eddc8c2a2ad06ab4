"""Marks by hand win, survive every run, and say when what they marked has changed."""

from __future__ import annotations

import io
import json

import pytest
from pupils import MASK, dump, released

from labs_lib.errors import UsageError
from labs_lib.grading.extras import Extras, marks_beside
from labs_lib.grading.grade import grade
from labs_lib.grading.intake.names import Roster
from labs_lib.grading.judge import Outcome, fingerprint
from labs_lib.grading.reports.feedback import page
from labs_lib.grading.reports.folder import write as put
from labs_lib.grading.reports.marks import earlier_outcomes, read_marks, review_csv
from labs_lib.grading.reports.report import RESULTS, Report, Row, grades_csv, junit_xml
from labs_lib.notebook.matching import Answer, Piece

MAXIMA = {"lab90.a": 2, "lab90.b": 1}
HEAD = "student,exercise,points,comment,answer\n"


def outcome(status="needs-review", answer="aaa", **more):
    return Outcome("lab90.a", status, 2, ("a line",), answer=answer, **more)


@pytest.fixture
def marks(tmp_path):
    def made(text, name="m.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return read_marks(tmp_path / name, ["ann", "bob"], MAXIMA, Roster())

    return made


def report(*outcomes):
    rows = (Row("ann", tuple(outcomes), comment="See me."),)
    return Report(rows, ("lab90.a",), {}, 2, 1, "fence", maxima={"lab90": 2})


def test_a_mark_wins_and_decides_what_was_open(marks):
    (one,) = marks(f"{HEAD}ann,lab90.a,1.5,nearly,\n").applied("ann", [outcome()], {})
    made = report(one)
    assert one.points == 1.5 and made.rows[0].total == 1.5 and made.rows[0].status == "marked 1"
    assert "ann,1.5,0,1.5,2,marked 1" in grades_csv(made)
    assert b'errors="0"' in junit_xml(made)
    text = page(made.rows[0], made)
    assert (
        "marked by hand" in text and "nearly" in text and "See me." in text and "1.5 of 2" in text
    )


def test_full_points_by_hand_are_a_pass_and_a_comment_alone_leaves_the_points(marks):
    found = marks(f"{HEAD}ann,lab90.a,2,,\nbob,lab90.a,,well done,\nbob,,,a comment on all,\n")
    (full,) = found.applied("ann", [outcome("fail")], {})
    assert full.is_right and full.points == 2 and report(full).rows[0].status == "complete"
    (told,) = found.applied("bob", [outcome("pass")], {})
    assert told.points == 2 and told.comment == "well done"
    assert found.overall == {"bob": "a comment on all"}


def test_toml_says_the_same(marks):
    found = marks(
        '[students.ann]\ncomment = "all"\n[students.ann."lab90.a"]\npoints = 1\ncomment = "so"\n',
        "m.toml",
    )
    assert found.overall == {"ann": "all"}
    assert found.applied("ann", [outcome()], {})[0].points == 1


def earlier(one):
    return {one.exercise: json.loads(json.dumps({"answer": one.answer, "status": one.status}
            | {"mark": one.mark, "comment": one.comment, "marked_answer": one.marked_answer,
               "marked_status": one.marked_status}))}  # fmt: skip


def test_no_two_answers_can_be_made_for_one_mark():
    one = fingerprint(Answer("lab90.a", (Piece("def f(x): ...", 1, ""),), attempted=True))
    assert len(one) * 4 >= 128 and fingerprint(Answer("lab90.a")) == ""


def test_marks_of_earlier_versions_keep_counting(marks):
    full = "0123456789abcdef0123456789abcdef"
    found = marks(f"{HEAD}ann,lab90.a,1,,{full[:12]}\n")
    (one,) = found.applied("ann", [outcome(answer=full)], {})
    assert not one.stale and one.marked_answer == full
    (other,) = found.applied("ann", [outcome(answer="f" + full[1:])], {})
    assert "changed" in other.stale
    (cut,) = marks(f"{HEAD}ann,lab90.a,1,,{full[:4]}\n").applied("ann", [outcome(answer=full)], {})
    assert "changed" in cut.stale


def test_a_changed_answer_is_flagged_until_it_is_marked_again(marks):
    found = marks(f"{HEAD}ann,lab90.a,1,nearly,\n")
    before = outcome()  # the report that the mark was written beside
    (first,) = found.applied("ann", [outcome()], earlier(before))
    assert not first.stale
    (changed,) = found.applied("ann", [outcome(answer="bbb")], earlier(first))
    assert "changed" in changed.stale and changed.points == 1, "it still wins"
    assert report(changed).rows[0].status == "mark-to-check 1"
    (still,) = found.applied("ann", [outcome(answer="bbb")], earlier(changed))
    assert "changed" in still.stale
    anew = marks(f"{HEAD}ann,lab90.a,2,right now,\n")
    assert not anew.applied("ann", [outcome(answer="bbb")], earlier(still))[0].stale
    named = marks(f"{HEAD}ann,lab90.a,1,nearly,bbb\n")
    assert not named.applied("ann", [outcome(answer="bbb")], earlier(still))[0].stale


def test_a_changed_finding_of_the_run_is_flagged_too(marks):
    found = marks(f"{HEAD}ann,lab90.a,1,,\n")
    (first,) = found.applied("ann", [outcome()], earlier(outcome()))
    (changed,) = found.applied("ann", [outcome("pass")], earlier(first))
    assert "needs-review" in changed.stale and "pass" in changed.stale


def test_the_mark_of_an_answer_that_was_never_the_one_is_flagged_at_once(marks):
    found = marks(f"{HEAD}ann,lab90.a,1,,ccc\n")
    assert found.applied("ann", [outcome()], {})[0].stale


def test_what_is_open_is_listed_in_the_shape_of_the_marks(marks):
    text = review_csv([("ann", outcome())])
    assert text.splitlines()[0].startswith("student,exercise,points,comment,answer")
    assert text.splitlines()[1].startswith("ann,lab90.a,,,aaa,needs-review: a line")
    assert not marks(text).by_exercise, "rows that nobody filled in mark nothing"
    assert "'=1+1" in review_csv([("=1+1", outcome())])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (f"{HEAD}zoe,lab90.a,1,,\n", "line 2 .*zoe"),
        (f"{HEAD}ann,lab91.x,1,,\n", r"lab91\.x"),
        (f"{HEAD}ann,lab90.a,3,,\n", "from 0 to 2"),
        (f"{HEAD}ann,lab90.a,-1,,\n", "-1"),
        (f"{HEAD}ann,lab90.a,nan,,\n", "nan"),
        (f"{HEAD}ann,lab90.a,1,,\nann,lab90.a,2,,\n", "second time"),
        ("who,points\nann,1\n", "student"),
        ("student,exercise,pints\nann,lab90.a,1\n", "pints"),
    ],
)
def test_marks_that_can_not_be_are_refused_by_their_line(marks, text, word):
    with pytest.raises(UsageError, match=word):
        marks(text)


def test_marks_survive_a_grade_of_the_class_and_are_never_written_to(tmp_path):
    """Over real runs of notebooks without answers, so that nothing has to be run."""
    out = tmp_path / "grades"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ann.ipynb").write_bytes(dump(released()))
    file = marks_beside(out)[0]
    file.write_text(f"{HEAD}ann,{MASK},1,by voice,\n", encoding="utf-8")
    before = file.read_bytes()
    for _ in range(2):
        made = grade(tmp_path / "in", out, labs="01", stream=io.StringIO())
        assert made.rows[0].total == 1 and not made.rows[0].outcomes[0].stale
    assert file.read_bytes() == before
    earlier = earlier_outcomes(out / RESULTS)
    assert earlier["ann"][MASK]["mark"] == 1 and earlier["ann"][MASK]["status"] == "not-attempted"


def test_a_missing_file_of_marks_is_one_sentence(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ann.ipynb").write_bytes(dump(released()))
    with pytest.raises(UsageError, match=r"no file of marks .*none\.csv"):
        grade(
            tmp_path / "in",
            tmp_path / "out",
            labs="01",
            stream=io.StringIO(),
            extras=Extras(marks=tmp_path / "none.csv"),
        )


def test_results_keep_what_was_marked(tmp_path, marks):
    (one,) = marks(f"{HEAD}ann,lab90.a,1,nearly,\n").applied("ann", [outcome()], {})
    put(report(one), tmp_path / "out")
    found = earlier_outcomes(tmp_path / "out" / RESULTS)["ann"]["lab90.a"]
    assert (found["mark"], found["marked_answer"]) == (1, "aaa")
    assert earlier_outcomes(tmp_path / "nothing") == {}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("ann,lab90.a,0,5,good,x", "more cells"),
        ("ann,lab90.a,0,5,good", "for the marked answer"),
        ("ann,lab90.a,0_1,,", "points"),
        ("ann,lab90.a,nan,,", "points"),
        ("ann,lab90.a,-1,,", "points"),
        ("ann,,1,fine,", "names no exercise"),
        ("ann,,,one,\nann,,,two,", "a second time"),
        ("ann,lab90.a,1,,\nann,lab90.a,1,,", "a second time"),
    ],
)
def test_a_line_of_marks_that_could_be_meant_otherwise_is_refused(marks, row, sentence):
    with pytest.raises(UsageError, match=sentence):
        marks(f"{HEAD}{row}\n")


@pytest.mark.parametrize(
    "text",
    [
        '[students.ann."lab90.a"]\npionts = 1',
        '[students.ann."lab90.a"]\nstudent = "bob"\npoints = 1',
        '[students.ann."lab90.a"]\nexercise = "lab90.b"\npoints = 1',
        '[students.ann]\ncoment = "x"',
        '[studnets.ann."lab90.a"]\npoints = 1',
        "[students]\nann = 3",
        "students = 3",
    ],
)
def test_nothing_in_a_file_of_marks_is_passed_over(marks, text):
    with pytest.raises(UsageError, match=r"isn't known|no table"):
        marks(text, "m.toml")


def test_marks_of_a_spreadsheet_with_semicolons_and_commas_count(marks):
    found = marks("student;exercise;points;comment\nann;lab90.a;0,5;well\n")
    assert found.by_exercise["ann", "lab90.a"].points == 0.5


def test_marks_of_other_labs_wait_for_a_run_of_theirs(tmp_path):
    (tmp_path / "m.csv").write_text(f"{HEAD}ann,lab01.a,1,,\nann,lab90.a,1,,\n", encoding="utf-8")
    found = read_marks(tmp_path / "m.csv", ["ann"], MAXIMA, Roster(), ["lab01.a"])
    assert [exercise for _, exercise in found.by_exercise] == ["lab90.a"]
    with pytest.raises(UsageError, match="no exercise of the course"):
        read_marks(tmp_path / "m.csv", ["ann"], MAXIMA, Roster())
