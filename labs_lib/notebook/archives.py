"""Read from zip archives without extracting them, whatever a stranger put in.

Nothing is ever written: members are read into memory, one at a time, under caps that count the
bytes that really come out. So no name can lead out of a folder, and no bomb can fill a disk.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, cast

from .reading import MAX_BYTES, Unreadable

MAX_MEMBERS = 20_000
MAX_TOTAL_BYTES = 4 << 30
MAX_RATIO = 200
SMALL_BYTES = 1 << 20
MAX_ARCHIVE_BYTES = 1 << 30
_CHUNK = 1 << 16
_ENTRY = b"PK\x01\x02"  # begins the entry of each member in the list at the end


@dataclass(frozen=True)
class Member:
    """A file in an archive, or a folder where nothing reads it, by the parts of its path."""

    parts: tuple[str, ...]
    read: Callable[[], bytes] | None


def members(
    opened: Callable[[], io.BufferedIOBase], most_bytes: int | None = MAX_TOTAL_BYTES
) -> tuple[list[Member], list[str]]:
    """The files and folders of an archive, and a sentence for each member that was refused.

    Unpacked, they may have `most_bytes` together; without it, only each has its limit.

    Raises:
        Unreadable: if it is no archive, is damaged, or passes the caps.
    """
    try:
        with opened() as file, zipfile.ZipFile(cast("IO[bytes]", _Listing(file))) as archive:
            infos = archive.infolist()
    except Unreadable:
        raise
    except Exception as error:  # damaged archives raise nearly anything
        raise Unreadable(f"the archive is damaged ({type(error).__name__})") from None
    if most_bytes is not None and sum(info.file_size for info in infos) > most_bytes:
        raise Unreadable(f"unpacked, the archive has more than {most_bytes >> 30} GiB")
    found, refused = [], []
    for place, info in enumerate(infos):
        parts, trouble = _parts(info)
        if trouble:
            refused.append(f"{info.filename[:100]!r} {trouble}")
        elif parts:
            folder = info.filename.endswith(("/", "\\"))
            found.append(Member(parts, None if folder else _reader(opened, place)))
    return found, refused


class _Listing:
    """A file from which an archive's list of members is read, and no more than may be parsed.

    The list alone is counted: what a member holds may be another archive, or look like one.
    """

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(size)
        if found.count(_ENTRY) > MAX_MEMBERS:
            raise Unreadable(f"the archive has more than {MAX_MEMBERS} members")
        return found


def _parts(info: zipfile.ZipInfo) -> tuple[tuple[str, ...], str]:
    """The path's parts, or why the member is refused."""
    if stat.S_ISLNK(info.external_attr >> 16):
        return (), "is a link, which is never followed"
    name = info.filename.replace("\\", "/")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or (len(name) > 1 and name[1] == ":"):
        return (), "leads out of the archive"
    if info.flag_bits & 1:
        return (), "is locked with a password"
    return path.parts, ""


def _reader(opened: Callable[[], io.BufferedIOBase], place: int) -> Callable[[], bytes]:
    """Reads the member at a place in the list; its name may stand there twice."""

    def read() -> bytes:
        try:
            with opened() as file, zipfile.ZipFile(file) as archive:
                return _read(archive, archive.infolist()[place])
        except (Unreadable, MemoryError):
            raise
        except Exception as error:
            reason = f"it can't be unpacked ({type(error).__name__}): the archive is damaged"
            raise Unreadable(reason) from None

    return read


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    limit = MAX_ARCHIVE_BYTES if info.filename.lower().endswith(".zip") else MAX_BYTES
    parts, size = [], 0
    with archive.open(info) as member:
        while chunk := member.read(_CHUNK):
            parts.append(chunk)
            size += len(chunk)
            if size > limit:
                raise Unreadable(f"unpacked, it has more than {limit >> 20} MiB")
            if size > SMALL_BYTES and size > MAX_RATIO * max(1, info.compress_size):
                raise Unreadable(f"it unpacks to more than {MAX_RATIO} times its size")
    return b"".join(parts)
