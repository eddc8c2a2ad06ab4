"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Generator
from pathlib import Path


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


def _name(error: OSError, path: Path) -> None:
    """Let an error say which file was asked for; nobody knows the temporary one."""
    if error.errno is not None:
        error.filename = str(path)
