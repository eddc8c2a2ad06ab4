"""A new release of the course as files: from a folder or a zip archive, or from a commit of git.

A handout is such a folder too. Nothing is unpacked, and no link is followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from ..notebook.archives import members
from ..notebook.reading import Unreadable

Reader = Callable[[], bytes]

FOLDERS = ("notebooks", "labs_lib", "solutions", "data", "docs", "tests", ".binder", ".ci")
FOLDERS += (".devcontainer",)
_TOP_FILE = re.compile(r"[^.].*\.(?:md|toml|lock|yml|cff)|Makefile|LICENSE|\.gitignore")
_NOTEBOOK = re.compile(r"notebooks/\d\d_[^/]*\.ipynb")
_AROUND = re.compile(r"((?:[^/]+/)*?)notebooks/")  # what the course's folder is called in a zip
_NEVER = re.compile(r"__pycache__|.*\.pyc|\.ipynb_checkpoints|.*\.part|.*\.egg-info")


@dataclass(frozen=True)
class NewRelease:
    """The files of a release by their path in the course; `said` is what a person calls it."""

    said: str
    files: Mapping[str, Reader]
    executable: frozenset[str] = frozenset()

    @property
    def notebooks(self) -> dict[str, Reader]:
        """The student's notebooks of the release, by file name, in order."""
        return {Path(p).name: r for p, r in sorted(self.files.items()) if is_notebook(p)}


def is_notebook(path: str) -> bool:
    """Whether a path in the course is that of a student's notebook."""
    return _NOTEBOOK.fullmatch(path) is not None


def from_path(source: Path) -> NewRelease:
    """The release in a folder or a zip archive; a folder around the course is looked into.

    Raises:
        UsageError: if there is nothing there that can be read, or no course in it.
    """
    source = Path(source).expanduser()
    if not source.exists():
        raise UsageError(f"there is no {source}; give the folder or the .zip of the new release")
    if source.is_dir():
        found, executable = _of_folder(source)
    else:
        found, executable = _of_archive(source), frozenset()
    if not any(is_notebook(path) for path in found):
        raise UsageError(
            f"{source} holds no notebooks/NN_name.ipynb, so it is no release of the course; "
            "give the folder or the .zip that your instructor handed out"
        )
    return NewRelease(str(source), found, executable)


def _of_folder(source: Path) -> tuple[dict[str, Reader], frozenset[str]]:
    root = source
    inner = [p for p in sorted(source.iterdir()) if (p / "notebooks").is_dir()]
    if not (source / "notebooks").is_dir() and len(inner) == 1:
        root = inner[0]
    paths = {p.relative_to(root).as_posix(): p for p in _walk(root)}
    executable = frozenset(name for name, p in paths.items() if os.access(p, os.X_OK))
    return {name: p.read_bytes for name, p in paths.items()}, executable


def _walk(root: Path) -> Iterator[Path]:
    for path in sorted(root.iterdir()):
        if path.is_file() and not path.is_symlink() and _TOP_FILE.fullmatch(path.name):
            yield path
    for name in FOLDERS:
        for folder, inside, files in os.walk(root / name, followlinks=False):
            inside[:] = sorted(d for d in inside if not _NEVER.fullmatch(d))
            for file in sorted(files):
                path = Path(folder) / file
                if not path.is_symlink() and not _NEVER.fullmatch(file):
                    yield path


def _of_archive(source: Path) -> dict[str, Reader]:
    try:
        inside, refused = members(lambda: source.open("rb"))
    except (Unreadable, OSError) as error:
        raise UsageError(f"{source} is neither a folder nor a readable .zip: {error}") from error
    if refused:
        raise UsageError(f"{source} is no release of the course: {refused[0]}")
    files = {"/".join(one.parts): one.read for one in inside if one.read is not None}
    roots = {found[1] for path in files if (found := _AROUND.match(path))}
    root = min(roots, key=lambda prefix: (prefix.count("/"), prefix), default="")
    found = {p.removeprefix(root): r for p, r in files.items() if p.startswith(root)}
    return {path: reader for path, reader in found.items() if _belongs(path)}


def _belongs(path: str) -> bool:
    first, *rest = path.split("/")
    if not rest:
        return _TOP_FILE.fullmatch(first) is not None
    return first in FOLDERS and not any(_NEVER.fullmatch(part) for part in rest)
