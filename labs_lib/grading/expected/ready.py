"""Keys that were made ahead of a run, in sets: each on a seed of its own, each for one run.

A run without a seed of its own takes a set and, by taking it, removes it: no two runs share a seed.
The file says what is expected, so it is the instructor's alone (0600 in a folder 0700), and a fence
that keeps no files of this account back has none of it: there, what lies here is thrown away.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...paths import grading_cache
from ..sandbox.levels import BUBBLEWRAP

MOST_SETS = 20
OLD_S = 3600.0
_SET = re.compile(r"keys-(\d{8,12})\.json\Z")
_OURS = re.compile(r"keys-\d{8,12}\.json")  # also while one is written or taken


@dataclass(frozen=True)
class Entry:
    """One lab of a set: what the key rests on, its own seed, and what was found on it."""

    basis: str
    seed: int
    places: Mapping[str, Any]
    expected: Mapping[str, str]

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Entry:
        """Read it back. Raises KeyError, TypeError, ValueError."""
        places, expected = dict(values["places"]), dict(values["expected"])
        for text in (values["basis"], *expected.values()):
            if not isinstance(text, str):
                raise TypeError("no text")
        return cls(values["basis"], _seed(values["seed"]), places, expected)


@dataclass(frozen=True)
class ReadySet:
    """A seed that no run had, and the labs whose keys were made on it."""

    seed: int
    labs: Mapping[str, Entry] = field(default_factory=dict)

    def find(self, lab: str, basis: str) -> Entry | None:
        """The entry of a lab, where nothing that it rests on has changed since."""
        entry = self.labs.get(lab)
        return entry if entry is not None and entry.basis == basis else None


def take(fence: str) -> ReadySet | None:
    """A set for a run behind `fence`, the newest first; it is gone for all other runs."""
    if fence != BUBBLEWRAP:
        forget()
        return None
    for path in sorted(_sets(), key=_number, reverse=True):
        claimed = path.with_name(f"{path.name}.{secrets.token_hex(8)}.taken")
        try:
            path.rename(claimed)  # of two graders at once, one fails here
            text = claimed.read_bytes()
        except OSError:
            continue
        finally:
            with contextlib.suppress(OSError):  # a folder that can't be written to
                claimed.unlink()
        found = _read(text)
        if found is not None:
            return found
    return None


def require(fence: str) -> None:
    """Raises UsageError behind a fence from which a program reads this account's files."""
    if fence != BUBBLEWRAP:
        raise UsageError(
            f"keys are made ahead where student code runs in {BUBBLEWRAP}; behind {fence} it could "
            "read them"
        )


def put(ready: ReadySet) -> Path:
    """Lay a set down for a later run, and return its file; of too many the oldest is thrown away.

    Raises UsageError where the folder is somebody else's, or holds something else.
    """
    folder = grading_cache()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _require_own(folder)
    folder.chmod(0o700)
    labs = {name: vars(entry) for name, entry in ready.labs.items()}
    text = json.dumps({"seed": ready.seed, "labs": labs}).encode()
    there = sorted(_sets(), key=_number)
    path = _new_name(folder, _number(there[-1]) + 1 if there else 1)
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
        unfinished.replace(path)
    except BaseException as error:
        if isinstance(error, OSError):  # a full disk
            error.filename = str(path)
        for left in (unfinished, path):
            left.unlink(missing_ok=True)
        raise
    for old in there[: max(0, len(there) + 1 - MOST_SETS)]:
        old.unlink(missing_ok=True)
    return path


def forget() -> None:
    """Throw every set away, and what a grader that was killed left of one."""
    for path in [*_files(_SET), *_left_over()]:
        with contextlib.suppress(OSError):
            path.unlink()


def _new_name(folder: Path, number: int) -> Path:
    """Keep a number that no other grader has; nobody can read an empty set."""
    while True:
        path = folder / f"keys-{number:08d}.json"
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            number += 1
        else:
            return path


def _require_own(folder: Path) -> None:
    if not _is_own(folder, 0):
        raise UsageError(f"{folder} belongs to another user; delete it")
    strangers = [path.name for path in folder.iterdir() if not _OURS.match(path.name)]
    if strangers:
        raise UsageError(
            f"{folder} holds {min(strangers)!r}, which is no key; delete it, or give "
            "LABS_GRADING_CACHE a folder of its own"
        )


def _sets() -> list[Path]:
    """The files of sets: ours alone, no links, and in a folder where nobody else can write."""
    found = [path for path in _files(_SET) if _own(path)]
    return found if found and _is_own(found[0].parent, 0o022) else []


def _left_over() -> list[Path]:
    """Sets that were being written or taken more than an hour ago."""
    found = []
    for path in _files(_OURS):
        with contextlib.suppress(OSError):
            old = path.lstat().st_mtime < time.time() - OLD_S
            found += [path] if old and not _SET.fullmatch(path.name) else []
    return found


def _files(named: re.Pattern[str]) -> list[Path]:
    try:
        return [path for path in grading_cache().iterdir() if named.match(path.name)]
    except OSError:
        return []


def _is_own(folder: Path, closed: int) -> bool:
    """Whether a folder, and a link that leads to it, is this account's, without the rights `closed`
    for others."""
    if not hasattr(os, "getuid"):
        return True
    found = folder.stat()
    owners = {found.st_uid, folder.lstat().st_uid}
    return owners == {os.getuid()} and not found.st_mode & closed


def _number(path: Path) -> int:
    found = _SET.fullmatch(path.name)
    return int(found[1]) if found else 0


def _own(path: Path) -> bool:
    """Whether it is a file that nobody but this account can have read or written."""
    try:
        found = path.lstat()
    except OSError:  # another grader has just taken it
        return False
    if not stat.S_ISREG(found.st_mode):
        return False
    return not hasattr(os, "getuid") or (
        found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
    )


def _read(text: bytes) -> ReadySet | None:
    try:
        values = json.loads(text)
        labs = {name: Entry.of(entry) for name, entry in values["labs"].items()}
        return ReadySet(_seed(values["seed"]), labs)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _seed(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError("no seed")
    return value
