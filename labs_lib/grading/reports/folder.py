"""The folder of a report: where it may be written, and written there as a whole."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Generator
from pathlib import Path

from ...errors import UsageError
from ...notebook.atomic import folder_beside
from ..intake.names import file_names
from .feedback import page
from .report import MADE_BY, RESULTS, Report, grades_csv, junit_xml, results_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def check_target(out: Path, source: Path) -> None:
    """Refuse a folder that the report must not replace.

    Raises:
        UsageError: if it exists with anything in it but an earlier report, is a file or a link, or
            lies in the submissions (or they in it).
    """
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} exists and is no folder; give another --out")
    inside, around = out.resolve(), source.resolve()
    if inside == around or around in inside.parents or inside in around.parents:
        raise UsageError(
            f"{out} and the submissions {source} lie in one another; give another --out"
        )
    parent = next(folder for folder in out.resolve().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UsageError(f"{out} can't be made, since {parent} can't be written to")
    strangers = _strangers(out) if out.is_dir() else []
    if strangers:
        raise UsageError(
            f"the folder {out} exists and holds {strangers[0]!r}, which `labs grade` didn't write; "
            "give another --out"
        )


def write(report: Report, out: Path) -> None:
    """Write the report as a whole: into a new folder beside `out`, then renamed into its place."""
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    with folder_beside(out) as building:
        for name, content in _files(report).items():
            file = building / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(content)
        building.chmod(0o755)
        with _alone_in(out.parent):
            _put_in_place(building, out)


def _put_in_place(building: Path, out: Path) -> None:
    """Rename a finished report into its place; where that fails, the earlier one is back."""
    old = building.with_name(building.name + ".old")
    with contextlib.suppress(FileNotFoundError):
        os.replace(out, old)
    try:
        os.replace(building, out)
    except BaseException:
        if old.exists():
            os.replace(old, out)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Generator[None, None, None]:
    """Hold a folder against every other run that writes a report into it."""
    if fcntl is None:
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: one run at a time
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _files(report: Report) -> dict[str, bytes]:
    pages = file_names([row.student for row in report.rows], ".html")
    files = {
        "grades.csv": grades_csv(report).encode("utf-8"),
        "junit.xml": junit_xml(report),
    }
    files |= report.others
    for row in report.rows:
        text = page(row, report)
        files[f"feedback/{pages[row.student]}"] = text.encode("utf-8", "replace")
    return files | {RESULTS: results_json(report, [*files, RESULTS]).encode("utf-8")}


def _strangers(out: Path) -> list[str]:
    """Names of files in a folder that no earlier report wrote."""
    present = sorted(
        p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_symlink() or not p.is_dir()
    )
    try:
        found = json.loads((out / RESULTS).read_text(encoding="utf-8"))
        own = set(found["files"]) if found["made_by"] == MADE_BY else set()
    except (OSError, ValueError, KeyError, TypeError):
        own = set()
    return [name for name in present if name not in own]
