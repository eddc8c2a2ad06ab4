"""A student chooses the end of a file's name: it makes the file nobody else's, and no earlier."""

from __future__ import annotations

import io
import zipfile

import pytest

from labs_lib.grading.intake.collect import collect
from labs_lib.grading.intake.names import Roster
from labs_lib.grading.intake.platforms import carriers
from labs_lib.notebook import archives

NOTEBOOK = b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": []}'
AS_BLACKBOARDS = "x_vic_attempt_2026-10-20-00-00-00_lab.ipynb"
AS_MOODLES = "Vic_88_assignsubmission_file_lab.ipynb"
AS_CANVASES = "vic_88_681_lab.ipynb"


def packed(files, way=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", way) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return buffer.getvalue()


def collected(tmp_path, names, roster=None):
    (tmp_path / "in.zip").write_bytes(packed((name, NOTEBOOK) for name in names))
    return {one.student: one.files for one in collect(tmp_path / "in.zip", roster)[0]}


@pytest.mark.parametrize("end", [AS_BLACKBOARDS, AS_MOODLES, AS_CANVASES])
@pytest.mark.parametrize(
    ("prefix", "victim", "owner"),
    [
        ("mallory_77_680_", "vic_88_682_lab.ipynb", "mallory"),
        ("Mal Lory_77_assignsubmission_file_", "Vic_88_assignsubmission_file_a.ipynb", "Mal Lory"),
        (
            "Lab 1_mallory_attempt_2026-10-26-02-30-00_",
            "Lab 1_vic_attempt_2026-10-25-02-30-00_lab.ipynb",
            "mallory",
        ),
    ],
)
def test_no_end_of_a_name_makes_a_file_another_students(tmp_path, prefix, victim, owner, end):
    roster = Roster(("vic",), {"vic": "vic", "88": "vic"})
    for known in (None, roster):
        found = collected(tmp_path, [victim, prefix + end], known)
        assert {len(files) for files in found.values()} == {1}
        assert found[owner][0].label == prefix + end
        assert found[owner][0].when in ("", "2026-10-26-02-30-00")


def test_who_hands_in_alone_is_read_by_the_platform_that_comes_first():
    for prefix in ("ann_77_680_", "Ann_77_assignsubmission_file_"):
        for end in (AS_BLACKBOARDS, AS_MOODLES, AS_CANVASES):
            assert carriers([prefix + end])[prefix + end].number == "77"
    alone = f"Lab_1_ann_attempt_2026-10-26-02-30-00_{AS_BLACKBOARDS}"
    assert carriers([alone])[alone].name == "ann"


def test_a_title_with_numbers_is_blackboards_all_the_same():
    names = [
        f"HW_2026_10_last_{who}_attempt_2026-10-2{day}-02-30-00_x.ipynb"
        for day, who in enumerate(("ann", "b_o"))
    ]
    assert [one.name for one in carriers(names).values()] == ["ann", "b_o"]


def test_students_of_blackboard_whose_names_end_alike_stay_two(tmp_path):
    names = [f"Lab 1_{who}_attempt_2026-10-25-02-30-00_x.ipynb" for who in ("a_lee", "b_lee")]
    assert set(collected(tmp_path, names)) == {"a_lee", "b_lee"}
    roster = Roster(("lee", "a_lee"), {"lee": "lee", "a_lee": "a_lee"})
    assert set(collected(tmp_path, names[:1], roster)) == {"a_lee", "lee"}


def test_names_that_differ_in_case_or_in_what_is_not_seen_keep_a_row_each(tmp_path):
    unseen = ["ann\u200c/a.ipynb", "ann\u200d/a.ipynb", "ann\u202a/a.ipynb", "ann\u202b/a.ipynb"]
    assert [len(files) for files in collected(tmp_path, unseen).values()] == [1, 1, 1, 1]
    roster = Roster(("Ada", "ada"), {})
    found = collected(tmp_path, ["Ada/a.ipynb", "ada/b.ipynb"], roster)
    assert {who: files[0].label for who, files in found.items()} == {
        "Ada": "Ada/a.ipynb",
        "ada": "ada/b.ipynb",
    }


def test_a_number_that_is_also_somebodys_id_finds_neither(tmp_path):
    roster = Roster(("77", "ada"), {"ada": "ada"})  # ada's number is 77, too
    assert "77" not in {
        who for who, files in collected(tmp_path, ["x_77_1_a.ipynb"], roster).items() if files
    }


def test_a_manifest_beside_a_whole_class_does_not_make_it_one_student(tmp_path):
    names = ["labs-submission.json", "ann/a.ipynb", "bob/a.ipynb"]
    assert set(collected(tmp_path, names)) == {"ann", "bob"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_members_with_one_name_both_are_read(tmp_path):
    (tmp_path / "in.zip").write_bytes(packed([("a/x.ipynb", b"1"), ("a/x.ipynb", b"2")]))
    (one,) = collect(tmp_path / "in.zip")[0]
    assert [file.read() for file in one.files] == [b"1", b"2"]


def test_what_a_member_holds_is_no_part_of_the_archives_list(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 100)
    mean = packed([("lab.ipynb", NOTEBOOK), ("x.bin", b"PK\x01\x02" * 5000)])
    (tmp_path / "in.zip").write_bytes(packed([("ann/a.ipynb", NOTEBOOK), ("mal/x.zip", mean)]))
    assert (tmp_path / "in.zip").read_bytes().count(b"PK\x01\x02") > 5000  # stored as they are
    assert [one.student for one in collect(tmp_path / "in.zip")[0]] == ["ann", "mal"]


def test_one_students_gigabytes_do_not_keep_a_class_out(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 10)
    assert set(collected(tmp_path, ["ann/a.ipynb", "bob/a.ipynb"])) == {"ann", "bob"}
