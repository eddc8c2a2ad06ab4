"""What a fence takes of the machine's memory that none of its processes is seen to hold."""

from __future__ import annotations

import contextlib
import os

MOST_FILES = 50_000  # an empty one takes a kilobyte or two
MOST_SOCKETS = 2_000  # what was sent and not read is a fifth of a mebibyte for each
FOLDERS = ("tmp", "dev/shm", "home/student")


def too_much(pid: int) -> str | None:
    """What is too much around the fenced process `pid`, in words; None where all is well.

    It has to stand in its own folders and network already: until then these are the machine's.
    """
    count = files(pid)
    if count > MOST_FILES:
        return f"{count} files were made where {MOST_FILES} are allowed"
    count = sockets(pid)
    if count > MOST_SOCKETS:
        return f"{count} sockets were opened where {MOST_SOCKETS} are allowed"
    return None


def files(pid: int) -> int:
    """The files and folders in the private file systems of a process; 0 where nobody tells."""
    total = 0
    for folder in FOLDERS:
        with contextlib.suppress(OSError):
            found = os.statvfs(os.path.join("/proc", str(pid), "root", folder))
            total += found.f_files - found.f_ffree
    return total


def sockets(pid: int) -> int:
    """The sockets of all kinds in the network of a process; 0 where nobody tells."""
    try:
        with open(f"/proc/{pid}/net/sockstat", encoding="ascii") as file:
            return int(file.readline().split()[2])  # "sockets: used 23"
    except (OSError, ValueError, IndexError):
        return 0
