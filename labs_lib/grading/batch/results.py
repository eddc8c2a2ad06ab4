"""What was graded before: outcomes by what they rest on, a line each, appended as they come.

The file lies beside the report's folder. A run that was stopped goes on from it; a student's
notebook that hasn't changed, under checks and an environment that haven't, is not run again.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...notebook.cells import role
from ...notebook.matching import Answer
from ..course import Course
from ..judge import Outcome
from ..sandbox import Limits
from ..versions import library_hash, machine

KEPT = 32  # hexadecimal digits of each hash: two answers with the same 64 bits could be made


@dataclass(frozen=True)
class Basis:
    """What outcomes rest on: hashes of the student's answers, of our checks, of the machine."""

    submission: str
    checks: str
    environment: str


def basis(
    course: Course, answers: Mapping[str, Answer], limits: Limits | None, fence: str
) -> Basis:
    """The basis of one lab's outcomes for one student; no student's code runs."""
    given = [(name, repr(answers[name])) for name in sorted(answers)]
    return Basis(
        submission=_hash([course.lab.name, *(text for pair in given for text in pair)]),
        checks=_hash([library_hash(course.lab.name), *_cells(course)]),
        environment=_hash([machine(bool(course.kernels)), fence, repr(limits or Limits())]),
    )


def _cells(course: Course) -> list[str]:
    """What the instructor's notebook brings into a run."""
    cells = course.notebook.cells
    return [f"{role(cell)}\n{cell.source}" for cell in cells if role(cell) in ("setup", "check")]


class Results:
    """The lines of one file, and a way to add to it that survives a kill at any moment."""

    def __init__(self, path: Path, *, seed: int | None = None, again: bool = False) -> None:
        """Read what is there. With `seed`, only what was graded on it counts; with `again`,
        nothing does. `trouble` says why a line could not be written.

        Raises:
            UsageError: if the file can't be added to, or isn't this user's own.
        """
        self.path = Path(path)
        self.taken, self.trouble = 0, ""
        _require_own(self.path)
        self._lock = threading.Lock()
        self._known: dict[Basis, list[Outcome]] = {}
        if not again:
            self._read(seed)

    def find(self, which: Basis, names: Sequence[str]) -> list[Outcome] | None:
        """The outcomes of the exercises `names` on this basis, or None if they aren't known."""
        found = self._known.get(which)
        if found is None or [outcome.exercise for outcome in found] != list(names):
            return None
        with self._lock:
            self.taken += 1
        return found

    def add(self, which: Basis, student: str, seed: int, outcomes: Iterable[Outcome]) -> None:
        """Write a line at once, unless the machine failed: that is tried again next time.

        What can't be written is run again next time; in this run it counts all the same.
        """
        outcomes = list(outcomes)
        if any(outcome.status == "infrastructure" for outcome in outcomes):
            return
        line = asdict(which) | {"student": student, "seed": seed}
        line["outcomes"] = [asdict(outcome) for outcome in outcomes]
        text = json.dumps(line, ensure_ascii=True).encode() + b"\n"
        with self._lock:
            try:
                _append(self.path, text)
            except OSError as error:  # a full disk, say
                self.trouble = f"{self.path} could not be written ({error.strerror or error})"

    def _read(self, seed: int | None) -> None:
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError:
            return
        for text in lines:
            try:
                line = json.loads(text)
                which = Basis(*(_text(line[name]) for name in Basis.__dataclass_fields__))
                outcomes = [_outcome(one) for one in line["outcomes"]]
                known = seed is None or line.get("seed") == seed
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # cut off by a kill, or not written by us
            if known:
                self._known[which] = outcomes


def _require_own(path: Path) -> None:
    """Whoever writes these lines gives marks: in a folder that others can write to, anybody could
    lay down a file under this name."""
    if not path.exists() and not path.is_symlink():
        return
    if path.is_symlink() or not path.is_file():
        raise UsageError(f"{path} is no ordinary file; move it away, or give another --out")
    if hasattr(os, "getuid") and path.stat().st_uid not in (0, os.getuid()):
        raise UsageError(
            f"{path} belongs to another user, who could have given marks in it; delete it, or give "
            "another --out"
        )
    if not os.access(path, os.R_OK | os.W_OK):
        raise UsageError(f"{path} can't be written to; give another --out")


def _append(path: Path, text: bytes) -> None:
    """One write of one line; a line that a kill cut off before gets its end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, 0o600), "r+b", buffering=0) as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            text = text if file.read(1) == b"\n" else b"\n" + text
        while text:  # a disk that is nearly full takes a part
            text = text[file.write(text) :]
        os.fsync(file.fileno())


_WRITTEN: dict[str, Any] = {
    "exercise": str,
    "status": str,
    "maximum": int,
    "mistake": str,
    "how": str,
}
_WRITTEN |= {"answer": str, "seconds": (int, float), "lines": list, "notes": list}


def _outcome(values: Mapping) -> Outcome:
    """What a line says of one exercise; marks by hand have no place there.

    Raises TypeError, AttributeError, KeyError, ValueError for what we didn't write.
    """
    known: dict[str, Any] = {name: values[name] for name in _WRITTEN if name in values}
    for name, value in known.items():
        if not isinstance(value, _WRITTEN[name]) or isinstance(value, bool):
            raise TypeError(name)
        if isinstance(value, list):
            known[name] = tuple(_text(one) for one in value)
    if any(values.get(name) for name in ("mark", "comment")) or known["maximum"] < 0:
        raise ValueError("a mark")
    return Outcome(**known)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _hash(texts: Iterable[str]) -> str:
    total = hashlib.sha256()
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        total.update(len(raw).to_bytes(8, "little") + raw)
    return total.hexdigest()[:KEPT]
