"""`labs submit`: pack the student's notebooks with their id into one archive."""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from .. import __version__
from ..errors import UsageError
from ..notebook.atomic import write_bytes
from ..paths import home
from . import files, own_report
from .unsaved import unsaved

MANIFEST = "labs-submission.json"
FORMAT = 1
_ID = re.compile(r"\w[\w.@+-]{0,63}")
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # by Windows


@dataclass(frozen=True)
class Submission:
    """The archive written: its file, the notebooks in it, and what was noticed on the way."""

    archive: Path
    notebooks: list[str]
    notes: list[str]


def submit(student: str, out: Path | None = None, now: float | None = None) -> Submission:
    """Pack every notebook in `notebooks/` into one zip with the student's id.

    The archive holds the notebooks without outputs, the student's own reports beside them, and
    `labs-submission.json`. The same work at the same time gives the same bytes.

    Args:
        student: the id; letters, digits and . _ @ + - (64 characters at most).
        out: the archive's file, `ID.zip` in the course's folder unless given.
        now: seconds since 1970; this moment unless given.

    Raises:
        UsageError: for an id or file name that can't be, or if there is nothing to pack.
    """
    student = checked_id(student)
    target = _target(student, out)
    notebooks = files.all_notebooks()
    if not notebooks:
        raise UsageError(f"there is no notebook in {files.folder()}, so there is nothing to submit")
    packed, notes = {}, []
    for path in notebooks:
        if path.is_symlink():
            notes.append(f"{path.name} is a link and was left out; submit the file itself")
            continue
        packed[f"notebooks/{path.name}"], note = _plain(path)
        notes += [note] if note else []
        if stale := unsaved(path):
            notes.append(f"{path.name} was packed as it was last saved; {stale}")
    packed |= _reports()
    names = [Path(name).name for name in packed if name.endswith(".ipynb")]
    packed[MANIFEST] = _manifest(student, names, time.time() if now is None else now)
    write_bytes(target, _archive(packed))
    return Submission(target, names, notes)


def checked_id(student: str) -> str:
    """The id without spaces around it.

    Raises:
        UsageError: if it isn't one to sixty-four letters, digits or . _ @ + -, or is no file name.
    """
    plain = student.strip()
    if not _ID.fullmatch(plain) or RESERVED.fullmatch(plain) or plain.endswith("."):
        raise UsageError(
            f"the id {student!r} can't be used; give letters, digits and . _ @ + - "
            "(64 at most, the first a letter or digit), for example --id ada.lovelace"
        )
    return plain


def is_submission(path: Path) -> bool:
    """Whether a file is an archive that `labs submit` made."""
    try:
        with zipfile.ZipFile(path) as archive:
            return MANIFEST in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _target(student: str, out: Path | None) -> Path:
    target = home() / f"{student}.zip" if out is None else Path(out).expanduser()
    if target.suffix.lower() != ".zip":
        raise UsageError(f"--out {out} doesn't end in .zip, which the archive is")
    if not target.parent.is_dir():
        raise UsageError(
            f"there is no folder {target.parent}; make it first, or give another --out"
        )
    if target.is_dir() or (target.exists() and not is_submission(target)):
        raise UsageError(f"{target} exists and is no submission; give another --out")
    return target


def _plain(path: Path) -> tuple[bytes, str]:
    """The notebook without outputs; one that can't be read goes in as it is, with a note."""
    try:
        notebook = files.read(path)
        text = nbformat.writes(_without_outputs(notebook)) + "\n"
        return text.encode("utf-8"), ""
    except UsageError as error:
        return path.read_bytes(), f"{error}; it was packed as it is"


def _reports() -> dict[str, bytes]:
    """What the student's notebooks say of themselves, for the instructor to read."""
    found = {}
    for path in sorted(files.folder().glob(f"*{own_report.SUFFIX}")):
        if (
            path.is_file()
            and not path.is_symlink()
            and path.stat().st_size <= own_report.MOST_BYTES
        ):
            found[f"notebooks/{path.name}"] = path.read_bytes()
    return found


def _without_outputs(notebook: Any) -> Any:
    notebook["metadata"].pop("widgets", None)
    for cell in notebook["cells"]:
        if cell.get("cell_type") == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return notebook


def _manifest(student: str, names: list[str], now: float) -> bytes:
    content = {
        "format": FORMAT,
        "course": "attention-labs",
        "version": __version__,
        "id": student,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
        "notebooks": names,
    }
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def _archive(packed: dict[str, bytes]) -> bytes:
    """A zip whose bytes depend on its content alone: sorted names, one date, one mode."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(packed):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, packed[name])
    return buffer.getvalue()
