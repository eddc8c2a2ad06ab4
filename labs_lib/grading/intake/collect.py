"""Take in what a class handed in: a folder or an archive in, one submission per student out.

Understood are a folder of notebooks, a folder for each student, what Moodle, Canvas and Blackboard
export, repositories that GitHub Classroom clones, and archives made by `labs submit`. No link is
followed, nothing is written, what is left out is said.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from ...errors import UsageError
from ...notebook.archives import MAX_ARCHIVE_BYTES, members
from ...notebook.reading import MAX_BYTES, Unreadable
from ...workbook import own_report
from ...workbook.submit import MANIFEST
from . import names
from .names import Roster
from .owners import Entry, distinct, is_zip, owner_of_all, owners
from .platforms import Carrier, carriers, classroom_assignment, is_platform_name, is_receipt

MAX_FILES = 100  # notebooks and archives of one student
_DEEPEST = 12
_OF_A_LAB = re.compile(r"(lab|notebook|week)s?[\W_]*\d*", re.IGNORECASE)
_IGNORED = ("__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini")


@dataclass(frozen=True)
class Handed:
    """A notebook, or an archive that can't be opened; `read` may raise `Unreadable`."""

    label: str
    read: Callable[[], bytes]
    attempt: int = 0
    when: str = ""  # the platform's own time, by the clock of its server
    late: bool = False  # whether the platform called it late


@dataclass(frozen=True)
class Submission:
    """All that one student handed in; `reports` are pages of their own, for reading only."""

    student: str
    files: tuple[Handed, ...] = ()
    notes: tuple[str, ...] = ()
    reports: tuple[Handed, ...] = ()


def collect(
    source: Path,
    roster: Roster | None = None,
    given: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[Submission], list[str]]:
    """The submissions in a folder or a zip, by student, and what was left out.

    `given` maps the names of top files and folders to students, where a table says whose they are.

    Raises:
        UsageError: if there is nothing to read, or no notebook in it.
    """
    roster = roster or Roster()
    source = Path(source)
    left_out: list[str] = []
    around = [source.name if source.is_dir() else source.stem]
    entries = _unwrap(list(_expand(_entries(source, left_out), left_out)), source, around)
    made = carriers({entry.parts[0] for entry in entries})
    entries = [replace(entry, carrier=made.get(entry.parts[0])) for entry in entries]
    groups = _groups(entries, source, left_out, roster, around, given)
    found = [_submission(name, groups[key]) for name, key in distinct(groups).items()]
    if not any(submission.files for submission in found):
        raise UsageError(
            f"there are no submissions in {source}: no notebook (.ipynb) and no archive (.zip)"
        )
    missing = [s for s in roster.students if s not in {one.student for one in found}]
    if roster.students:
        strange = sorted({one.student for one in found} - set(roster.students))
        left_out += [
            f"{name} is not in the roster; there is a row all the same" for name in strange
        ]
    found += [Submission(s, notes=("Nothing was handed in.",)) for s in missing]
    return sorted(found, key=lambda one: (one.student.casefold(), one.student)), left_out


def _entries(source: Path, left_out: list[str]) -> list[Entry]:
    if not source.exists():
        raise UsageError(f"there is no {source}; give a folder or a .zip of submissions")
    if source.is_dir():
        try:
            return list(_walk(source, (), left_out))
        except OSError as error:
            raise UsageError(f"the folder {source} can't be read: {error.strerror}") from error
    if source.suffix.lower() == ".ipynb":
        raise UsageError(f"{source} is one notebook; give the folder that it lies in")
    try:
        # Of a whole class: one student's gigabytes must not keep the others out.
        inside, refused = members(lambda: source.open("rb"), most_bytes=None)
    except (Unreadable, OSError) as error:
        raise UsageError(f"{source} is neither a folder nor a readable .zip: {error}") from error
    left_out += refused
    return [Entry(one.parts, one.read) for one in inside if not _ignored(one.parts)]


def _walk(folder: Path, above: tuple[str, ...], left_out: list[str]) -> Iterator[Entry]:
    with os.scandir(folder) as listing:
        children = sorted(listing, key=lambda child: child.name)
    for child in children:
        parts = (*above, child.name)
        if _ignored(parts):
            continue
        label = names.printable("/".join(parts))
        if child.is_symlink():
            left_out.append(f"{label} is a link, which is never followed")
        elif child.is_dir(follow_symlinks=False):
            yield Entry(parts, None)
            try:
                if len(parts) < _DEEPEST:
                    yield from list(_walk(Path(child.path), parts, left_out))
                else:
                    left_out.append(f"{label} lies {_DEEPEST} folders deep; it was not looked into")
            except OSError as error:
                yield Entry((*parts, "folder.ipynb"), _refusal(f"{label}: {error.strerror}"))
        elif child.is_file(follow_symlinks=False):
            yield Entry(parts, _file_reader(Path(child.path)))


def _refusal(reason: str) -> Callable[[], bytes]:
    """The reader of what can't be read, so that its student has a row that says so."""

    def read() -> bytes:
        raise Unreadable(f"the folder can't be read ({reason})")

    return read


