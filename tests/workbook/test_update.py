"""`labs update`: a new release arrives, what a student wrote stays, and nothing is half done."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile

import nbformat
import pytest

from labs_lib import cli
from labs_lib.errors import UsageError
from labs_lib.notebook.cells import cell_id, text_hash
from labs_lib.workbook import clone as git_room
from labs_lib.workbook import update as room
from labs_lib.workbook.update import update

NAME = "00_start_here.ipynb"
ANSWER = "def first(x):\n    return x + 1"


def notebook(*exercises, words="Welcome.", lab="lab00"):
    """A released notebook: prose, then a stub and a check for each exercise."""
    parts = [("markdown", words, "prose", "")]
    for name in exercises:
        parts.append(("code", f"def {name}(x):\n    raise NotImplementedError", "answer", name))
        parts.append(("code", f'check("{lab}.{name}", {name})', "check", name))
    cells = []
    for kind, source, role, short in parts:
        mark = {"role": role} | ({"exercise": f"{lab}.{short}"} if short else {})
        mark["stub" if role == "answer" else "text"] = text_hash(source)
        made = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
        cells.append(made(source, metadata={"labs": mark}))
        cells[-1]["id"] = cell_id(f"{lab}.{short}" if short else lab, role, 1)
    source = text_hash(words + " ".join(exercises))
    metadata = {"labs": {"lab": lab, "source": source}}
    return nbformat.v4.new_notebook(cells=cells, metadata=metadata)


def put(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        else:
            nbformat.write(content, path)
    return folder


OLD = {
    f"notebooks/{NAME}": notebook("first", "second"),
    "notebooks/01_one_head.ipynb": notebook("head", lab="lab01"),
    "labs_lib/__init__.py": "version = 1\n",
    "labs_lib/old/room.py": "old = 1\n",
    "README.md": "one\n",
    "requirements.lock": "numpy==1\n",
    "solutions/00_start_here.md": "solved, one\n",
}
NEW = {
    f"notebooks/{NAME}": notebook("first", "second", "third", words="Welcome again."),
    "notebooks/01_one_head.ipynb": OLD["notebooks/01_one_head.ipynb"],
    "notebooks/02_splitting_the_width.ipynb": notebook("split", lab="lab02"),
    "labs_lib/__init__.py": "version = 2\n",
    "labs_lib/new/room.py": "new = 1\n",
    "README.md": "two\n",
    "requirements.lock": "numpy==2\n",
    "solutions/00_start_here.md": "solved, two\n",
}


def git(folder, *arguments):
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder, files, message="a release"):
    for path in folder.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    put(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


@pytest.fixture(autouse=True)
def _git_of_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A student's copy that is no git clone, with lab 00 half done."""
    folder = put(tmp_path / "Kurs mit Läufen", OLD)
    monkeypatch.setenv("LABS_HOME", str(folder))
    monkeypatch.setenv("LABS_STATE", str(folder / ".labs"))
    work(folder)
    return folder


@pytest.fixture
def released(tmp_path):
    return put(tmp_path / "the new one", NEW)


