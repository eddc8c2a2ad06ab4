"""`labs update` in a clone: the release comes by git, and what a student committed stays."""

from __future__ import annotations

import nbformat
import pytest

from labs_lib.errors import UsageError
from labs_lib.workbook import clone as git_room
from labs_lib.workbook import update as room
from labs_lib.workbook.update import update

from .releases import (
    ANSWER,
    NAME,
    arrived,
    git,
    put,
    sources,
    state_of,
)


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


def test_deleted_metadata_is_made_up_for_by_what_git_remembers(cloned):
    _, folder = cloned
    path = folder / "notebooks" / NAME
    mine = nbformat.read(path, as_version=4)
    for number, cell in enumerate(mine.cells):
        cell.metadata, cell["id"] = {}, f"c{number}"
    nbformat.write(mine, path)
    update()
    assert arrived(folder)


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


def test_merge_under_way_is_left_to_its_end(cloned):
    _, folder = cloned
    head = git(folder, "rev-parse", "HEAD")
    put(folder, {".git/MERGE_HEAD": f"{head}\n"})
    with pytest.raises(UsageError, match="git merge --abort"):
        update()


def test_fork_takes_the_release_from_the_remote_called_upstream(cloned, tmp_path):
    origin, folder = cloned
    git(tmp_path, "clone", "-q", "--bare", str(folder), str(tmp_path / "fork"))
    git(folder, "remote", "rename", "origin", "upstream")
    git(folder, "remote", "add", "origin", str(tmp_path / "fork"))
    git(folder, "config", "branch.main.remote", "origin")
    update()
    assert arrived(folder)
    assert git(folder, "rev-parse", "HEAD") == git(origin, "rev-parse", "HEAD")
