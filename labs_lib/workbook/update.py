"""`labs update`: a new release of the course, with what a student has written so far.

Each notebook is merged in memory and written whole. Everything that is written over is copied to
`.labs/backups/` first. A second call finds nothing to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from ..errors import UsageError
from ..notebook import reading
from ..notebook.atomic import write_bytes
from ..notebook.cells import exercise_name, info, role, text_hash
from ..notebook.merging import Merged, merge
from ..paths import home
from . import files
from .clone import Clone
from .new_release import NewRelease, Reader, from_path


@dataclass
class Updated:
    """What was done: a line for each notebook, the folder of copies, what is left to do."""

    release: str
    lines: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    backup: Path | None = None
    advice: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether any file was written or removed."""
        return bool(self.written or self.removed)


def update(source: Path | None = None) -> Updated:
    """Bring this copy of the course to a new release; the student's notebooks are merged.

    Args:
        source: a folder or zip archive with the new release; without it, what is new where this
            git clone came from.

    Raises:
        UsageError: if there is no release to be found, or files other than notebooks were changed
            here and there. Nothing is changed then.
    """
    clone = Clone(home())
    if source is None:
        return _from_git(clone)
    release = from_path(source)
    done = Updated(release.said)
    texts = _merged(release, clone.handed_out if clone.there else _unknown, done)
    inside = [p for p in release.files if not p.startswith("notebooks/")]
    library = any(p.startswith("labs_lib/") for p in inside)
    _write(release, inside, _stale(release) if library else [], texts, done)
    if clone.there and done.changed:
        done.advice.append(
            "this folder is a git clone, and git now shows the new files as changed; "
            "without --from, `labs update` takes the release from git"
        )
    return done


def _from_git(clone: Clone) -> Updated:
    if not clone.there:
        raise UsageError(
            "this copy of the course is no git clone, so give the new release: "
            "labs update --from FOLDER_OR_ZIP"
        )
    target = clone.fetch()
    release = clone.release(target)
    written, removed, mine = clone.changed(target)
    clone.can_arrive(target)
    done = Updated(release.said)
    done.lines += [
        f"{path}: the new one takes its place; yours is among the copies" for path in mine
    ]
    texts = _merged(release, lambda name: clone.handed_out(name, target), done)
    _write(release, written, removed, texts, done)
    clone.arrive(target, [*written, *removed, *(f"notebooks/{p.name}" for p in texts)])
    return done


def _unknown(name: str) -> None:
    """Nobody knows here what was handed out."""


def _merged(
    release: NewRelease, handed_out: Callable[[str], bytes | None], done: Updated
) -> dict[Path, bytes]:
    """The new text of each notebook that changes, in memory."""
    texts: dict[Path, bytes] = {}
    for name, read in release.notebooks.items():
        new = _released(name, read, release.said)
        path = _own(name)
        if path is None:
            texts[files.folder() / name] = _text(new)
            done.lines.append(f"{name}: new")
            continue
        merged = _merge_one(path, new, handed_out(path.name), done)
        if merged is not None and merged.changed:
            texts[path] = _text(merged.notebook)
    known = {name[:2] for name in release.notebooks}
    for path in files.all_notebooks():
        if re.match(r"\d\d(?!\d)", path.name) and path.name[:2] not in known:
            done.lines.append(f"{path.name}: the new release has no such lab; it stays as it is")
    return texts


def _released(name: str, read: Reader, said: str) -> NotebookNode:
    """A notebook of the new release; one that somebody worked in is refused."""
    try:
        new = reading.read(read()).notebook
    except reading.Unreadable as error:
        raise UsageError(f"{name} of {said} can't be read: {error}") from error
    for cell in new["cells"]:
        if role(cell) == "answer" and info(cell).get("stub") != text_hash(cell["source"]):
            raise UsageError(
                f"{name} of {said} holds an answer to {exercise_name(cell)}, so it is somebody's "
                "work and no release of the course; nothing was changed. If your clone comes from "
                "a repository of your own, name the course's: git remote add upstream ADDRESS"
            )
    return new


def _own(name: str) -> Path | None:
    """The student's notebook of a released one's lab, also where it was renamed."""
    try:
        return files.notebook_of(Path(name).stem)
    except UsageError:
        return None


