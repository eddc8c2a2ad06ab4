"""Rosters as spreadsheets and platforms write them; what can't be meant is refused."""

from __future__ import annotations

import pytest

from labs_lib.errors import UsageError
from labs_lib.grading.intake.names import read_roster


def roster(tmp_path, text, encoding="utf-8"):
    (tmp_path / "class.csv").write_bytes(text.encode(encoding))
    return read_roster(tmp_path / "class.csv")


@pytest.mark.parametrize(
    "text",
    [
        "student,mail\nada,a@x\n",
        "\ufeffstudent;mail\r\nada;a@x\r\n",
        'student;mail;name\nada;a@x;x, y\n"bo;b";"b, @x";\n',
        "student\tmail\nada\ta@x\n",
        'student,mail,name\n"ada","a@x","Ada\nLovelace"\n',
        "student,mail\rada,a@x\r",
        "student,mail\nada,a@x,,\n\n",
    ],
)
def test_a_roster_is_read_as_any_spreadsheet_writes_it(tmp_path, text):
    found = roster(tmp_path, text)
    assert found.students[0] == "ada" and found.find("A@X") == "ada"


@pytest.mark.parametrize(
    ("text", "encoding", "sentence"),
    [
        ("student\nJosé\n", "cp1252", "CSV UTF-8"),
        ("student\nJosé\n", "utf-16", "CSV UTF-8"),
        ("student,mail\nada,a,b\n", "utf-8", "line 2 .* more cells"),
        ("student,student\nada,bob\n", "utf-8", "`student` twice"),
        ("name;mail\nada;x\n", "utf-8", "no column `student`"),
        ("student\nJose\u0301\nJos\u00e9\n", "utf-8", "twice"),
    ],
)
def test_a_roster_that_could_be_meant_in_two_ways_is_refused(tmp_path, text, encoding, sentence):
    with pytest.raises(UsageError, match=sentence):
        roster(tmp_path, text, encoding)


def test_canvass_gradebook_is_a_roster_and_no_mark_in_it_is_anybodys_name(tmp_path):
    found = roster(
        tmp_path,
        "Student,ID,SIS User ID,SIS Login ID,Section,Quiz (9)\n"
        '"    Points Possible",,,,,10\n'
        '"Lee, Ann",77,s77,ann,S1,88\n'
        '"Roe, Bo",88,s88,bo,S1,77\n'
        '"Roe, Bo",89,s89,bo2,S1,1\n',
    )
    assert found.students == ("Lee, Ann", "Roe, Bo (88)", "Roe, Bo (89)")
    assert found.numbered("77") == "Lee, Ann" and found.numbered("88") == "Roe, Bo (88)"
    assert not found.find("1") and not found.find("S1")


def test_moodles_gradebook_knows_students_by_their_full_names(tmp_path):
    found = roster(
        tmp_path,
        "First name,Last name,ID number,Email address,Assignment: Lab 1 (Real)\n"
        "Ann,Lee,alee,a@x,7\nBo,Lee,blee,b@x,-\n",
    )
    assert (found.find("Ann Lee"), found.find("Bo Lee")) == ("alee", "blee")
    assert not found.find("Lee") and not found.find("7")
