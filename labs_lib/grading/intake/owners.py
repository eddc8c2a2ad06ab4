"""Whose each submission is: told by the names that it came with, then by what it says itself."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ...exercises import labs
from ...notebook.reading import Unreadable
from ...workbook.submit import MANIFEST
from . import names
from .names import Roster
from .platforms import Carrier


@dataclass(frozen=True)
class Entry:
    """A file at its place; `archives` says at which of its parts an archive begins, `carrier` what
    a learning platform made of the first."""

    parts: tuple[str, ...]
    read: Callable[[], bytes] | None
    archives: tuple[int, ...] = ()
    carrier: Carrier | None = None

    @property
    def label(self) -> str:
        """Its place, as it is shown."""
        return names.printable("/".join(self.parts))

    def content(self) -> bytes:
        """The file's bytes; raises Unreadable for what is no file (a link, a device)."""
        if self.read is None:
            raise Unreadable(f"{self.label} is no file")
        return self.read()


def is_zip(entry: Entry) -> bool:
    """Whether it is a file by an archive's name."""
    return entry.read is not None and entry.parts[-1].lower().endswith(".zip")


def distinct(groups: Iterable[tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """A name for each student that is no other's, with the platform's number where it is needed.

    Names that differ in what can't be shown are told apart as well.
    """
    groups = list(groups)
    named: dict[str, tuple[str, str]] = {}
    plain = Counter(names.printable(name) for name, _ in groups)
    for name, number in groups:
        printed = names.printable(name)
        shown = first = f"{printed} ({number})" if plain[printed] > 1 and number else printed
        again = 1
        while shown in named:
            again += 1
            shown = f"{first} [{again}]"
        named[shown] = (name, number)
    return named


def owners(
    entries: list[Entry],
    source: Path,
    roster: Roster,
    left_out: list[str],
    assignment: str = "",
    given: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, tuple[str, str]]:
    """Whose each top folder, archive or file is.

    An archive may say whose it is, but not be another's: where that student handed in something
    under their own name, it keeps the name that it came with. `assignment` is what begins the
    names of repositories that GitHub Classroom made; `given` says whose a top name is, and wins.
    """
    inside: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        inside[entry.parts[0]].append(entry)
    found, claims = {}, {}
    for top, own in inside.items():
        packed = any(0 in entry.archives for entry in own)
        said = _manifest_id(own, (top,)) if packed else ""
        sure = given.get(names.normal(top)) or _repository(top, own, roster, assignment)
        if sure:
            found[top] = (sure, "")
            continue
        found[top] = _owner(top, own, source, roster, said)
        known = names.attempt(Path(top).stem)[0]
        by_name = _owner(top, own, source, roster, "")
        if said and found[top] != by_name and names.normal(known) != names.normal(said):
            claims[top] = by_name
    held = {found[top] for top in inside if top not in claims}
    for top, by_name in claims.items():
        if found[top] in held:
            left_out.append(
                f"{names.printable(top)} says that it is {names.printable(found[top][0])}'s, who "
                f"handed in something else; it counts for {names.printable(by_name[0])}"
            )
            found[top] = by_name
    return found


def owner_of_all(entries: list[Entry], source: Path) -> tuple[str, str]:
    """The student of a source that is one `labs submit` archive, packed or unpacked."""
    stem = source.resolve().stem if source.is_file() else source.resolve().name
    return (names.normal(_manifest_id(entries, ()) or stem), "")


def _owner(
    top: str, inside: list[Entry], source: Path, roster: Roster, submitted: str
) -> tuple[str, str]:
    """Whose the top folder, archive or file is: (student, number on the platform)."""
    carrier = inside[0].carrier
    folder = len(inside) > 1 or inside[0].read is None
    archive = any(0 in entry.archives for entry in inside) or is_zip(inside[0])
    stem = top if folder and not archive else Path(top).stem
    said = (*carrier.others, carrier.name) if carrier else ()
    known = roster.find(top, stem, *said) or roster.numbered(carrier.number if carrier else "")
    known = known or roster.find(submitted)
    if known:
        return known, ""
    if carrier:
        return names.normal(carrier.name), carrier.number
    if archive:
        return names.normal(submitted or stem), ""
    if folder:
        return names.normal(top), ""
    name, _ = names.owner(stem, [lab.stem for lab in labs()])
    return names.normal(roster.find(name) or name or source.resolve().stem), ""


def _repository(top: str, inside: list[Entry], roster: Roster, assignment: str) -> str:
    """Whose a repository of GitHub Classroom is; empty for all else."""
    loose = len(inside[0].parts) == 1 and inside[0].read is not None
    if not assignment or loose or not top.startswith(f"{assignment}-"):
        return ""
    name = top.removeprefix(f"{assignment}-")
    return roster.find(name) or names.normal(name)


def _manifest_id(entries: list[Entry], below: tuple[str, ...]) -> str:
    for entry in entries:
        if entry.parts == (*below, MANIFEST) and entry.read:
            try:
                found = json.loads(entry.read())["id"]
            except (Unreadable, ValueError, KeyError, TypeError, RecursionError):
                return ""
            return found.strip()[:100] if isinstance(found, str) else ""
    return ""