def _merge_one(path: Path, new: NotebookNode, old: bytes | None, done: Updated) -> Merged | None:
    try:
        if path.is_symlink():
            raise reading.Unreadable("it is a link, which is never followed")
        mine = reading.read(path.read_bytes()).notebook
    except (reading.Unreadable, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        done.lines.append(f"{path.name}: skipped, since it can't be read: {reason}")
        done.skipped.append(path.name)
        return None
    if _is_current(mine, new):
        done.lines.append(f"{path.name}: up to date")
        return None
    merged = merge(mine, new, _readable(old))
    done.lines.append(f"{path.name}: {_said(merged)}")
    done.lines += [f"    {note}" for note in merged.notes]
    return merged


def _is_current(mine: NotebookNode, new: NotebookNode) -> bool:
    """Whether a notebook was made from this release already, whatever was edited in it since.

    A cell of ours that the student deleted stays deleted; an exercise doesn't.
    """
    source, here, there = info(mine).get("source"), _handed_out(mine), _handed_out(new)
    asked = {one for one in there if one[0]}
    return source is not None and source == info(new).get("source") and asked <= here <= there


def _handed_out(notebook: NotebookNode) -> set[tuple[str, str]]:
    """The exercise (empty for other cells) and the hash of each text that the course wrote."""
    marks = [info(cell) for cell in notebook["cells"]]
    return {
        (
            str(mark.get("exercise")) if "stub" in mark else "",
            str(mark.get("stub", mark.get("text"))),
        )
        for mark in marks
        if "stub" in mark or "text" in mark
    }


def _readable(content: bytes | None) -> NotebookNode | None:
    try:
        return None if content is None else reading.read(content).notebook
    except reading.Unreadable:
        return None


def _said(merged: Merged) -> str:
    if not merged.changed:
        return "up to date"
    parts = [_count(len(merged.answers), "answer"), _count(merged.own, "cell of your own")]
    kept = " and ".join(part for part in parts if part)
    said = [f"new text, {kept} kept" if kept else "new text; it held nothing of yours"]
    if merged.new:
        said.append(f"new: {', '.join(merged.new)}")
    if merged.gone:
        said.append(f"no longer asked, kept at the end: {', '.join(merged.gone)}")
    return "; ".join(said)


def _count(number: int, what: str) -> str:
    if not number:
        return ""
    first, _, rest = what.partition(" ")
    return f"{number} {first}{'s' if number > 1 else ''}{' ' + rest if rest else ''}"


def _stale(release: NewRelease) -> list[str]:
    """Files of the library here that the new release doesn't have."""
    library = home() / "labs_lib"
    here = [p for p in library.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    paths = (p.relative_to(home()).as_posix() for p in here)
    return sorted(p for p in paths if p not in release.files)


def _write(
    release: NewRelease,
    paths: Iterable[str],
    removed: Iterable[str],
    texts: dict[Path, bytes],
    done: Updated,
) -> None:
    """Copy what will be written over, then write: notebooks first, then all other files."""
    contents = {home() / p: _content(release, p) for p in paths if p in release.files}
    contents = {p: content for p, content in contents.items() if _here(p) != content}
    gone = [home() / p for p in removed if (home() / p).is_file()]
    if texts or contents or gone:
        done.backup = _keep_copies([*texts, *contents, *gone])
    for path, content in [*texts.items(), *contents.items()]:
        mode = path.stat().st_mode & 0o777 if path.is_file() else 0o644
        write_bytes(path, content)
        name = path.relative_to(home()).as_posix()
        os.chmod(path, mode | (0o111 if name in release.executable else 0))
        done.written.append(name)
    for path in gone:
        path.unlink()
        done.removed.append(path.relative_to(home()).as_posix())
        _drop_empty(path.parent)
    if {"requirements.lock", "pyproject.toml"} & set(done.written):
        done.advice.append("the packages changed: `make lab` installs them")


def _content(release: NewRelease, path: str) -> bytes:
    try:
        return release.files[path]()
    except reading.Unreadable as error:  # in a damaged archive
        raise UsageError(
            f"{path} of {release.said} can't be read: {error}; nothing was changed. Get it again"
        ) from error


def _here(path: Path) -> bytes | None:
    try:
        return None if path.is_symlink() else path.read_bytes()
    except OSError:
        return None


def _keep_copies(paths: Iterable[Path]) -> Path | None:
    """Copies of what is there, below one new folder; None where there is nothing to copy."""
    folder = files.new_backup("update")
    for path in paths:
        if path.is_file():
            write_bytes(folder / path.relative_to(home()), path.read_bytes())
    return folder if folder.exists() else None


def _drop_empty(folder: Path) -> None:
    while folder != home() and not any(p.name != "__pycache__" for p in folder.iterdir()):
        for cached in folder.glob("__pycache__/*"):
            cached.unlink()
        for cached in folder.glob("__pycache__"):
            cached.rmdir()
        folder.rmdir()
        folder = folder.parent


def _text(notebook: NotebookNode) -> bytes:
    nbformat.validate(notebook)
    return (nbformat.writes(notebook, version=4) + "\n").encode("utf-8")
