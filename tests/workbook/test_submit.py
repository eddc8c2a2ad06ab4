"""`labs submit`: one archive, the same bytes for the same work, and nothing half-written."""

from __future__ import annotations

import json
import os
import time
import zipfile

import nbformat
import pytest

from labs_lib import __version__
from labs_lib.checking import progress
from labs_lib.checking.verdict import PASS, Verdict
from labs_lib.errors import UsageError
from labs_lib.exercises import exercises
from labs_lib.workbook.reset import reset
from labs_lib.workbook.submit import MANIFEST, submit

from .conftest import RIGHT

NOON = 1_800_000_000.0


def test_archive_holds_the_notebooks_and_who_sent_them(course):
    course.write("05_more.ipynb")
    done = submit("ada", now=NOON)
    assert done.archive == course.home / "ada.zip"
    with zipfile.ZipFile(done.archive) as archive:
        manifest = json.loads(archive.read(MANIFEST))
        names = set(archive.namelist())
    assert manifest == {
        "format": 1,
        "course": "attention-labs",
        "version": __version__,
        "id": "ada",
        "time": "2027-01-15T08:00:00Z",
        "notebooks": sorted([course.file.name, "05_more.ipynb"]),
    }
    assert names == {MANIFEST, f"notebooks/{course.file.name}", "notebooks/05_more.ipynb"}


def test_graders_intake_knows_whose_archive_it_is(course):
    from labs_lib.grading.intake.collect import collect

    archive = submit("ada", out=course.home / "upload.zip", now=NOON).archive
    (submission,), left_out = collect(archive)
    assert (submission.student, left_out) == ("ada", [])


def test_same_work_at_the_same_time_gives_the_same_bytes(course):
    first = submit("ada", now=NOON).archive.read_bytes()
    course.file.touch()
    assert submit("ada", now=NOON).archive.read_bytes() == first


def test_answers_go_in_and_outputs_stay_out(course):
    course.write(course.file.name, {course.name: RIGHT})
    notebook = nbformat.read(course.file, as_version=4)
    notebook.metadata["widgets"] = {"state": {}}
    notebook.cells[3].outputs = [nbformat.v4.new_output("stream", text="x" * 100_000)]
    notebook.cells[3].execution_count = 7
    nbformat.write(notebook, course.file)
    with zipfile.ZipFile(submit("ada").archive) as archive:
        text = archive.read(f"notebooks/{course.file.name}").decode("utf-8")
    packed = nbformat.reads(text, as_version=4)
    assert RIGHT in [c.source for c in packed.cells]
    assert all(not c.get("outputs") for c in packed.cells)
    assert "widgets" not in packed.metadata
    assert nbformat.read(course.file, as_version=4).cells[3].outputs, "the student's file changed"


def test_damaged_notebook_goes_in_as_it_is_with_a_word(course):
    (course.notebooks / "09_broken.ipynb").write_bytes(b"{ not json")
    done = submit("ada")
    with zipfile.ZipFile(done.archive) as archive:
        assert archive.read("notebooks/09_broken.ipynb") == b"{ not json"
    assert "09_broken.ipynb" in done.notes[0]


def test_what_is_not_saved_yet_is_told_and_the_rest_goes_in(course):
    for item in exercises(0)[:2]:
        progress.record(Verdict(item.name, PASS))
    done = submit("ada")
    assert done.notebooks == [course.file.name]
    (note,) = done.notes
    assert note.startswith(
        f"{course.file.name} was packed as it was last saved; 2 exercises passed"
    )
    assert "aren't in the saved file: save it (Ctrl+S)" in note
    course.write(course.file.name, {item.name: RIGHT for item in exercises(0)[:2]})
    assert submit("ada").notes == []


def test_a_stub_that_was_put_back_after_the_pass_is_no_unsaved_answer(course):
    course.write(course.file.name, {course.name: RIGHT})
    progress.record(Verdict(course.name, PASS))
    reset(course.name)
    later = time.time() + 2
    os.utime(course.file, (later, later))
    assert submit("ada").notes == []


@pytest.mark.parametrize("known", [{}, {"passed": True}, {"passed": True, "passed_when": 7}])
def test_progress_that_says_no_moment_gives_no_note(course, known):
    progress.update(course.name, **known)
    assert submit("ada").notes == []


def test_links_checkpoints_and_other_files_stay_out(course, tmp_path):
    secret = tmp_path / "secret.ipynb"
    secret.write_text("private", encoding="utf-8")
    (course.notebooks / "link.ipynb").symlink_to(secret)
    (course.notebooks / ".ipynb_checkpoints").mkdir()
    (course.notebooks / ".ipynb_checkpoints" / "old.ipynb").write_text("{}", encoding="utf-8")
    (course.notebooks / "diary.txt").write_text("mine", encoding="utf-8")
    done = submit("ada")
    assert done.notebooks == [course.file.name]
    assert "link" in done.notes[0]


@pytest.mark.parametrize(
    "name",
    ["", "  ", "../ada", "a/b", "a\\b", ".hidden", "-x", "a\nb", "a b", "x" * 65, "CON", "ada."],
)
def test_bad_id_is_refused_and_nothing_is_written(course, name):
    before = sorted(course.home.rglob("*"))
    with pytest.raises(UsageError, match="id"):
        submit(name)
    assert sorted(course.home.rglob("*")) == before


@pytest.mark.parametrize("name", ["ada", "ada.lovelace", "s-1234567", "müller", "李雷", "a@b.edu"])
def test_ordinary_ids_are_taken(course, name):
    assert submit(name).archive.name == f"{name}.zip"


def test_own_archive_is_replaced_and_other_files_never(course):
    submit("ada", now=NOON)
    submit("ada", now=NOON + 60)
    other = course.home / "thesis.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("thesis.tex", "years of work")
    before = other.read_bytes()
    with pytest.raises(UsageError, match="no submission"):
        submit("ada", out=other)
    assert other.read_bytes() == before


def test_out_must_be_a_zip_in_a_folder_that_exists(course):
    with pytest.raises(UsageError, match=r"\.zip"):
        submit("ada", out=course.home / "ada.tar")
    with pytest.raises(UsageError, match="no folder"):
        submit("ada", out=course.home / "nowhere" / "ada.zip")


def test_nothing_to_submit_is_said(course):
    course.file.unlink()
    with pytest.raises(UsageError, match="nothing to submit"):
        submit("ada")
    assert not (course.home / "ada.zip").exists()