@pytest.fixture
def cloned(tmp_path, monkeypatch):
    """The course's own repository and a student's clone of it, with lab 00 half done."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    commit(origin, OLD | {".gitignore": ".labs/\n"})
    folder = tmp_path / "a clöne"
    git(tmp_path, "clone", "-q", str(origin), str(folder))
    monkeypatch.setenv("LABS_HOME", str(folder))
    monkeypatch.setenv("LABS_STATE", str(folder / ".labs"))
    work(folder)
    commit(origin, NEW | {".gitignore": ".labs/\n"})
    return origin, folder


def work(folder):
    """Answer the first exercise, and add a cell below it."""
    path = folder / "notebooks" / NAME
    mine = nbformat.read(path, as_version=4)
    mine.cells[1].source = ANSWER
    mine.cells.insert(2, nbformat.v4.new_code_cell("first(1)  # my own"))
    nbformat.write(mine, path)


def sources(folder, name=NAME):
    return [c.source for c in nbformat.read(folder / "notebooks" / name, as_version=4).cells]


def arrived(folder):
    """What the half-done notebook has to be after any update to the new release."""
    wanted = [c.source for c in NEW[f"notebooks/{NAME}"].cells]
    wanted[1:2] = [ANSWER, "first(1)  # my own"]
    assert sources(folder) == wanted
    for name, content in NEW.items():
        if isinstance(content, str):
            assert (folder / name).read_text(encoding="utf-8") == content, name
    assert (folder / "notebooks" / "02_splitting_the_width.ipynb").is_file()
    return True


def state_of(folder):
    paths = [p for p in sorted(folder.rglob("*")) if p.is_file() and ".git" not in p.parts]
    return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in paths}


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
    update(pack(released, tmp_path / "new.zip", top))
    assert arrived(home)


def test_clone_takes_the_release_from_where_it_came_from(cloned):
    origin, folder = cloned
    done = update()
    assert arrived(folder)
    assert not (folder / "labs_lib" / "old").exists()
    assert git(folder, "rev-parse", "HEAD") == git(origin, "rev-parse", "HEAD")
    assert git(folder, "status", "--porcelain") == f"M notebooks/{NAME}".strip()
    assert done.written and done.backup.is_relative_to(folder / ".labs")


def test_clone_with_commits_of_the_students_own_keeps_them(cloned):
    origin, folder = cloned
    put(folder, {"mine.txt": "notes\n"})
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "my work")
    mine = git(folder, "rev-parse", "HEAD")
    update()
    assert arrived(folder)
    assert git(folder, "status", "--porcelain") == ""
    parents = git(folder, "log", "-1", "--format=%P").split()
    assert parents == [mine, git(origin, "rev-parse", "HEAD")]
    assert (folder / "mine.txt").is_file()
    assert git(folder, "diff", "--name-only", "HEAD", "origin/main").split() == [
        "mine.txt",
        f"notebooks/{NAME}",
    ]


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


def test_deleted_metadata_is_made_up_for_by_what_git_remembers(cloned):
    _, folder = cloned
    path = folder / "notebooks" / NAME
    mine = nbformat.read(path, as_version=4)
    for number, cell in enumerate(mine.cells):
        cell.metadata, cell["id"] = {}, f"c{number}"
    nbformat.write(mine, path)
    update()
    assert arrived(folder)


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


@pytest.mark.parametrize("moment", ["notebooks", "files", "branch"])
def test_update_that_dies_half_way_is_finished_by_the_next_one(cloned, monkeypatch, moment):
    origin, folder = cloned
    written = []

    def dies(path, content):
        at = {"notebooks": 1, "files": 4}.get(moment, 99)
        if ".labs" not in path.parts:
            written.append(path)
        if len(written) == at:
            raise OSError(28, "No space left on device")
        write(path, content)

    write = room.write_bytes
    with monkeypatch.context() as patched:
        patched.setattr(room, "write_bytes", dies)
        if moment == "branch":
            patched.setattr(git_room.Clone, "arrive", lambda *_: dies_at_once())
        with pytest.raises((OSError, UsageError)):
            update()
    for path in (folder / "notebooks").iterdir():
        nbformat.validate(nbformat.read(path, as_version=4))
    assert ANSWER in sources(folder)
    update()
    assert arrived(folder)
    assert git(folder, "rev-parse", "HEAD") == git(origin, "rev-parse", "HEAD")


def dies_at_once():
    raise UsageError("killed")


def test_file_that_both_changed_is_named_and_nothing_is_done(cloned):
    _, folder = cloned
    put(folder, {"README.md": "mine\n"})
    before, head = state_of(folder), git(folder, "rev-parse", "HEAD")
    with pytest.raises(UsageError, match=r"README\.md.*stash"):
        update()
    assert state_of(folder) == before
    assert git(folder, "rev-parse", "HEAD") == head


def test_own_changes_elsewhere_stay_and_a_solution_that_was_run_is_replaced(cloned):
    _, folder = cloned
    put(folder, {"solutions/00_start_here.md": "run\n", "labs_lib/mine.py": "x = 1\n"})
    done = update()
    assert arrived(folder)
    assert (folder / "labs_lib" / "mine.py").is_file()
    assert (done.backup / "solutions/00_start_here.md").read_text(encoding="utf-8") == "run\n"
    assert any("solutions/00_start_here.md" in line for line in done.lines)


def test_without_a_network_nothing_changes_and_the_way_out_is_said(cloned):
    origin, folder = cloned
    origin.rename(origin.with_name("away"))
    before = state_of(folder)
    with pytest.raises(UsageError, match="--from"):
        update()
    assert state_of(folder) == before


def test_copy_that_is_no_clone_is_told_what_to_give(home):
    with pytest.raises(UsageError, match="--from"):
        update()
    git(home.parent, "init", "-q")  # a repository around it is not the course's
    with pytest.raises(UsageError, match="--from"):
        update()


def test_merge_under_way_is_left_to_its_end(cloned):
    _, folder = cloned
    head = git(folder, "rev-parse", "HEAD")
    put(folder, {".git/MERGE_HEAD": f"{head}\n"})
    with pytest.raises(UsageError, match="git merge --abort"):
        update()


def test_archive_that_leads_out_of_its_folder_is_refused(home, tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("notebooks/00_start_here.ipynb", "{}")
        archive.writestr("../labs_lib/__init__.py", "stolen = 1")
    before = state_of(home)
    with pytest.raises(UsageError, match="leads out"):
        update(tmp_path / "bad.zip")
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


def test_fork_takes_the_release_from_the_remote_called_upstream(cloned, tmp_path):
    origin, folder = cloned
    git(tmp_path, "clone", "-q", "--bare", str(folder), str(tmp_path / "fork"))
    git(folder, "remote", "rename", "origin", "upstream")
    git(folder, "remote", "add", "origin", str(tmp_path / "fork"))
    git(folder, "config", "branch.main.remote", "origin")
    update()
    assert arrived(folder)
    assert git(folder, "rev-parse", "HEAD") == git(origin, "rev-parse", "HEAD")


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
