"""Write a file, or a folder, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_BUILDING = ".building-"
FRESH_S = 60.0  # a folder younger than this may not be held yet by who makes it


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to a temporary file beside `path`, then rename it into place."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary_beside(path) as temporary:
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            _name(error, path)
            raise
        os.replace(temporary, path)


def write_text(path: Path, content: str) -> None:
    """Write text as UTF-8 with `\\n` line ends, whole or not at all."""
    write_bytes(path, content.encode("utf-8"))


@contextlib.contextmanager
def temporary_beside(path: Path) -> Generator[Path]:
    """A fresh file name in the same folder; removed afterwards if it is still there."""
    prefix = f".{path.name[:40]}."
    try:
        handle, name = tempfile.mkstemp(prefix=prefix, suffix=".part", dir=path.parent)
    except OSError as error:
        _name(error, path)
        raise
    os.close(handle)
    os.chmod(name, 0o644)
    temporary = Path(name)
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def folder_beside(target: Path) -> Generator[Path]:
    """A fresh hidden folder beside `target`, to be filled and renamed into its place.

    It is removed afterwards if it is still there; what a killed process left is removed when the
    next one begins (not on Windows, which has no lock that ends with its process).
    """
    sweep_beside(target)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}{_BUILDING}", dir=target.parent))
    held = _hold(folder)
    try:
        yield folder
    finally:
        if held is not None:
            os.close(held)
        shutil.rmtree(folder, ignore_errors=True)


def sweep_beside(target: Path) -> None:
    """Remove the hidden folders of `target` that nobody fills any more."""
    named = re.compile(rf"\.{re.escape(target.name)}{re.escape(_BUILDING)}\w{{8}}(\.old)?")
    for path in target.parent.iterdir() if fcntl is not None else ():
        with contextlib.suppress(OSError):
            if not named.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
                continue
            found = path.stat()
            if found.st_uid != os.getuid() or found.st_ctime > time.time() - FRESH_S:
                continue
            held = _hold(path)
            if held is not None:
                os.close(held)
                shutil.rmtree(path, ignore_errors=True)


def _hold(folder: Path) -> int | None:
    """A descriptor that keeps a folder from being swept; None where another process has one."""
    if fcntl is None:
        return None
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or on a file system without locks: there nothing is swept
        os.close(held)
        return None
    return held


def _name(error: OSError, path: Path) -> None:
    """Let an error say which file was asked for; nobody knows the temporary one."""
    if error.errno is not None:
        error.filename = str(path)