def _file_reader(path: Path) -> Callable[[], bytes]:
    def read() -> bytes:
        limit = MAX_ARCHIVE_BYTES if path.suffix.lower() == ".zip" else MAX_BYTES
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(path, flags | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise Unreadable("it is not an ordinary file")
                content = file.read(limit + 1)
        except OSError as error:
            raise Unreadable(f"it can't be read: {error.strerror}") from None
        if len(content) > limit:
            raise Unreadable(f"the file has more than {limit >> 20} MiB")
        return content

    return read


def _ignored(parts: tuple[str, ...]) -> bool:
    return any(part.startswith(".") or part in _IGNORED for part in parts)


def _expand(entries: list[Entry], left_out: list[str]) -> Iterator[Entry]:
    """Open each archive as if it were a folder; archives inside archives stay closed."""
    for entry in entries:
        if not is_zip(entry):
            yield entry
            continue
        try:
            inside, refused = members(lambda entry=entry: io.BytesIO(entry.content()))
        except Unreadable:
            yield entry
            continue
        left_out += [f"{entry.label}: {one}" for one in refused]
        begins = (len(entry.parts) - 1,)
        yield Entry(entry.parts, None, begins)
        for one in inside:
            if not _ignored(one.parts):
                yield Entry((*entry.parts, *one.parts), one.read, begins)


def _unwrap(entries: list[Entry], source: Path, around: list[str]) -> list[Entry]:
    """Take away a folder that only wraps what a class handed in; its name goes to `around`."""
    tops = {entry.parts[0] for entry in entries}
    top = next(iter(tops), "")
    packed = any(0 in entry.archives for entry in entries)
    if len(tops) != 1 or packed or is_platform_name(top):
        return entries
    inner = [entry for entry in entries if len(entry.parts) > 1]
    files = [e.parts[1] for e in inner if len(e.parts) == 2 and e.read is not None]
    folders = {e.parts[1] for e in inner if len(e.parts) > 2 or e.read is None}
    students = {name for name in folders if not _OF_A_LAB.match(name)}
    of_class = top.casefold() in ("submissions", source.stem.casefold())
    of_class = of_class or bool(classroom_assignment(top))
    lms = bool(files) and all(map(is_platform_name, files))
    if not inner or not (of_class or lms or (students and not files)):
        return entries
    shifted = [
        replace(e, parts=e.parts[1:], archives=tuple(n - 1 for n in e.archives)) for e in inner
    ]
    around.append(top)
    return _unwrap(shifted, source, around)


def _groups(
    entries: list[Entry],
    source: Path,
    left_out: list[str],
    roster: Roster,
    around: Sequence[str],
    given: Mapping[str, str],
) -> dict[tuple[str, str], list[Entry]]:
    """The entries of each student, by name and number on the platform."""
    whole = owner_of_all(entries, source) if _is_one_archive(entries) else None
    groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    classroom = next(filter(None, map(classroom_assignment, around)), "")
    whose = {} if whole else owners(entries, source, roster, left_out, classroom, given)
    for entry in entries:
        top = entry.parts[0]
        loose = len(entry.parts) == 1 and entry.read and not _counts(entry)
        if loose and not is_receipt(top):
            if top != MANIFEST:
                left_out.append(f"{entry.label} is neither a notebook nor an archive")
            continue
        groups[whole or whose[top]].append(entry)
    return groups


def _is_one_archive(entries: list[Entry]) -> bool:
    """Whether all of it is what `labs submit` packs: its manifest, and one folder of notebooks."""
    own = any(entry.parts == (MANIFEST,) for entry in entries)
    return own and len({e.parts[0] for e in entries if _counts(e) and len(e.parts) > 1}) < 2


def _counts(entry: Entry) -> bool:
    return entry.read is not None and entry.parts[-1].lower().endswith((".ipynb", ".zip"))


def _submission(student: str, entries: list[Entry]) -> Submission:
    files, others, reports = [], [], []
    for entry in entries:
        if entry.read is None or entry.parts[-1] == MANIFEST:
            continue
        if entry.parts[-1].endswith(own_report.SUFFIX):
            reports.append(Handed(entry.label, entry.read))
            continue
        carrier = entry.carrier or Carrier("")
        handed = partial(Handed, entry.label, when=carrier.when, late=carrier.late)
        if not _counts(entry):
            others += [] if is_receipt(entry.parts[-1]) else [entry.label]
        elif is_zip(entry):
            files.append(handed(_closed(entry)))
        else:
            files.append(handed(entry.read, _attempt(entry, student)))
    tops = sorted({names.printable(entry.parts[0]) for entry in entries})
    notes = [f"Handed in as {', '.join(tops[:20])}."] if len(tops) > 1 else []
    if len(files) > MAX_FILES:
        notes.append(f"{len(files)} files were handed in; the first {MAX_FILES} were looked at.")
        del files[MAX_FILES:]
    notes += [f"{label} is no notebook; it was not looked at." for label in others[:20]]
    if len(others) > 20:
        notes.append(f"{len(others) - 20} more files are no notebooks.")
    return Submission(student or "nameless", tuple(files), tuple(notes), tuple(reports[:MAX_FILES]))


def _closed(entry: Entry) -> Callable[[], bytes]:
    def read() -> bytes:
        if entry.archives:
            raise Unreadable("an archive inside an archive is not opened; hand in the notebooks")
        members(lambda: io.BytesIO(entry.content()))
        raise Unreadable("the archive can't be opened")

    return read


def _attempt(entry: Entry, student: str) -> int:
    """The number of a repeated upload: the archive's, then the file's own.

    An archive's number counts where its name carries the student, not only its content.
    """
    carrier, last = entry.carrier, entry.parts[-1]
    when = int(carrier.when.replace("-", "")) if carrier and carrier.when else 0
    outer = 0
    if 0 in entry.archives:
        stem, number = names.attempt(Path(carrier.rest if carrier else entry.parts[0]).stem)
        outer = number if carrier or stem == student else 0
    own = carrier if len(entry.parts) == 1 else carriers([last]).get(last)
    inner = names.attempt(Path(own.rest if own else last).stem)[1]
    return (when * 1000 + outer) * 1000 + inner
