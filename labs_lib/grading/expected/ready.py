"""Keys that were made ahead of a run, in sets: each on a seed of its own, each for one run.

A run without a seed of its own takes a set and, by taking it, removes it: no two runs share a seed.
The file says what is expected, so it is the instructor's alone (0600 in a folder 0700), and a fence
that keeps no files of this account back has none of it: there, what lies here is thrown away.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...paths import grading_cache
from ..sandbox.levels import BUBBLEWRAP

MOST_SETS = 20


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
        expected = {str(name): str(text) for name, text in values["expected"].items()}
        return cls(str(values["basis"]), int(values["seed"]), dict(values["places"]), expected)


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
            claimed.unlink(missing_ok=True)
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

    Raises UsageError where the folder is somebody else's.
    """
    folder = grading_cache()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        raise UsageError(f"{folder} belongs to another user; delete it")
    folder.chmod(0o700)
    labs = {name: vars(entry) for name, entry in ready.labs.items()}
    text = json.dumps({"seed": ready.seed, "labs": labs}).encode()
    there = sorted(_sets(), key=_number)
    path = folder / f"{_number(there[-1]) + 1 if there else 1:08d}.json"
    unfinished = path.with_suffix(f".{secrets.token_hex(8)}")
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
    unfinished.rename(path)
    for old in there[: max(0, len(there) + 1 - MOST_SETS)]:
        old.unlink(missing_ok=True)
    return path


def forget() -> None:
    """Throw every set away."""
    for path in _sets():
        with contextlib.suppress(OSError):
            path.unlink()


def _sets() -> list[Path]:
    """The files of sets: ours alone, and no links."""
    try:
        found = [path for path in grading_cache().iterdir() if path.suffix == ".json"]
    except OSError:
        return []
    return [path for path in found if path.stem.isdecimal() and _own(path)]


def _number(path: Path) -> int:
    return int(path.stem)


def _own(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:  # another grader has just taken it
        return False
    mine = os.getuid() if hasattr(os, "getuid") else found.st_uid
    return found.st_uid == mine and stat.S_ISREG(found.st_mode)


def _read(text: bytes) -> ReadySet | None:
    try:
        values = json.loads(text)
        labs = {str(name): Entry.of(entry) for name, entry in values["labs"].items()}
        return ReadySet(int(values["seed"]), labs)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
