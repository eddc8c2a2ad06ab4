"""`labs update` brings a release into a copy; what a student did stays."""

from __future__ import annotations

import zipfile

import nbformat
import pytest

from labs_lib import cli
from labs_lib.errors import UsageError
from labs_lib.notebook.cells import text_hash
from labs_lib.workbook.update import update

from .releases import (
    ANSWER,
    NAME,
    NEW,
    OLD,
    arrived,
    git,
    notebook,
    put,
    sources,
    state_of,
    work,
)


def pack(folder, target, top=""):
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            archive.write(path, f"{top}{path.relative_to(folder).as_posix()}")
    return target


def test_folder_brings_a_release_and_answers_stay(home, released):
    before = (home / "notebooks" / NAME).read_bytes()
    done = update(released)
    assert arrived(home)
    assert not (home / "labs_lib" / "old").exists()
    assert done.lines[0] == (
        f"{NAME}: new text, 1 answer and 1 cell of your own kept; new: lab00.third"
    )
    assert done.lines[1:] == [
        "01_one_head.ipynb: up to date",
        "02_splitting_the_width.ipynb: new",
    ]
    assert (done.backup / "notebooks" / NAME).read_bytes() == before
    assert (done.backup / "labs_lib" / "old" / "room.py").is_file()
    assert any("make lab" in advice for advice in done.advice)


@pytest.mark.parametrize("top", ["", "attention-labs-main/"])
def test_zip_brings_a_release_too(home, released, tmp_path, top):
    zipped = pack(released, tmp_path / "new.zip", top)
    with zipfile.ZipFile(zipped, "a") as archive:
        archive.writestr("old_notebooks/notes.txt", "beside the course")
    update(zipped)
    assert arrived(home)


@pytest.mark.parametrize("how", ["folder", "clone", "clone with commits"])
def test_second_update_changes_nothing(how, request):
    if how == "folder":
        folder, source = request.getfixturevalue("home"), request.getfixturevalue("released")
    else:
        folder, source = request.getfixturevalue("cloned")[1], None
    if "commits" in how:
        git(folder, "commit", "-qam", "my work")
    update(source)
    before = state_of(folder)
    done = update(source)
    assert state_of(folder) == before
    assert not done.changed and done.backup is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b'{"cells": [\n<<<<<<< HEAD\n', "merge conflict"),
        (b"PK\x03\x04", "zip"),
    ],
)
def test_unreadable_notebook_is_said_and_stays_as_it_is(home, released, content, says, capsys):
    (home / "notebooks" / NAME).write_bytes(content)
    assert cli.main(["update", "--from", str(released)]) == 1
    shown = capsys.readouterr().out
    assert says in shown and f"{NAME}: skipped" in shown
    assert (home / "notebooks" / NAME).read_bytes() == content
    assert (home / "notebooks" / "02_splitting_the_width.ipynb").is_file()


def test_link_is_never_followed(home, released, tmp_path):
    outside = tmp_path / "elsewhere.ipynb"
    (home / "notebooks" / NAME).rename(outside)
    (home / "notebooks" / NAME).symlink_to(outside)
    before = outside.read_bytes()
    assert update(released).skipped == [NAME]
    assert outside.read_bytes() == before


def test_renamed_notebook_keeps_its_name_and_gets_the_release(home, released):
    (home / "notebooks" / NAME).rename(home / "notebooks" / "00_ada.ipynb")
    update(released)
    assert ANSWER in sources(home, "00_ada.ipynb")
    assert not (home / "notebooks" / NAME).exists()


def test_copy_that_is_no_clone_is_told_what_to_give(home):
    with pytest.raises(UsageError, match="--from"):
        update()
    git(home.parent, "init", "-q")  # a repository around it is not the course's
    with pytest.raises(UsageError, match="--from"):
        update()


def test_archive_that_leads_out_of_its_folder_is_refused(home, tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("notebooks/00_start_here.ipynb", "{}")
        archive.writestr("../labs_lib/__init__.py", "stolen = 1")
    before = state_of(home)
    with pytest.raises(UsageError, match="leads out"):
        update(tmp_path / "bad.zip")
    assert state_of(home) == before


def test_damaged_archive_is_refused_in_a_sentence_and_nothing_changes(home, released, tmp_path):
    zipped = pack(released, tmp_path / "new.zip")
    content = zipped.read_bytes()
    zipped.write_bytes(content.replace(b"numpy==2", b"numpy==3"))  # not what its sum says
    before = state_of(home)
    with pytest.raises(UsageError, match="damaged; nothing was changed"):
        update(zipped)
    assert state_of(home) == before


def test_release_that_holds_only_notebooks_leaves_the_library_alone(home, tmp_path):
    only = {name: content for name, content in NEW.items() if name.startswith("notebooks/")}
    update(put(tmp_path / "only", only))
    assert sources(home)[1] == ANSWER and "def third" in sources(home)[-2]
    assert (home / "labs_lib" / "old" / "room.py").is_file()


def test_lab_that_the_release_no_longer_has_stays(home, tmp_path):
    less = {name: content for name, content in NEW.items() if "01_" not in name}
    done = update(put(tmp_path / "less", less))
    assert any("01_one_head.ipynb: the new release has no such lab" in x for x in done.lines)
    assert (home / "notebooks" / "01_one_head.ipynb").is_file()


def test_another_copy_that_holds_answers_is_no_release(home, released):
    work(released)
    before = state_of(home)
    with pytest.raises(UsageError, match=r"lab00\.first.*upstream"):
        update(released)
    assert state_of(home) == before


def test_text_that_changed_beside_its_source_arrives_and_a_deleted_cell_of_ours_stays_away(
    home, tmp_path
):
    path = home / "notebooks" / NAME
    mine = nbformat.read(path, as_version=4)
    del mine.cells[0]
    nbformat.write(mine, path)
    assert update(put(tmp_path / "same", OLD)).lines[0] == f"{NAME}: up to date"
    other = notebook("first", "second")
    check = other.cells[-1]
    check.source += "  # now"
    check.metadata["labs"]["text"] = text_hash(check.source)
    update(put(tmp_path / "other", {f"notebooks/{NAME}": other}))
    assert sources(home)[-1].endswith("# now") and sources(home)[0] == "Welcome."
