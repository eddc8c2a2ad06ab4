"""What a class hands in becomes one submission per student, whatever the platform made of it."""

from __future__ import annotations

import io
import json
import os
import stat
import zipfile

import pytest

from labs_lib.errors import UsageError
from labs_lib.exercises import labs
from labs_lib.grading.course import chosen
from labs_lib.grading.intake import names
from labs_lib.grading.intake.candidates import sort_files
from labs_lib.grading.intake.collect import Handed, Submission, collect
from labs_lib.notebook import archives
from labs_lib.notebook.reading import Unreadable

NOTEBOOK = b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}'
LAB = labs()[0].stem


def put(folder, **files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def tree(folder, *paths):
    return put(folder, **dict.fromkeys(paths, NOTEBOOK))


def packed(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def submit(student):
    manifest = json.dumps({"id": student}).encode()
    return packed(**{f"notebooks/{LAB}.ipynb": NOTEBOOK, "labs-submission.json": manifest})


def students(source, roster=None):
    found, _ = collect(source, roster)
    return {one.student: [file.label.rsplit("/")[-1] for file in one.files] for one in found}


def test_a_folder_of_notebooks_is_one_student_each(tmp_path):
    tree(tmp_path, "jane.ipynb", "s-1.ipynb", "s-2.ipynb", f"joe_{LAB}.ipynb", f"{LAB}-ann.ipynb")
    assert set(students(tmp_path)) == {"jane", "s-1", "s-2", "joe", "ann"}


def test_a_folder_for_each_student_holds_all_their_notebooks(tmp_path):
    tree(tmp_path, "jane/a.ipynb", "jane/deep/er/b.ipynb", "joe/a.ipynb")
    (tmp_path / "empty").mkdir()
    found = students(tmp_path)
    assert found == {"empty": [], "jane": ["a.ipynb", "b.ipynb"], "joe": ["a.ipynb"]}


def test_the_students_folder_of_the_course_itself_is_one_submission(tmp_path):
    tree(tmp_path / "notebooks", *(f"{lab.stem}.ipynb" for lab in labs()))
    assert set(students(tmp_path / "notebooks")) == {"notebooks"}


def test_canvas_and_moodle_names_are_understood(tmp_path):
    tree(
        tmp_path,
        f"doejane_12345_678_{LAB}.ipynb",
        f"doejane_12345_679_{LAB}-2.ipynb",
        "roejoe_LATE_99_680_work.ipynb",
        "Ann Lee_ab12_assignsubmission_file_/work.ipynb",
        "Bo_77_assignsubmission_file_work.ipynb",
    )
    found, _ = collect(tmp_path)
    assert [one.student for one in found] == ["Ann Lee", "Bo", "doejane", "roejoe"]
    assert sorted(file.attempt for file in found[2].files) == [0, 2]


def test_two_students_of_one_name_stay_two(tmp_path):
    tree(
        tmp_path,
        "Ann Lee_1_assignsubmission_file_/a.ipynb",
        "Ann Lee_2_assignsubmission_file_/a.ipynb",
    )
    assert set(students(tmp_path)) == {"Ann Lee (1)", "Ann Lee (2)"}


def test_archives_of_labs_submit_are_opened_and_never_override_their_carrier(tmp_path):
    put(
        tmp_path,
        **{
            "hand-in.zip": submit("ada"),
            "bob/x.zip": submit("ada"),
            "doejane_1_2_labs.zip": submit("ada"),
            "plain.zip": packed(**{"a.ipynb": NOTEBOOK}),
        },
    )
    assert set(students(tmp_path)) == {"ada", "bob", "doejane", "plain"}


def test_one_archive_of_labs_submit_is_one_submission(tmp_path):
    put(tmp_path, **{"whatever.zip": submit("ada")})
    assert set(students(tmp_path / "whatever.zip")) == {"ada"}


def test_a_stranger_with_the_same_id_gets_a_row_of_its_own(tmp_path):
    put(tmp_path, **{"ada.zip": submit("ada"), "other-9.zip": submit("ada")})
    found, left_out = collect(tmp_path)
    assert [one.student for one in found] == ["ada", "other-9"]
    assert any("other-9.zip" in sentence for sentence in left_out)


def test_a_zip_of_everything_is_understood_with_and_without_a_folder_around(tmp_path):
    inside = {"jane/a.ipynb": NOTEBOOK, "joe/b.ipynb": NOTEBOOK}
    put(
        tmp_path,
        **{
            "plain.zip": packed(**inside),
            "wrapped.zip": packed(**{f"class of 26/{k}": v for k, v in inside.items()}),
            "flat.zip": packed(**{"flat/jane.ipynb": NOTEBOOK, "flat/joe.ipynb": NOTEBOOK}),
            "windows.zip": packed(**{k.replace("/", "\\"): v for k, v in inside.items()}),
        },
    )
    for name in ("plain", "wrapped", "flat", "windows"):
        assert set(students(tmp_path / f"{name}.zip")) == {"jane", "joe"}, name


def test_checkpoints_apple_doubles_and_dotfiles_are_ignored(tmp_path):
    tree(
        tmp_path,
        "jane/a.ipynb",
        "jane/.ipynb_checkpoints/a-checkpoint.ipynb",
        "__MACOSX/jane/._a.ipynb",
        "jane/._a.ipynb",
        ".hidden/b.ipynb",
    )
    assert students(tmp_path) == {"jane": ["a.ipynb"]}


def test_grader_never_follows_links(tmp_path):
    secret = tree(tmp_path / "elsewhere", "secret.ipynb")
    folder = tree(tmp_path / "in", "jane/a.ipynb")
    os.symlink(secret, folder / "joe")
    os.symlink(secret / "secret.ipynb", folder / "jane" / "b.ipynb")
    link = zipfile.ZipInfo("ann/c.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(folder / "linked.zip", "w") as archive:
        archive.writestr(link, str(secret / "secret.ipynb"))
        archive.writestr("d.ipynb", NOTEBOOK)
    found, left_out = collect(folder)
    assert {one.student for one in found} == {"jane", "linked"}
    assert sum("link" in line for line in left_out) == 3


def test_a_file_that_became_a_link_or_a_pipe_after_the_look_is_not_read(tmp_path):
    folder = tree(tmp_path / "in", "jane/a.ipynb", "joe/a.ipynb")
    found, _ = collect(folder)
    for name, replace in (("jane", lambda p: os.symlink("/etc/passwd", p)), ("joe", os.mkfifo)):
        (folder / name / "a.ipynb").unlink()
        replace(folder / name / "a.ipynb")
    for one in found:
        with pytest.raises(Unreadable):
            one.files[0].read()


@pytest.mark.parametrize("name", ["../x.ipynb", "a/../../x.ipynb", "/etc/x.ipynb", "C:\\x.ipynb"])
def test_no_name_in_an_archive_leads_out_of_it(tmp_path, name):
    put(tmp_path, **{"in.zip": packed(**{name: NOTEBOOK, "jane/a.ipynb": NOTEBOOK})})
    found, left_out = collect(tmp_path / "in.zip")
    assert [one.student for one in found] == ["jane"]
    assert any("leads out" in line for line in left_out)


def test_a_bomb_is_refused_and_the_others_are_read(tmp_path):
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.ipynb", b" " * (20 << 20))
    put(tmp_path, **{"bomb.zip": bomb.getvalue(), "jane.ipynb": NOTEBOOK})
    found = {one.student: one for one in collect(tmp_path)[0]}
    with pytest.raises(Unreadable, match="times its size"):
        found["bomb"].files[0].read()
    assert found["jane"].files[0].read() == NOTEBOOK


def test_an_archive_of_too_many_members_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    many = packed(**{f"{n}.ipynb": NOTEBOOK for n in range(4)})
    put(tmp_path, **{"many.zip": many, "jane.ipynb": NOTEBOOK})
    (first, _) = collect(tmp_path)[0][::-1]
    with pytest.raises(Unreadable, match="members"):
        first.files[0].read()
    with pytest.raises(UsageError, match="members"):
        collect(tmp_path / "many.zip")


@pytest.mark.parametrize("damage", ["cut", "not a zip", "crc", "password", "archive in archive"])
def test_a_damaged_archive_costs_its_own_student_only(tmp_path, damage):
    whole = submit("ada")
    flipped = bytearray(whole)
    flipped[whole.index(NOTEBOOK) + 5] ^= 0xFF
    locked = bytearray(whole)
    for mark, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        locked[locked.index(mark) + at] |= 1
    content = {
        "cut": whole[: len(whole) // 2],
        "not a zip": b"hello",
        "crc": bytes(flipped),
        "password": bytes(locked),
        "archive in archive": packed(**{"x/inner.zip": whole}),
    }[damage]
    put(tmp_path, **{"ann.zip": content, "jane.ipynb": NOTEBOOK})
    found = {one.student: one for one in collect(tmp_path)[0]}
    assert found["jane"].files[0].read() == NOTEBOOK
    (other,) = [one for name, one in found.items() if name != "jane"]
    with pytest.raises(Unreadable) as caught:
        for file in other.files:
            file.read()
        raise Unreadable("nothing of it could be read")
    assert str(caught.value)


def test_names_with_odd_characters_are_no_obstacle(tmp_path):
    odd = ["AD\\foo", "123 (abc)", "a+b [x]", "ann\nlee", "=cmd|' /C calc'!A0", "Ω{}%s"]
    for name in odd:
        tree(tmp_path / name, "a.ipynb")
    os.makedirs(os.fsencode(tmp_path) + b"/caf\xe9")
    with open(os.fsencode(tmp_path) + b"/caf\xe9/a.ipynb", "wb") as file:
        file.write(NOTEBOOK)
    found = collect(tmp_path)[0]
    assert len(found) == len(odd) + 1
    for one in found:
        one.student.encode("utf-8")
        assert one.files[0].read() == NOTEBOOK
    made = names.file_names([one.student for one in found], ".html")
    assert len({name.casefold() for name in made.values()}) == len(found)
    assert all("/" not in name and "\\" not in name and "\n" not in name for name in made.values())


def test_file_names_of_students_are_safe_and_never_collide():
    students = [
        "Ann",
        "ann",
        "a/n",
        "a n",
        "a\\n",
        "../x",
        "é",
        "e\u0301 ",
        "con",
        "",
        "..",
        "x" * 300,
    ]
    made = names.file_names(students, ".html")
    assert len({name.casefold() for name in made.values()}) == len(students)
    for name in made.values():
        assert len(name) < 100 and not name.startswith(".") and not set("/\\:*?") & set(name)


def test_other_files_are_listed_and_do_no_harm(tmp_path):
    put(tmp_path, **{"jane/a.ipynb": NOTEBOOK, "jane/a.html": b"", "notes.pdf": b""})
    found, left_out = collect(tmp_path)
    assert any("a.html" in note for note in found[0].notes)
    assert any("notes.pdf" in line for line in left_out)


def test_the_roster_has_the_first_word_and_a_row_for_everybody(tmp_path):
    table = "student,name,number\nada,Ada L.,12345\nbob,Bob,\ncy,Twin,\nd,Twin,\neve,eve@x,77\n"
    (tmp_path / "class.csv").write_text(table, encoding="utf-8-sig")
    roster = names.read_roster(tmp_path / "class.csv")
    folder = tree(
        tmp_path / "in",
        "lovelacea_12345_1_work.ipynb",
        "BOB/a.ipynb",
        "Twin/a.ipynb",
        "Z_77_assignsubmission_file_/a.ipynb",
    )
    found = students(folder, roster)
    assert set(found) == {"ada", "bob", "cy", "d", "eve", "Twin"}
    assert found["cy"] == [] and found["Twin"] == ["a.ipynb"]


@pytest.mark.parametrize("text", ["name\nx\n", "student\na\na\n", "", 'student\n"x\n'])
def test_a_roster_that_makes_no_sense_is_refused(tmp_path, text):
    (tmp_path / "class.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError):
        names.read_roster(tmp_path / "class.csv")


@pytest.mark.parametrize(
    ("name", "lab"),
    [(f"{LAB}.ipynb", "lab00"), ("lab1.ipynb", "lab01"), ("Lab 12 (1).ipynb", "lab12"),
     ("jane_02.ipynb", "lab02"), ("hw1.ipynb", ""), ("lab123.ipynb", "")],
)  # fmt: skip
def test_a_damaged_file_costs_the_lab_of_its_name_only_and_all_where_none_is_told(name, lab):
    file = Handed(name, lambda: b"no notebook")
    found = sort_files(Submission("ann", (file,)), chosen(None)).broken
    assert set(found) == ({lab} if lab else {one.name for one in labs()})


def test_what_lies_too_deep_is_said(tmp_path):
    deep = "/".join(["ann", *"bcdefghijklm"])
    tree(tmp_path, "ann/a.ipynb", f"{deep}/far.ipynb")
    found, left_out = collect(tmp_path)
    assert [file.label for file in found[0].files] == ["ann/a.ipynb"]
    assert left_out == ["ann/b/c/d/e/f/g/h/i/j/k/l lies 12 folders deep; it was not looked into"]


def test_nothing_to_grade_is_one_clear_sentence(tmp_path):
    put(tmp_path, **{"junk/notes.txt": b"", "broken.zap": b"", "one.ipynb": NOTEBOOK})
    for source in (tmp_path / "none", tmp_path / "junk", tmp_path / "broken.zap"):
        with pytest.raises(UsageError, match=str(source.name)):
            collect(source)
    with pytest.raises(UsageError, match="one notebook"):
        collect(tmp_path / "one.ipynb")


def test_a_folder_that_can_not_be_read_has_a_row_and_a_reason(tmp_path, monkeypatch):
    tree(tmp_path, "ann/a.ipynb", "bob/b.ipynb")
    real = os.scandir

    def scandir(path):
        if str(path).endswith("bob"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = {one.student: one for one in collect(tmp_path)[0]}
    with pytest.raises(Unreadable, match="Permission denied"):
        found["bob"].files[0].read()
    monkeypatch.setattr(os, "scandir", lambda path: real(tmp_path / "none"))
    with pytest.raises(UsageError, match="can't be read"):
        collect(tmp_path)
